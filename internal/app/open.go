package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/catalog/installed"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/approval/notify"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/reported"
	"github.com/mortise-dev/mortise/internal/core/tail"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/recovery"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/service/scrub"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/protocol"
)

// Open puts a host together, from the store up. Close must be called.
func Open(ctx context.Context, o Options) (_ *App, err error) {
	a := &App{turn: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := a.configure(o); err != nil {
		return nil, err
	}
	if err := a.openState(ctx, o); err != nil {
		return nil, err
	}
	if err := a.openRuntime(o); err != nil {
		return nil, err
	}
	if err := a.openNouns(ctx, o); err != nil {
		return nil, err
	}
	a.opened("other tenants", func() error { return a.others.Close(func(t *App) bool { return t.outer }) })
	a.openSweepers()
	if _, err := a.Approvals.Expire(store.Everywhere(ctx)); err != nil { // expires approvals whose deadline passed while no host was running
		return nil, err
	}
	if o.Tenant == "" || o.Tenant == a.Config.Tenant {
		return a, nil
	}
	return a.asTenant(ctx)
}

// openNouns opens what each tenant has of its own, on what the site has for all.
func (a *App) openNouns(ctx context.Context, o Options) error {
	if err := a.openTools(); err != nil {
		return err
	}
	if err := a.openCatalog(ctx); err != nil {
		return err
	}
	broker, fill := a.openBroker(o)
	people := a.openKernel(broker, fill)
	a.openAgency(people)
	a.openHost()
	return nil
}

// configure reads what the host is configured with, and makes its directories.
func (a *App) configure(o Options) (err error) {
	if a.Home, err = filepath.Abs(o.Home); err != nil {
		return err
	}
	if a.Config, a.ConfigPath, err = setup.ReadConfig(a.Home, o.Config); err != nil {
		return &setup.Error{Err: fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	a.live.options = o
	a.live.now.Store(&a.Config)
	a.live.level.Set(setup.LogLevel(a.Config.Log.Level))
	a.guard = &host.Guard{Tenant: a.Config.Tenant, Owner: a.Config.Principal, Names: host.Names(a.Config), SignInAge: time.Duration(a.Config.Server.SignInAge), Providers: host.Providers(a.Config), OwnApproval: a.Config.Approvals.Self, Subscribe: a.Config.Plugins.Subscribe, MostSecrets: a.Config.Limits.PrincipalSecrets, MostTokens: a.Config.Limits.PrincipalTokens}
	as := o.As
	if o.Tenant != "" && o.Tenant != a.Config.Tenant {
		as = "" // a name of the tenant's; who acts for the site is its owner
	}
	if a.Principal, err = a.guard.Member(cmp.Or(as, a.Config.Principal)); err != nil {
		return err
	}
	log := o.Log
	if log == nil {
		log = setup.NewLog(a.Config.Log, &a.live.level, o.Brief)
	}
	scrubber := o.Scrubber
	if scrubber == nil {
		scrubber = secret.NewScrubber()
	}
	log = slog.New(scrubber.Handler(log.Handler()))
	a.log, a.scrubber = log, scrubber
	a.Reference = reference.Open(a.dir("reference"))
	if a.Config.Database, err = setup.ChooseDatabase(o.Database, a.Config.Database); err != nil {
		return err
	}
	for _, dir := range []string{a.Home, a.dir("scratch"), a.dir("packages"), a.dir("runtime")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &setup.Error{Err: fmt.Errorf("the data directory cannot be used: %w; --home or MORTISE_HOME names another", err)}
		}
	}
	return nil
}

// openState opens what outlives the host: the store, the ledger and what is kept in them.
func (a *App) openState(ctx context.Context, o Options) (err error) {
	a.hide = setup.Hidden(a.Home)
	a.Sandbox, err = sandbox.New(sandbox.Options{Dir: a.dir("runtime"), Mode: sandbox.Mode(a.Config.Sandbox), Standby: o.Standby, Notice: o.notice(a.log)})
	if err != nil {
		return &setup.Error{Err: err}
	}
	tried := make(chan struct{}) // closed once it is known what this machine can enforce
	go func() { defer close(tried); a.Sandbox.Report() }()
	a.opened("sandbox", func() error { <-tried; return a.Sandbox.Close() })

	if err := a.openTelemetry(ctx, o.Standby); err != nil {
		return err
	}
	st, reserve, err := setup.OpenStore(ctx, a.Home, a.Config.Database, o.Lease)
	if err != nil {
		return err
	}
	mover, able := st.(recovery.AnchorMover)
	parts, scrub := st.(store.Divisible), st.(store.Scrubber)
	st = a.guarded(st)
	a.Store, a.own = st, store.OwnStore(a.guarded(parts.For(a.Config.Tenant)), st)
	a.guard.Store, a.divide, a.scrub = a.own, parts.For, scrub.Scrub
	a.others.Own, a.others.List, a.others.Open, a.others.Log = a.Config.Tenant, st.Tenants, a.openTenant, a.log
	a.tail = tail.New(st, tail.Options{Log: a.log})
	a.opened("store", st.Close)
	if able && o.Standby {
		a.opened("anchors", recovery.MoveAnchors(mover, cmp.Or(o.Anchors, recovery.AnchorEvery), a.log))
	}
	scratch, err := setup.OpenScratch(a.dir("scratch"), func() bool { return a.Config.Database == "" && setup.OnlyHost(a.Home) })
	if err != nil {
		return &setup.Error{Err: err}
	}
	a.scratch = scratch.Dir
	a.opened("scratch directory", scratch.Close)
	a.recovery = &recovery.Recovery{Home: a.Home, Store: st, Guard: a.guard, Principal: a.Principal, Reserve: reserve}
	if err := a.recovery.Notice(ctx); err != nil {
		return err
	}
	if err := a.recovery.Authority(ctx); err != nil {
		return err
	}
	if o.Tenant != "" && o.Tenant != a.Config.Tenant {
		a.Principal, err = a.guard.AtTenant(ctx, o.Tenant)
	} else {
		a.Principal, err = a.guard.AtTerminal(ctx, o.As)
	}
	if err != nil {
		return err
	}
	a.openFiles()
	if err := a.openKept(ctx); err != nil {
		return err
	}
	a.Jobs = job.Open(job.Options{Home: a.Home, Database: a.Config.Database.URL(), Log: a.log})
	a.opened("queue", a.Jobs.Close)
	return nil
}

// guarded returns a store whose rows are held against the ledger, and into which no secret
// gets: signatures are of rows as they are kept, sealed or not.
func (a *App) guarded(st store.Store) store.Store {
	return a.scrubber.Guard(store.Authorised(st, a.Home), a.Home)
}

// openKept opens what is kept for a tenant.
func (a *App) openKept(ctx context.Context) (err error) {
	a.Vault = secret.New(a.own, setup.KeyPlace(a.Config.Secrets, a.Home), a.scrubber)
	a.Connections = a.openAccounts(a.scrubber)
	if a.Sessions, err = a.openSessions(ctx, a.scrubber); err != nil {
		return err
	}
	a.openKnowledge()
	a.Ledger, err = ledger.Open(ctx, a.own, ledger.Options{
		Durable: a.Config.Ledger.Tools == "durable", Keep: setup.Periods(a.Config)["bodies"], Recover: plan.RecoverPlans,
	})
	if err != nil {
		return err
	}
	a.opened("ledger", a.Ledger.Close)
	a.quotas = setup.OpenQuotas(a.Config.Quotas, bridge.Counts{Of: a.own}, a.own.Now)
	a.opened("quotas", a.quotas.Close)
	a.opened("calls", func() error { // everything that calls need has ended: they write their entries
		if a.Kernel == nil {
			return nil
		}
		return a.Kernel.Close()
	})
	return nil
}

// openRuntime opens what carries calls out.
func (a *App) openRuntime(o Options) error {
	a.Interpreters = interpreter.New(interpreter.Options{Dir: a.dir("runtime"), Python: a.Config.Interpreters.Python, Node: a.Config.Interpreters.Node,
		Home: a.Home, Hide: a.hide[1:],
		Caged: func() bool { return a.Sandbox.Report().Level != sandbox.None }})

	a.served = setup.OpenRemembered(a.dir("run", "served"), a.log)
	p := a.Config.Processes
	a.Runner = process.New(process.Options{
		Host:     protocol.Peer{Name: "mortise", Version: version.Host},
		Scratch:  a.scratch,
		Command:  a.command,
		Reads:    a.Interpreters.Reads,
		Sandbox:  a.Sandbox,
		Hide:     a.hide,
		Own:      a.dir("runtime"),
		Limits:   limitsOf(a.Config.Plugins),
		Services: service.Names(),

		View: func(ctx context.Context, tenant, id string) (string, error) {
			t, err := a.Tenant(ctx, tenant)
			if err != nil {
				return "", err
			}
			return bridge.Artifacts{Of: t.Sessions}.View(ctx, tenant, id)
		},
		Earlier: a.served.Earlier,

		FrameBytes: a.Config.Limits.FrameBytes,
		Handshake:  time.Duration(p.Handshake), CancelGrace: time.Duration(p.CancelGrace),
		Idle: time.Duration(p.Idle), SessionIdle: time.Duration(p.SessionIdle),
		MaxProcesses: p.Max, PerTenant: p.PerTenant, Standby: o.Standby, Log: a.log,
	})
	a.opened("plugin processes", a.Runner.Close)
	return nil
}

// openTools opens what agents have.
func (a *App) openTools() error {
	roots, err := a.Config.Egress.Roots()
	if err != nil {
		return &setup.Error{Err: err}
	}
	a.tools = toolset.New(toolset.Options{
		Refused: func(t *plugin.Target, c *plugin.Call, why *plugin.Error) {
			a.refused(a.log, service.Refusal{Target: t, Call: c, Method: "network", Err: why})
		},
		Store: a.own, Runner: a.Runner, Vault: a.Vault, Jobs: a.Jobs, Egress: a.Config.Egress, Roots: roots, Wake: a.wake, Check: a.checkPackage, Recheck: time.Duration(a.Config.MCP.Recheck), Log: a.log, Lock: setup.Leases(a.own, a.Config.Tenant),
	})
	a.opened("connections to webhooks", a.tools.Webhooks.Close)
	a.opened("mounted servers", a.tools.Mounted.Close)
	return nil
}

// openCatalog opens the registry, and the policies, which judge by what it has.
func (a *App) openCatalog(ctx context.Context) (err error) {
	var archive registry.Archive // nil where the database is a file of its own
	if a.Config.Database != "" {
		archive = installed.NewArchive(a.root().Store)
	}
	catalog := installed.New(a.own, a.Config.Tenant, a.Principal.Member())
	if a.site != nil {
		catalog = installed.NewOf(a.own, a.Config.Tenant, a.Principal.Member())
	}
	a.Registry, err = registry.Open(ctx, registry.Options{
		Dir:     a.dir("packages"),
		Catalog: catalog,
		Held:    a.own.PackageHeld, Turn: a.turn,
		Archive:  archive,
		Approver: a.Principal.Member(), Complete: func() bool { return a.Runner.Level() == string(sandbox.Full) },
		Bindings: setup.Bindings(a.Config.Bindings, a.ConfigPath),
		Describe: a.describe, Define: a.define, Trust: a.Config.Plugins.Trust,
		Bundled: plugins.Files, BundledDirs: plugins.Dirs, Builtin: toolset.BuiltIn,
	})
	if err != nil {
		return err
	}

	a.Policy, err = setup.OpenPolicy(a.Config, a.ConfigPath, a.Runner.Level(), a.own)
	if err == nil {
		for _, warning := range append(a.Config.Ambiguous(), a.Policy.Ambiguous()...) {
			a.log.Warn("a name in the configuration may mean two", "where", warning)
		}
	}
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("the policies cannot be used: %w", err)}
	}
	return nil
}

// openBroker opens what does for plugins what they ask of the host, and what fills in
// what inputs leave to it.
func (a *App) openBroker(o Options) (*service.Broker, bridge.Filler) {
	broker := service.New()
	fill := bridge.Filler{Vault: a.Vault, Accounts: a.Connections, Env: a.Config.Env, Identity: broker.Identity, Subscribed: a.guard.Subscribed}
	a.guard.Policy = a.Policy
	a.tools.Registry, a.tools.Policy = a.Registry, a.Policy
	a.approvers = &host.Approvers{Guard: a.guard, Registry: a.Registry, Ledger: a.Ledger, Shown: fill.Seen}
	if o.Standby {
		a.follow(a.log)
		if a.site == nil {
			budget.Pace()
		}
	}
	broker.Egress, broker.Version = a.Config.Egress, version.Host
	broker.Roots = a.tools.Roots
	broker.MaxAnswer = a.Config.Limits.FrameBytes - 256 // what stands around it in a line
	broker.MaxOutput = func() int { return a.Now().Limits.OutputBytes }
	broker.Reference = a.Reference
	broker.Knowledge, broker.Files = a.Knowledge, a.Files
	broker.Store, broker.Secrets, broker.Accounts = a.own, bridge.Vault{Of: a.Vault}, bridge.Connected{Of: a.Connections}
	broker.Scrubber = a.scrubber
	broker.Sessions, broker.TypeOf, broker.MaxArtifact = bridge.Artifacts{Of: a.Sessions}, session.Detect, a.Sessions.MaxArtifact
	broker.MaxMade = int64(a.Config.Limits.CallArtifactBytes)
	a.Models = a.openModels(a.log)
	a.tools.Models = a.Models != nil
	broker.Models, broker.Documents = a.Models, bridge.Documents{Of: a.Sessions}
	broker.Settings, broker.RefuseWithoutModel = a.Config.Settings, a.Config.Models.Required == config.RequiredRefuse
	broker.Refused = func(r service.Refusal) { a.refused(a.log, r) }
	broker.Used = func(u service.Use) {
		a.log.Info("a service was used", "call_id", u.Call.ID, "plugin", u.Target.Manifest.Name, "method", u.Method, "request", u.Request, "mapped", u.Mapped, "effect", u.Effect,
			"outcome", u.Outcome, "attempts", u.Attempts, "sent", u.Sent, "received", u.Received, "took", u.Took)
	}
	broker.Uncached = func(err error) {
		a.log.Warn("what plugins cache is not what the last host had, or not there for the next", "cause", err.Error())
	}
	a.opened("connections of plugins", broker.Close)
	return broker, fill
}

// openKernel opens what takes calls, and returns what tells approvers of them.
func (a *App) openKernel(broker *service.Broker, fill bridge.Filler) *notify.Notifier {
	a.Approvals = &approval.Service{Store: a.own, May: a.approvers.MayApprove, Wake: a.wake, Ended: a.unapproved, People: a.guard.People, TrustAs: a.Config.Approvals.TrustAs}
	people := notify.New(a.Config.Approvals.Notify, a.Home, a.own, a.log)
	a.opened("telling of approvers", people.Close)
	tools := &reported.Tools{Counts: bridge.Counts{Of: a.own}}
	a.Kernel = kernel.New(kernel.Options{
		Definitions: tools, Registry: a.Registry, Policy: a.Policy, Ledger: a.Ledger, Runner: scrub.Runner{Runner: toolset.Runners{Runner: a.Runner, Scripts: a.tools.Scripts, Mounted: a.tools.Mounted, Builtin: a.tools.Builtin(), Reported: tools}, Scrubber: a.scrubber}, Services: broker, Quotas: a.quotas, Agents: a.agents(), Equip: fill.Fill, Seen: fill.Judged, Artifact: bridge.Artifacts{Of: a.Sessions}.Find, Hold: a.recovery.Hold,
		MaxInput: a.Config.Limits.InputBytes, MaxOutput: a.Config.Limits.OutputBytes, MaxCalls: a.Config.Limits.Calls, Log: a.log, Wake: a.wakeCall,
		ApprovalTime: time.Duration(a.Config.Approvals.Expire), Asked: people.Call, Ended: a.goOn, Expire: a.Approvals.Expire,
	})
	a.watched()
	broker.Call, broker.Enqueue, broker.Kind = a.Kernel.Run, a.Kernel.Enqueue, a.kind
	return people
}

// openAgency opens what acts by itself.
func (a *App) openAgency(people *notify.Notifier) {
	a.Agents = a.openAgents()
	a.tools.Agents = a.Agents
	a.Kernel.Hooks = a.Agents
	a.opened("agents", a.Agents.Close)
	a.Plans = a.openPlans(a.log)
	a.Plans.Wake, a.Plans.Asked, a.Plans.Expire = a.wake, people.Plan, time.Duration(a.Config.Approvals.Expire)
	a.Plans.Hold, a.Plans.Lapse, a.Agents.Plans = a.recovery.Hold, a.Approvals.Expire, a.Plans
	a.Adapters = a.openAdapters()
	a.Schedules = a.openSchedules()
	a.opened("admission of calls", func() error { a.Kernel.Stop(); return nil }) // before all else ends
}

// openHost opens the API of surfaces.
func (a *App) openHost() {
	a.Host = host.New(host.Parts{
		Guard: a.guard, Approvers: a.approvers, Home: a.Home, Quotas: a.quotas,
		Registry: a.Registry, Plans: a.Plans, Agents: a.Agents, Schedules: a.Schedules, Sessions: a.Sessions, Knowledge: a.Knowledge,
		References: a.Reference, Accounts: a.Connections, Vault: a.Vault, Models: a.Models, ModelConfig: func() config.Models { return a.Now().Models },
		ModelTools: a.Models != nil || a.Config.Models.Required != config.RequiredRefuse, // without a model, what asks for one runs unless it is told to refuse
		Environments: func() (config.Environments, string) {
			return a.Now().Plugins.Environments, a.Interpreters.Found()[0].Version
		},
		Policies: func(from store.Reader) (*policy.Engine, error) {
			return setup.OpenPolicy(a.Now(), a.ConfigPath, a.Runner.Level(), from)
		},
		Others: func(documents []policy.Document) (*policy.Engine, error) {
			return setup.OtherPolicy(a.Now(), documents, a.Runner.Level(), a.own)
		},
		Deliver: a.Adapters.Deliver,
		Kernel:  a.Kernel, Ledger: a.Ledger, Tail: a.tail, Approvals: a.Approvals, CatchUp: a.CatchUp, EndSession: a.root().served.Ends(a.Runner),
		Seal: setup.Seal{Home: a.Home}, Site: a.root().Config.Tenant, Of: a.root().hostOf, Served: a.root().others.Served,
		Periods: func() map[string]time.Duration { return setup.Periods(a.Now()) }, Scrub: a.root().scrub,
		Elsewhere: a.elsewhere, Wake: a.wake, Offer: a.tools.Offer, Post: toolset.WaitingWebhooks{Webhooks: a.tools.Webhooks}.First,
	})
}
