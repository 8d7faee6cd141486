// Package app puts the parts of a host together: it is the only package that
// knows all the others.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/base/telemetry"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/quota"
	"github.com/mortise-dev/mortise/internal/core/tail"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/recovery"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/host/tenants"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/runtime/selftest"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// The rows of the store that parts are wired with.
type (
	storeTx         = store.Tx
	callRow         = store.CallRow
	conversationRow = store.ConversationRow
)

// Options say which host is meant.
type Options struct {
	Home     string        // the data directory; made where it is missing
	Config   string        // the configuration file; mortise.yaml in Home where it is empty
	Database string        // the URL of a PostgreSQL database; what the configuration says where it is empty
	Tenant   string        // which tenant's host it is to be; the site's own where it is empty
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
	Config       config.Config    // as the host was opened; see [App.Now]
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
	Files        *extract.Extractor   // wins text from documents
	Reference    *reference.Data      // what plugins look things up in
	Models       *llm.Dispatcher      // nil where none is configured
	Connections  *account.Accounts    // that plugins act with
	Vault        *secret.Vault        // secrets that plugins need and no one may read
	Jobs         *job.Queue           // wake-ups, for the hosts that stay; opened when it is needed
	Telemetry    *telemetry.Telemetry // nil where nothing is told
	Sweepers     []worker.Sweeper     // what Work does, a kind each

	site      *App                            // the host whose machinery that of a tenant uses; nil for the site's own
	own       store.Store                     // what this tenant has of Store
	tail      *tail.Tail                      // of the whole ledger
	others    tenants.Set[*App]               // the hosts of other tenants, of the site's own
	divide    func(tenant string) store.Store // of the site's own
	scrub     func(ctx context.Context) error // of the site's own; see [store.Scrubber]
	turn      chan struct{}                   // of the registries of all tenants
	outer     bool                            // a tenant's, which closes that of the site
	live      live
	quotas    *quota.Quotas
	guard     *host.Guard
	served    *setup.Remembered // which sessions had processes; of the site's own
	approvers *host.Approvers
	recovery  *recovery.Recovery

	log      *slog.Logger
	scrubber *secret.Scrubber // of all that plugins say
	tools    *toolset.Toolset
	hide     []string // directories that no plugin is shown; the data directory is the first
	scratch  string   // this host's own directory for what its plugins write

	sweepEvery time.Duration // the time between two sweeps of Work; the default of package worker if 0

	closers []closer   // in the order of opening
	closing sync.Mutex // held while they are closed
}

// A closer is one part to close, by name.
type closer struct {
	name  string
	close func() error
}

func (a *App) dir(names ...string) string {
	return filepath.Join(append([]string{a.Home}, names...)...)
}

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
	if err := a.checkPackage(ctx, pkg); err != nil {
		return nil, err
	}
	return a.Interpreters.Command(ctx, pkg, m)
}

// Contract runs the contract tests that a tool brings, and returns what they print.
func (a *App) Contract(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]byte, error) {
	return selftest.Runner{Interpreters: a.Interpreters, Sandbox: a.Sandbox, Scratch: a.scratch, Hide: a.hide, Limits: limitsOf(a.Config.Plugins)}.Run(ctx, pkg, m)
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
		Principal: r.Call.Principal.Member(), Actor: r.Call.Actor, Origin: r.Call.Origin, Parent: r.Call.Parent, Session: r.Call.Session,
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

// define asks a mounted server for its tools.
func (a *App) define(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]byte, error) {
	return a.tools.Mounted.Define(ctx, a.Config.Tenant, pkg, m)
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
