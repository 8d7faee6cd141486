package store

import "time"

// An IdentityRow maps an account of another system to a principal of this host.
type IdentityRow struct {
	Tenant        string
	Provider      string // slack, github, ...
	ExternalID    string // what that system calls them
	PrincipalType string // user, service or agent
	PrincipalID   string
	Scopes        []string // what may be done in their name that way
	Adapter       string   // the one adapter that may speak of them; "" for none
	By            string   // who linked them
	At            time.Time
}
