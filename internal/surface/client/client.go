// Package client is a host as the command line reaches it: in this process, over the
// socket of its owner, or at a URL with a token.
//
// The three are one interface, [Host], whose nouns are those of package host. The first is
// package host itself; the others are the API under /api/v1/, which has no other way in for
// a command line than for anyone. What a command prints, and how it ends, is the same in all.
package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Host is what commands ask of one host, as one principal may use it.
type Host interface {
	// Who returns who acts, and where.
	Who() Who
	Invoke(ctx context.Context, in host.Invocation) (plugin.Result, error)

	Accounts() Accounts
	Adapters() Adapters
	Admin() Admin
	Agents() Agents
	Approvals() Approvals
	Calls() Calls
	Feeds() Feeds
	Identities() Identities
	Knowledge() Knowledge
	Ledger() Ledger
	Models() Models
	Offers() Offers
	Plans() Plans
	Plugins() Plugins
	Policies() Policies
	References() References
	Secrets() Secrets
	Sessions() Sessions
	Tenants() Tenants
	Tokens() Tokens
	Users() Users
}

// A Manner is how a host is reached.
type Manner string

// The manners.
const (
	InProcess  Manner = "embedded" // the command opens the data directory itself
	OverSocket Manner = "socket"   // a host serves the data directory, and answers its owner
	AtURL      Manner = "url"      // a host elsewhere, which knows the caller by a token
)

// A Who is who acts, and on which host.
type Who struct {
	Manner    Manner
	Principal string // as the configuration writes them
	Owner     bool   // they own the host
	Home      string // the data directory; "" at a URL
	Server    string // the URL; "" but at one
	Version   string // of the host
	Config    string // the configuration file of a host on the socket
	Operator  string // the principal that its configuration acts for
}
