// Package app puts the parts of a host together: it is the only package that
// knows all the others.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/installed"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/approval/notify"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
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

// Options say which host is meant.
type Options struct {
	Home     string        // the data directory; made where it is missing
	Config   string        // the configuration file; mortise.yaml in Home where it is empty
	Database string        // the URL of a PostgreSQL database; what the configuration says where it is empty
	As       string        // who acts: a name of the configuration's; its own principal where it is empty
	Lease    time.Duration // how long this host may be silent before others on its PostgreSQL take it for dead; 15 s where it is 0
	Standby  bool          // keep processes ready for the next call, and move the anchors: for hosts that stay
	Anchors  time.Duration // how often such a host moves its anchors; 15 s where it is 0
	Log      *slog.Logger  // the host's own log; by configuration, on standard error, where it is nil
	Brief    bool          // write that log as the command line shows what plugins log, where its format is text

	// Notice is told, once, that plugins run behind fewer walls than all, and
	// which are missing. A warning in the log where it is nil.
	Notice func(text string)

	// Scrubber takes secrets out of what the host says; its own where it is nil.
	Scrubber *secret.Scrubber

	// Earlier reports whether another host served a session before, whose
	// processes are gone. It may be nil.
	Earlier func(tenant, session string) bool
}

// notice is where Notice goes.
func (o Options) notice(log *slog.Logger) func(text string) {
	if o.Notice != nil {
		return o.Notice
	}
	return func(text string) { log.Warn(text) }
}

// An App is a host, ready to take calls.
type App struct {
	Host         *host.Host // what surfaces ask of it
	Home         string
	ConfigPath   string
	Config       config.Config
	Principal    plugin.Principal // who acts at this host's own command line
	Store        store.Store
	Ledger       *ledger.Ledger
	Registry     *registry.Registry
	Sandbox      *sandbox.Sandbox
	Runner       *process.Runner
	Interpreters *interpreter.Interpreters
	Policy       *policy.Engine
	Kernel       *kernel.Kernel
	Approvals    *approval.Service
	Plans        *plan.Engine
	Agents       *agent.Agents
	Adapters     *adapter.Inbound
	Schedules    *schedule.Engine
	Sessions     *session.Sessions
	Knowledge    *kb.Bases
	Files        *extract.Extractor // wins text from documents
	Reference    *reference.Data    // what plugins look things up in
	Models       *llm.Dispatcher    // nil where none is configured
	Connections  *account.Accounts  // that plugins act with
	Vault        *secret.Vault      // secrets that plugins need and no one may read
	Jobs         *job.Queue         // wake-ups, for the hosts that stay; opened when it is needed
	Sweepers     []worker.Sweeper   // what Work does, a kind each

	guard     *host.Guard
	approvers *host.Approvers

	log      *slog.Logger
	scrubber *secret.Scrubber // of all that plugins say
	tools    *toolset.Toolset
	hide     []string       // directories that no plugin is shown; the data directory is the first
	scratch  string         // this host's own directory for what its plugins write
	reserve  *store.Reserve // of the disk; nil where the database is elsewhere

	recovering atomic.Bool // this host knew that it was in recovery, when it last looked
	closers    []closer    // in the order of opening
	closing    sync.Mutex  // held while they are closed
}

// A closer is one part to close, by name.
type closer struct {
	name  string
	close func() error
}

// A SetupError says that a host cannot be put together as it was asked for:
// its configuration or its data directory is at fault.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// Open puts a host together, from the store up. Close must be called.
func Open(ctx context.Context, o Options) (_ *App, err error) {
	a := &App{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.Home, err = filepath.Abs(o.Home); err != nil {
		return nil, err
	}
	if a.Config, a.ConfigPath, err = ReadConfig(a.Home, o.Config); err != nil {
		return nil, &SetupError{fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	a.guard = &host.Guard{Tenant: a.Config.Tenant, Owner: a.Config.Principal, Names: host.Names(a.Config)}
	if a.Principal, err = a.guard.Member(cmp.Or(o.As, a.Config.Principal)); err != nil {
		return nil, err
	}
	log := o.Log
	if log == nil {
		log = newLog(a.Config.Log, o.Brief)
	}
	scrubber := o.Scrubber
	if scrubber == nil {
		scrubber = secret.NewScrubber()
	}
	log = slog.New(scrubber.Handler(log.Handler()))
	a.log, a.scrubber = log, scrubber
	a.Reference = reference.Open(a.dir("reference"))
	if a.Config.Database, err = ChooseDatabase(o.Database, a.Config.Database); err != nil {
		return nil, err
	}
	for _, dir := range []string{a.Home, a.dir("scratch"), a.dir("packages"), a.dir("runtime")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &SetupError{fmt.Errorf("the data directory cannot be used: %w; --home or MORTISE_HOME names another", err)}
		}
	}

	a.hide = hidden(a.Home)
	a.Sandbox, err = sandbox.New(sandbox.Options{Dir: a.dir("runtime"), Mode: sandbox.Mode(a.Config.Sandbox), Notice: o.notice(log)})
	if err != nil {
		return nil, &SetupError{err}
	}
	tried := make(chan struct{}) // closed once it is known what this machine can enforce
	go func() { defer close(tried); a.Sandbox.Report() }()
	a.opened("sandbox", func() error { <-tried; return a.Sandbox.Close() })

	st, reserve, err := openStore(ctx, a.Home, a.Config.Database, o.Lease)
	if err != nil {
		return nil, err
	}
	a.reserve = reserve
	mover, able := st.(anchorMover)
	st = scrubber.Guard(store.Authorised(st, a.Home), a.Home) // signatures are of rows as they are kept, sealed or not
	a.Store, a.guard.Store = st, st
	a.opened("store", st.Close)
	if able && o.Standby {
		a.opened("anchors", moveAnchors(mover, cmp.Or(o.Anchors, anchorEvery), log))
	}
	scratch, err := openScratch(a.dir("scratch"), func() bool { return a.Config.Database == "" && onlyHost(a.Home) })
	if err != nil {
		return nil, &SetupError{err}
	}
	a.scratch = scratch.dir
	a.opened("scratch directory", scratch.close)
	if err := a.noticeOlder(ctx); err != nil {
		return nil, err
	}
	if err := a.holdAuthority(ctx); err != nil {
		return nil, err
	}
	a.Vault = secret.New(st, a.keyPlace(), scrubber)
	a.Connections = a.openAccounts(scrubber)
	if a.Sessions, err = a.openSessions(ctx, scrubber); err != nil {
		return nil, err
	}

	if err := a.openKnowledge(scrubber); err != nil {
		return nil, err
	}

	a.Ledger, err = ledger.Open(ctx, st, ledger.Options{
		Durable: a.Config.Ledger.Tools == "durable", Keep: time.Duration(a.Config.Ledger.Keep), Recover: plan.RecoverPlans,
	})
	if err != nil {
		return nil, err
	}
	a.opened("ledger", a.Ledger.Close)
	a.opened("calls", func() error { // everything that calls need has ended: they write their entries
		if a.Kernel == nil {
			return nil
		}
		return a.Kernel.Close()
	})

	a.Jobs = job.Open(job.Options{Home: a.Home, Database: a.Config.Database.URL(), Log: log})
	a.opened("queue", a.Jobs.Close)

	a.Interpreters = interpreter.New(interpreter.Options{Dir: a.dir("runtime"), Python: a.Config.Interpreters.Python, Node: a.Config.Interpreters.Node,
		Home: a.Home, Hide: a.hide[1:],
		Caged: func() bool { return a.Sandbox.Report().Level != sandbox.None }})

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
			return bridge.Artifacts{Of: a.Sessions}.View(ctx, tenant, id)
		},
		Earlier: o.Earlier,

		FrameBytes: a.Config.Limits.FrameBytes,
		Handshake:  time.Duration(p.Handshake), CancelGrace: time.Duration(p.CancelGrace),
		Idle: time.Duration(p.Idle), SessionIdle: time.Duration(p.SessionIdle),
		MaxProcesses: p.Max, PerTenant: p.PerTenant, Standby: o.Standby, Log: log,
	})
	a.opened("plugin processes", a.Runner.Close)

	roots, err := a.Config.Egress.Roots()
	if err != nil {
		return nil, &SetupError{err}
	}
	a.tools = toolset.New(toolset.Options{
		Store: st, Runner: a.Runner, Vault: a.Vault, Jobs: a.Jobs, Egress: a.Config.Egress, Roots: roots, Wake: a.wake, Log: log,
	})
	a.opened("connections to webhooks", a.tools.Webhooks.Close)
	var archive registry.Archive // nil where the database is a file of its own
	if a.Config.Database != "" {
		archive = installed.NewArchive(st)
	}
	a.Registry, err = registry.Open(ctx, registry.Options{
		Dir:      a.dir("packages"),
		Catalog:  installed.New(st, a.Config.Tenant, a.Principal.ID),
		Archive:  archive,
		Approver: a.Principal.ID,
		Bindings: bindings(a.Config.Bindings, a.ConfigPath),
		Describe: a.describe,
		Bundled:  plugins.Files, BundledDirs: plugins.Dirs, Builtin: toolset.BuiltIn,
	})
	if err != nil {
		return nil, err
	}

	a.Policy, err = OpenPolicy(a.Config, a.ConfigPath, a.Runner.Level(), a.Store)
	if err == nil {
		for _, warning := range append(a.Config.Ambiguous(), a.Policy.Ambiguous()...) {
			log.Warn("a name in the configuration may mean two", "where", warning)
		}
	}
	if err != nil {
		return nil, &SetupError{fmt.Errorf("the policies cannot be used: %w", err)}
	}
	broker := service.New()
	fill := bridge.Filler{Vault: a.Vault, Accounts: a.Connections, Env: a.Config.Env, Identity: broker.Identity}
	a.guard.Policy = a.Policy
	a.tools.Registry, a.tools.Policy = a.Registry, a.Policy
	a.approvers = &host.Approvers{Guard: a.guard, Registry: a.Registry, Ledger: a.Ledger, Shown: fill.Seen}
	if o.Standby {
		a.follow(log)
		budget.Pace()
	}
	broker.Egress, broker.Version = a.Config.Egress, version.Host
	broker.Roots = roots
	broker.MaxAnswer = a.Config.Limits.FrameBytes - 256 // what stands around it in a line
	broker.MaxOutput = a.Config.Limits.OutputBytes
	broker.Reference = a.Reference
	broker.Knowledge, broker.Files = a.Knowledge, a.Files
	broker.Store, broker.Secrets, broker.Accounts = st, bridge.Vault{Of: a.Vault}, bridge.Connected{Of: a.Connections}
	broker.Scrubber = scrubber
	broker.Sessions, broker.TypeOf, broker.MaxArtifact = bridge.Artifacts{Of: a.Sessions}, session.Detect, a.Sessions.MaxArtifact
	broker.MaxMade = int64(a.Config.Limits.CallArtifactBytes)
	a.Models = a.openModels(log)
	a.tools.Models = a.Models != nil
	broker.Models, broker.Documents = a.Models, bridge.Documents{Of: a.Sessions}
	broker.Settings, broker.RefuseWithoutModel = a.Config.Settings, a.Config.Models.Required == config.RequiredRefuse
	broker.Refused = func(r service.Refusal) { a.refused(log, r) }
	broker.Used = func(u service.Use) {
		log.Info("a service was used", "call_id", u.Call.ID, "plugin", u.Target.Manifest.Name, "method", u.Method, "request", u.Request, "mapped", u.Mapped, "effect", u.Effect,
			"outcome", u.Outcome, "attempts", u.Attempts, "sent", u.Sent, "received", u.Received, "took", u.Took)
	}
	broker.Uncached = func(err error) {
		log.Warn("what plugins cache is not what the last host had, or not there for the next", "cause", err.Error())
	}
	a.opened("connections of plugins", broker.Close)
	a.Approvals = &approval.Service{Store: st, May: a.approvers.MayApprove, Wake: a.wake, Ended: a.unapproved, TrustAs: a.Config.Approvals.TrustAs}
	people := notify.New(a.Config.Approvals.Notify, a.Home, st, log)
	a.opened("telling of approvers", people.Close)
	a.Kernel = kernel.New(kernel.Options{
		Registry: a.Registry, Policy: a.Policy, Ledger: a.Ledger, Runner: scrub.Runner{Runner: toolset.Runners{Runner: a.Runner, Scripts: a.tools.Scripts, Builtin: a.tools.Builtin()}, Scrubber: scrubber}, Services: broker, Agents: a.agents(), Equip: fill.Fill, Seen: fill.Judged, Artifact: bridge.Artifacts{Of: a.Sessions}.Find, Hold: a.hold,
		MaxInput: a.Config.Limits.InputBytes, MaxOutput: a.Config.Limits.OutputBytes, Log: log, Wake: a.wakeCall,
		ApprovalTime: time.Duration(a.Config.Approvals.Expire), Asked: people.Call, Ended: a.goOn, Expire: a.Approvals.Expire,
	})
	broker.Call, broker.Enqueue, broker.Kind = a.Kernel.Run, a.Kernel.Call, a.kind
	a.Agents = a.openAgents()
	a.tools.Agents = a.Agents
	a.Kernel.Hooks = a.Agents
	a.opened("agents", a.Agents.Close)
	a.Plans = a.openPlans(log)
	a.Plans.Wake, a.Plans.Asked, a.Plans.Expire = a.wake, people.Plan, time.Duration(a.Config.Approvals.Expire)
	a.Plans.Hold, a.Plans.Lapse = a.hold, a.Approvals.Expire
	a.Adapters = a.openAdapters()
	a.Schedules = a.openSchedules()
	a.Host = host.New(host.Parts{
		Guard: a.guard, Approvers: a.approvers, Home: a.Home,
		Registry: a.Registry, Plans: a.Plans, Agents: a.Agents, Schedules: a.Schedules, Sessions: a.Sessions, Knowledge: a.Knowledge,
		References: a.Reference, Accounts: a.Connections, Vault: a.Vault, Models: a.Models, ModelConfig: a.Config.Models,
		ModelTools: a.Models != nil || a.Config.Models.Required != config.RequiredRefuse, // without a model, what asks for one runs unless it is told to refuse
		Policies: func(from store.Reader) (*policy.Engine, error) {
			return OpenPolicy(a.Config, a.ConfigPath, a.Runner.Level(), from)
		},
		Elsewhere: a.elsewhere, Wake: a.wake, Offer: a.tools.Offer, Post: toolset.WaitingWebhooks{Webhooks: a.tools.Webhooks}.First,
	})
	for _, s := range []worker.Sweeper{waitingCalls{a.Kernel, a.Approvals}, waitingPlans{a.Plans}, dueSchedules{a.Schedules},
		waitingConversations{a.Agents}, idleConversations{a.Agents, conversationIdle}, toolset.WaitingWebhooks{Webhooks: a.tools.Webhooks}, unsettledAgents{a}} {
		a.Sweepers = append(a.Sweepers, held{s, a})
	}
	a.opened("admission of calls", func() error { a.Kernel.Stop(); return nil }) // before all else ends
	if _, err := a.Approvals.Expire(ctx); err != nil {                           // expires approvals whose deadline passed while no host was running
		return nil, err
	}
	return a, nil
}

func (a *App) dir(name string) string { return filepath.Join(a.Home, name) }

func (a *App) opened(name string, close func() error) {
	a.closers = append(a.closers, closer{name, close})
}

// Close ends what was opened, in reverse, and returns what went wrong. It may
// be called again, also while another call of it is at work: both return when
// all is closed.
func (a *App) Close() error {
	a.closing.Lock()
	defer a.closing.Unlock()
	if len(a.closers) > 0 {
		fault.At("cleanup")
	}
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		if err := a.closers[i].close(); err != nil {
			errs = append(errs, fmt.Errorf("closing the %s: %w", a.closers[i].name, err))
		}
	}
	a.closers = nil
	return errors.Join(errs...)
}

// command returns what starts a plugin, whose files are still those that were
// registered.
func (a *App) command(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	if err := a.Registry.CheckPackage(ctx, pkg); err != nil {
		return nil, err
	}
	return a.Interpreters.Command(ctx, pkg, m)
}

// limitsOf are the limits of the configuration.
func limitsOf(p config.Plugins) sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(p.Memory), Scratch: int64(p.Scratch), FileSize: int64(p.FileSize),
		Processes: p.Processes, OpenFiles: p.OpenFiles, CPU: time.Duration(p.CPU),
	}
}

// refused puts on record that a call asked for what it may not have.
func (a *App) refused(log *slog.Logger, r service.Refusal) {
	rec := plugin.CallRecord{
		CallID: r.Call.ID, Operation: r.Target.Name(), Plugin: r.Target.Manifest.Name, Version: r.Target.Manifest.Version,
		PackageDigest: r.Target.Package.Digest, Kind: r.Target.Operation.Kind, Effects: r.Target.Operation.Effects,
		Status: plugin.InProgress, Error: &plugin.ErrorRecord{Code: r.Err.Code, Message: r.Err.Message},
		Correlation: r.Call.Trace.Correlation, Workflow: r.Call.Trace.Workflow, Step: r.Call.Trace.Step,
		Principal: r.Call.Principal.ID, Actor: r.Call.Actor, Origin: r.Call.Origin, Parent: r.Call.Parent, Session: r.Call.Session,
		Dry: r.Call.Dry != nil, SchemaVersion: plugin.SchemaVersion,
	}
	if err := a.Ledger.Record(context.Background(), r.Call.Tenant, plugin.EntryServiceRefused, &rec, time.Now(), false); err != nil {
		log.Error("a refusal could not be recorded", "call_id", r.Call.ID, "method", r.Method, "cause", err.Error())
	}
}

// describe asks a plugin's code what it does. A plugin that does not know the
// question has nothing to say.
func (a *App) describe(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (contract.Described, error) {
	if m.Runner.Kind == "script" {
		return a.tools.Scripts.Describe(ctx, pkg, m)
	}
	return Describe(ctx, a.Runner, pkg, m)
}

// Describe asks a plugin's code what it does, through any runner.
func Describe(ctx context.Context, r *process.Runner, pkg plugin.Package, m *plugin.Manifest) (contract.Described, error) {
	answer, err := r.Describe(ctx, pkg, m)
	var failed *plugin.Error
	if errors.As(err, &failed) && failed.PluginCode == fmt.Sprint(protocol.RPCMethodNotFound) {
		return contract.Described{}, nil
	}
	if err != nil {
		return contract.Described{}, err
	}
	return contract.ParseDescribed(answer, m.Name)
}
