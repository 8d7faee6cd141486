// Package host is the API that every surface stands on: each noun with its verbs, for one
// principal, behind one guard that asks policy and records what it refuses.
package host

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/quota"
	"github.com/mortise-dev/mortise/internal/core/tail"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// Version is the release of this host.
const Version = version.Host

// Parts are the parts of a host that surfaces reach.
type Parts struct {
	Guard     *Guard
	Approvers *Approvers
	Home      string // the data directory

	Registry   *registry.Registry
	Plans      *plan.Engine
	Agents     *agent.Agents
	Schedules  *schedule.Engine
	Sessions   *session.Sessions
	Knowledge  *kb.Bases
	References *reference.Data
	Accounts   *account.Accounts
	Vault      *secret.Vault
	Models     *llm.Dispatcher // nil if none is configured

	Kernel    Kernel
	Ledger    *ledger.Ledger
	Tail      *tail.Tail
	Approvals *approval.Service
	Quotas    *quota.Quotas

	ModelConfig func() config.Models // as it is now

	Environments func() (config.Environments, string) // as they are now, and the version of Python that plugins run with

	ModelTools bool                                                            // the router offers operations that need a model
	Policies   func(from Reader) (*policy.Engine, error)                       // the policy engine for the content of a store
	Others     func(documents []PolicyDocument) (*policy.Engine, error)        // and for documents in place of the configured files
	Elsewhere  func() bool                                                     // whether the host that serves may be another process
	Deliver    func(ctx context.Context, d Delivery) (*Plan, error)            // delivers an event to an adapter
	Wake       func(ctx context.Context, kind, tenant, id string)              // announces work that can continue
	CatchUp    func(ctx context.Context) error                                 // reloads what other processes changed
	EndSession func(ctx context.Context, tenant, id string, forget bool) error // ends the processes of a session; with forget, also its record of them
	Offer      func(ctx context.Context, ask agent.Ask) ([]agent.Tool, error)  // the tools that an agent's model may use

	Seal Seal // encrypts what clients keep for the host between two requests

	Site string // the name of the site's own tenant

	// Of returns the host of another tenant, and Served the names of those that are served.
	// They are nil if there are no other tenants.
	Of     func(ctx context.Context, tenant string) (*Host, error)
	Served func(ctx context.Context) ([]string, error)

	Post func(ctx context.Context, tenant, agent string) (bool, error) // returns the first event that waits for a webhook

	Periods func() map[string]time.Duration // the retention period of each kind of data, as configured now
	Scrub   func(ctx context.Context) error // removes deleted data from database files; nil if the store cannot
}

// A Host serves the surfaces of one host.
type Host struct {
	parts Parts
	admin bool
	seen  seenEvents
	swept sweptAt

	verifying sync.Mutex // held while the ledger is looked through
}

// New returns a host that consists of these parts.
func New(p Parts) *Host { return &Host{parts: p} }

// Guard returns the guard that authorises every method.
func (h *Host) Guard() *Guard { return h.parts.Guard }

// Approvers returns the rules on who may decide approvals.
func (h *Host) Approvers() *Approvers { return h.parts.Approvers }

// As returns the API for a principal that the user of this process acts as.
func (h *Host) As(by plugin.Principal) API { return API{host: h, by: by} }

// For returns the API for an authenticated caller, on the host of the tenant that the caller's
// credential belongs to.
func (h *Host) For(c Caller) API {
	if c.home != nil {
		h = c.home
	}
	return API{host: h, by: c.Principal, caller: &c}
}

// of returns the host of a tenant; unauthenticated if the tenant is not served.
func (h *Host) of(ctx context.Context, tenant string) (*Host, error) {
	switch {
	case tenant == h.parts.Guard.Tenant:
		return h, nil
	case h.parts.Of == nil:
		return nil, ErrToken
	}
	return h.parts.Of(ctx, tenant)
}

// served returns the names of all tenants, its own first.
func (h *Host) served(ctx context.Context) ([]string, error) {
	names := []string{h.parts.Guard.Tenant}
	if h.parts.Served == nil {
		return names, nil
	}
	others, err := h.parts.Served(ctx)
	return append(names, others...), err
}

// Reading returns an API on a store that is open for reading, for the owner of the data
// directory. It has Sessions, Calls, Approvals and Plans.
func Reading(st Store, tenant string) API {
	g := &Guard{Tenant: tenant, Store: st}
	h := &Host{admin: true, parts: Parts{Guard: g, Tail: tail.New(st, tail.Options{}), Sessions: session.New(session.Options{Store: st}), Plans: plan.New(plan.Options{Store: st})}}
	return h.As(plugin.Principal{})
}

// An API is the nouns of a host, as one principal may see and change what they stand
// for.
type API struct {
	host   *Host
	by     plugin.Principal
	caller *Caller // nil for the user of this process
}

// asker returns the identity that was authenticated behind the principal.
func (a API) asker() string {
	if a.caller != nil {
		return a.caller.Asker
	}
	return OSUser()
}

// Tenant returns whose things these are.
func (a API) Tenant() string { return a.host.parts.Guard.Tenant }

// Owner returns the principal that owns the tenant, as its configuration names it.
func (a API) Owner() string { return a.host.parts.Guard.Owner }

// OwnFile refuses a path to a file of the host's own; see [Host.OwnFile].
func (a API) OwnFile(path string) error { return a.host.OwnFile(path) }

// Store returns the store that they are in, for reading.
func (a API) Store() Reader { return a.host.parts.Guard.Store }

// Unbounded reports whether all that is kept is theirs to use.
func (a API) Unbounded() bool { return a.kept().unbounded() }

func (a API) kept() kept { return kept{a.host.parts.Guard, a.by, a.host.admin} }

func (a API) conversing() conversing {
	p := &a.host.parts
	return conversing{p.Guard, p.Agents, p.Sessions, p.Elsewhere}
}

// Plugins returns the plugins.
func (a API) Plugins() Plugins {
	p := &a.host.parts
	return Plugins{p.Guard, a.by, a.caller, p.Registry, p.ModelTools, p.Environments, p}
}

// Agents returns the agents.
func (a API) Agents() Agents {
	p := &a.host.parts
	return Agents{
		g: p.Guard, by: a.by, caller: a.caller, engine: p.Agents, registry: p.Registry, schedules: p.Schedules, sessions: p.Sessions,
		asker: a.asker, plugins: a.Plugins(), feeds: a.Feeds(), conversing: a.conversing(), outside: outside{p.Wake, p.Offer, p.Post},
	}
}

// Feeds returns the schedules.
func (a API) Feeds() Feeds {
	p := &a.host.parts
	return Feeds{p.Guard, a.by, a.caller, a.asker, p.Registry, p.Schedules, a.Plugins(), a.Knowledge()}
}

// Sessions returns the sessions with their artifacts.
func (a API) Sessions() Sessions {
	engine := a.host.parts.Sessions
	if !a.host.admin {
		engine = engine.As(principal.Name(a.by))
	}
	return Sessions{a.kept(), a.conversing(), engine, a.host.parts.EndSession, a.caller}
}

// Calls returns the calls.
func (a API) Calls() Calls { return Calls{a.kept(), a.host.parts.Approvers, a.host, a.caller} }

// Approvers returns who may decide about approvals.
func (a API) Approvers() *Approvers { return a.host.parts.Approvers }

// Approvals returns the approvals.
func (a API) Approvals() Approvals {
	return Approvals{a.kept(), a.asker, a.host.parts.Approvers, a.host.parts.Approvals, a.caller}
}

// Plans returns the plans.
func (a API) Plans() Plans {
	return Plans{a.kept(), a.Calls(), a.host.parts.Approvers, a.host.parts.Plans, a.asker, a.caller}
}

// Knowledge returns the knowledge bases.
func (a API) Knowledge() Knowledge { return Knowledge{a.kept(), a.host.parts.Knowledge} }

// References returns the reference data.
func (a API) References() References { return References{a.kept(), a.host.parts.References} }

// Identities returns the identity links.
func (a API) Identities() Identities {
	return Identities{g: a.host.parts.Guard, by: a.by, caller: a.caller, asker: a.asker}
}

// Tokens returns the API tokens.
func (a API) Tokens() Tokens { return Tokens{a.host.parts.Guard, a.by, a.asker, a.caller} }

// Accounts returns the accounts that they connected.
func (a API) Accounts() Accounts {
	return Accounts{a.host.parts.Guard, a.by, a.host.parts.Accounts}
}

// Models returns the models that the configuration names.
func (a API) Models() Models {
	p := &a.host.parts
	return Models{a.kept(), p.Models, p.ModelConfig}
}

// Secrets returns the secrets.
func (a API) Secrets() Secrets {
	return Secrets{a.host.parts.Guard, a.by, a.host.parts.Vault, a.Plugins()}
}

// Policies returns the policies.
func (a API) Policies() Policies {
	return Policies{a.host.parts.Guard, a.by, a.caller, a.Plugins(), a.host.parts.Policies, a.host.parts.Others}
}

// Adapters returns the adapters.
func (a API) Adapters() Adapters {
	return Adapters{a.host.parts.Guard, a.by, a.caller, a.asker, a.host.parts.Deliver}
}

// Quotas returns what the principal used of what they may.
func (a API) Quotas(ctx context.Context) ([]QuotaUse, error) {
	return a.host.parts.Quotas.Uses(ctx, a.Tenant(), a.by)
}

// A QuotaUse is what was used of one bound.
type QuotaUse = quota.Use

// Admin returns what the administrator does.
func (a API) Admin() Admin { return Admin{a.kept(), a.host.parts.Home, a.caller, a} }
