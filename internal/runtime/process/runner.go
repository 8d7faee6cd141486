package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Options say how a [Runner] works. The zero value of each is a default.
type Options struct {
	Host    protocol.Peer // how the host calls itself in the handshake
	Scratch string        // where plugins' scratch directories are made; os.TempDir by default

	// Command turns a plugin's runner into the program to start and its
	// arguments, the first an absolute path. It is asked at every launch.
	Command func(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error)

	// Sandbox starts the programs; without one they are not caged. It stays its
	// owner's. Reads returns what a program that Command named may read besides
	// the package: its interpreter and the like. Hide are directories that look
	// empty to every program; Own is within, where the host keeps what interpreters
	// read (SDKs, bundles).
	Sandbox *sandbox.Sandbox
	Reads   func(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, argv []string) ([]string, error)
	Hide    []string
	Own     string

	// View returns the directory that holds the artifacts of a session, all that
	// there are when it returns. A plugin of isolation session may read it; without
	// a View there is none.
	View func(ctx context.Context, tenant, session string) (dir string, err error)

	// Earlier reports whether a process of another host served a session before.
	// It may be nil.
	Earlier func(tenant, session string) bool

	Limits sandbox.Limits // of each process and all that it starts; none where they are zero

	Services     []string      // host services that exist; a plugin is told those it asks for
	FrameBytes   int           // the longest line of protocol 2; 4 MiB
	Handshake    time.Duration // how long initialize may take; 10 s
	CancelGrace  time.Duration // how long a plugin may take to answer a call that was given up; 2 s
	Idle         time.Duration // when a process shared by a tenant ends; 5 min
	SessionIdle  time.Duration // when a process of a session or agent ends; 30 min
	MaxProcesses int           // at most so many at a time; 64
	MaxWaiting   int           // calls that wait for the processes of one scope; 4096
	PerTenant    int           // processes of one package in one tenant; the number of CPUs
	Standby      bool          // keep one process of scope call handshaken ahead
	Log          *slog.Logger  // what plugins log and write to stderr; discarded by default
}

func (o Options) withDefaults() Options {
	set(&o.Scratch, os.TempDir())
	set(&o.FrameBytes, protocol.MaxFrame2)
	set(&o.Handshake, 10*time.Second)
	set(&o.CancelGrace, 2*time.Second)
	set(&o.Idle, 5*time.Minute)
	set(&o.SessionIdle, 30*time.Minute)
	set(&o.MaxProcesses, 64)
	set(&o.PerTenant, runtime.NumCPU())
	set(&o.MaxWaiting, 4096)
	set(&o.Log, slog.New(slog.DiscardHandler))
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Runner runs calls in plugin processes. It is safe for concurrent use.
type Runner struct {
	opts    Options
	graces  graces
	sandbox *sandbox.Sandbox
	own     bool            // the sandbox is ours to close
	life    context.Context // ends when Close begins
	end     context.CancelFunc
	work    sync.WaitGroup // starts, stops and the janitor

	mu     sync.Mutex // guards the rest
	groups map[key]*group
	count  int // processes there are, started or starting
	past   past
	closed bool

	sessionsEnded bool // by EndSession

	keptUsed atomic.Int64 // when a process that keeps something ended a call, in nanoseconds
}

// A key tells which calls may share a process: the same package, for the same
// tenant, session, agent or call (CORE.md 5). The plugin is part of it because two
// of one package may have different programs; it is empty where one program
// serves them all.
type key struct {
	tenant, digest, program string
	scope                   protocol.Scope
	artifacts               string // the files it may read, where it is caged
	dry                     string // the session that a dry run reads the artifacts of
}

// New returns a runner. Close must be called.
func New(opts Options) *Runner {
	r := &Runner{opts: opts.withDefaults(), graces: defaultGraces, sandbox: opts.Sandbox, groups: map[key]*group{}}
	if r.sandbox == nil {
		r.sandbox, r.own = sandbox.Uncaged(), true
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.work.Go(r.janitor)
	return r
}

// Level is the isolation of every process that this runner starts: none, partial
// or full. One that would have less is not started.
func (r *Runner) Level() string { return string(r.sandbox.Report().Level) }

// Isolation returns the level that a plugin runs at: the same for all of them.
func (r *Runner) Isolation(*plugin.Target) string { return r.Level() }

// Run carries out one call and returns what the plugin said, unchecked but for
// its shape. A failure that the plugin itself reports comes with whatever else
// it answered.
func (r *Runner) Run(ctx context.Context, target *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error) {
	if target.Manifest.Runner.Protocol == protocol.Version1 {
		return r.runOnce(ctx, target, call)
	}
	return work(ctx, r, target, call, func(w *worker) (plugin.Result, bool, error) {
		w.attach(services)
		res, held, err := w.execute(ctx, target, call, services)
		w.tell(&res, err)
		brief(&res, target, call)
		return res, held, err
	})
}

// work finds or starts a process that may serve the call, and lets it do
// something for it. do reports whether the plugin is still at work afterwards.
func work[T any](ctx context.Context, r *Runner, target *plugin.Target, call *plugin.Call, do func(w *worker) (res T, held bool, err error)) (T, error) {
	var none T
	holder := waitfor.From(ctx)
	for {
		g, w, err := r.acquire(ctx, target, call)
		if err != nil {
			return none, err
		}
		res, held, err := do(w)
		if held {
			g.hold(w, holder, err)
		} else {
			g.release(w, holder, err)
		}
		if !wasNotSent(err) { // else it ended just before: another may serve
			return res, of(target, err)
		}
	}
}

// Describe starts the plugin's process only to ask what its code knows of its
// operations, and returns the answer as it came.
func (r *Runner) Describe(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (jsontext.Value, error) {
	return r.described(ctx, pkg, m, "{}", r.opts.Handshake)
}

// rehearsing is how long a plugin may take to run its operations against no host.
const rehearsing = time.Minute

// Rehearse has what serves a Shu plugin run its operations against a host that is
// none, and returns what is wrong with them.
func (r *Runner) Rehearse(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (jsontext.Value, error) {
	return r.described(ctx, pkg, m, `{"rehearse":true}`, rehearsing)
}

// described asks a process of its own about the plugin.
func (r *Runner) described(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, params string, within time.Duration) (jsontext.Value, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	g := &group{runner: r, manifest: m, pkg: pkg, key: key{scope: protocol.Scope{Kind: plugin.IsolationCall, ID: "describe"}}}
	ctx, cancel := context.WithTimeoutCause(ctx, within,
		plugin.Errorf(plugin.CodeTimeout, "%s: the plugin did not describe itself within %s", g.name(), within))
	defer cancel()
	w, err := r.start(ctx, g)
	if err != nil {
		return nil, err
	}
	defer w.close(true)
	return w.request(ctx, protocol.MethodDescribe, []byte(params))
}

// enter registers work that is not a worker's own, and returns a context that
// ends with the runner. leave must be called.
func (r *Runner) enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosing
	}
	r.work.Add(1)
	inside, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(errClosing) })
	return inside, func() { stop(); cancel(nil); r.work.Done() }, nil
}

// group returns the group of processes that may serve the call.
func (r *Runner) group(ctx context.Context, target *plugin.Target, call *plugin.Call) (*group, error) {
	k := keyOf(target, call)
	shared := sharesProcess(target.Manifest) && k.scope.Kind == plugin.IsolationSession // all its calls have one process and its view
	if shared {
		if i := slices.IndexFunc(call.Files, func(f plugin.File) bool { return !f.Session }); i >= 0 {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s reads what is in its session and nothing else: register %s there, with --session and --artifact, or with 'mortise artifacts add'", target.Manifest.Name, call.Files[i].Path)
		}
		if g := r.known(k); g != nil {
			return g, nil // what is new in the session, session.open shows
		}
	}
	view, err := r.view(ctx, k)
	if err != nil {
		return nil, named(target.Manifest.Name, plugin.AsError(err))
	}
	var artifacts []sandbox.File
	if !shared {
		if artifacts, k.artifacts, err = r.artifacts(call); err != nil {
			return nil, named(target.Manifest.Name, plugin.AsError(err))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosing
	}
	g := r.groups[k]
	if g == nil {
		g = &group{runner: r, key: k, manifest: target.Manifest, pkg: target.Package, artifacts: artifacts, view: view, limit: 1, idle: r.opts.SessionIdle}
		switch k.scope.Kind {
		case plugin.IsolationTenant:
			g.limit, g.idle = r.opts.PerTenant, r.opts.Idle
		case plugin.IsolationCall:
			g.limit, g.idle = r.opts.MaxProcesses, r.opts.Idle
		}
		r.inherit(g)
		r.groups[k] = g
	}
	return g, nil
}

// keyOf returns the key of the processes that may serve a call, without the files it may read.
func keyOf(target *plugin.Target, call *plugin.Call) key {
	k := key{tenant: call.Tenant, digest: target.Package.Digest, program: target.Manifest.Name, scope: scopeOf(target.Manifest, call)}
	if call.Dry != nil && target.Manifest.Isolation == plugin.IsolationSession {
		k.dry = call.Session
	}
	if sharesProcess(target.Manifest) {
		k.program = ""
	}
	return k
}

// Room returns [plugin.CodeOverloaded] where so many calls wait for the processes that may
// serve a call that it would be refused. Calls with files of their own are not foreseen.
func (r *Runner) Room(target *plugin.Target, call *plugin.Call) error {
	g := r.known(keyOf(target, call))
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crowded()
}

// known returns the group of a key, nil if there is none.
func (r *Runner) known(k key) *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	return r.groups[k]
}

// view returns the directory of artifacts that processes of that key may read,
// filled with all there are; "" for none.
func (r *Runner) view(ctx context.Context, k key) (string, error) {
	session := k.dry
	if k.scope.Kind == plugin.IsolationSession {
		session = k.scope.ID
	}
	if r.opts.View == nil || session == "" {
		return "", nil
	}
	return r.opts.View(ctx, k.tenant, session)
}

// scopeOf returns the scope of the process a call needs. A call outside any session or
// agent does not share its process. Nor does a dry run, because the state that it
// leaves in memory describes effects that never happened.
func scopeOf(m *plugin.Manifest, call *plugin.Call) protocol.Scope {
	switch {
	case call.Dry != nil:
		return protocol.Scope{Kind: plugin.IsolationCall}
	case m.Isolation == plugin.IsolationTenant:
		return protocol.Scope{Kind: plugin.IsolationTenant, ID: call.Tenant}
	case m.Isolation == plugin.IsolationSession && call.Session != "":
		return protocol.Scope{Kind: plugin.IsolationSession, ID: call.Session}
	case m.Isolation == plugin.IsolationAgent && call.Agent != "":
		return protocol.Scope{Kind: plugin.IsolationAgent, ID: call.Agent}
	default:
		return protocol.Scope{Kind: plugin.IsolationCall}
	}
}

// reserve makes room for one more process, at the cost of one that is idle.
func (r *Runner) reserve() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errClosing
	}
	r.count++
	over := r.count > r.opts.MaxProcesses
	var groups []*group
	if over {
		for _, g := range r.groups {
			groups = append(groups, g)
		}
	}
	r.mu.Unlock()
	if !over {
		return nil
	}
	var oldest *worker
	for _, g := range groups {
		if w := g.oldestIdle(); w != nil && (oldest == nil || w.lastUsed.Before(oldest.lastUsed)) {
			oldest = w
		}
	}
	if oldest == nil || !oldest.group.retireIdle(oldest) {
		r.unreserve()
		return &plugin.Error{Code: plugin.CodeOverloaded, Message: fmt.Sprintf("all %d plugin processes are at work", r.opts.MaxProcesses), Retryable: true, RetryAfter: time.Second}
	}
	return nil
}

func (r *Runner) unreserve() {
	r.mu.Lock()
	r.count--
	r.mu.Unlock()
}

// start launches a process for g and opens its connection.
func (r *Runner) start(ctx context.Context, g *group) (*worker, error) {
	if err := r.reserve(); err != nil {
		return nil, err
	}
	w, err := r.open(ctx, g)
	if err != nil {
		r.unreserve()
		return nil, err
	}
	return w, nil
}

func (r *Runner) open(ctx context.Context, g *group) (*worker, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.Handshake,
		plugin.Errorf(plugin.CodeTimeout, "%s: the plugin did not finish its handshake within %s", g.name(), r.opts.Handshake))
	defer cancel()
	l, err := r.program(ctx, g.pkg, g.manifest)
	if err != nil {
		return nil, err
	}
	l.name, l.data = g.name(), g.readable()
	w := &worker{group: g, lastUsed: time.Now()}
	ready := make(chan struct{}) // closed once w.conn is there
	w.child, err = r.launch(ctx, l, func(line string) {
		<-ready
		w.conn.stderr(line)
	})
	if err != nil {
		return nil, err
	}
	fault.At("spawn")
	lines := protocol.NewLineReader(w.child.stdout, r.opts.FrameBytes)
	c := newConn(g.name(), w.child.stdin, lines)
	lines.Room = func(bytes int) func() {
		return budget.Line(bytes, w.child.exited, func() {
			c.fail(c.malformed("a line of more than %d KiB was not finished while other plugins waited for the memory it takes", budget.LineFree>>10))
		})
	}
	c.longest, c.crash = r.opts.FrameBytes, w.child.crashed
	c.kill, c.unread = w.child.kill, w.child.unread
	c.onLate = func() { g.late(w) }
	c.onLog = func(call *plugin.Call, level, message string, fields jsontext.Value) {
		r.log(g, call, level, message, fields)
	}
	w.conn = c
	close(ready)
	go c.read()
	services := slices.DeleteFunc(slices.Clone(g.manifest.Capabilities), func(name string) bool { return !slices.Contains(r.opts.Services, name) })
	if services == nil {
		services = []string{}
	}
	err = c.initialize(ctx, protocol.Initialize{
		Protocol:      protocol.Version2,
		Host:          r.opts.Host,
		PackageDigest: g.pkg.Digest,
		Scope:         g.key.scope,
		Services:      services,
		Limits:        protocol.Limits{FrameBytes: r.opts.FrameBytes, InFlight: maxServing},
		Paths:         protocol.Paths{Scratch: w.child.scratch, Artifacts: g.view},
	}, g.peers())
	if err != nil {
		c.fail(errClosing)
		w.child.destroy()
		c.wait()
		return nil, err
	}
	w.child.tail.shaken.Store(true)
	fault.At("handshake")
	return w, nil
}

// levelOf returns a level of the protocol as the log knows it; info is the default.
func levelOf(level string) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// log writes a plugin's log record into the host's own log, with what it
// belongs to. Records below the level that the manifest names are left out
// (kernel contracts, 5.1.1: observability.log_level).
func (r *Runner) log(g *group, call *plugin.Call, level, message string, fields jsontext.Value) {
	at := levelOf(level)
	if kept := g.manifest.Observability.LogLevel; kept != "" && at < levelOf(kept) || !r.opts.Log.Enabled(r.life, at) {
		return
	}
	var attrs []slog.Attr
	switch {
	case !sharesProcess(g.manifest):
		attrs = append(attrs, slog.String("plugin", g.manifest.Name+"@"+g.manifest.Version))
	case call != nil:
		attrs = append(attrs, slog.String("operation", call.Operation))
	}
	if call != nil {
		attrs = append(attrs, slog.String("call_id", call.ID), slog.String("correlation_id", call.Trace.Correlation), slog.String("tenant", call.Tenant))
	}
	var members map[string]any
	switch {
	case len(fields) > maxFields:
		attrs = append(attrs, slog.String("fields", fmt.Sprintf("left out: %d bytes, and at most %d are shown", len(fields), maxFields)))
	case len(fields) > 0 && json.Unmarshal(fields, &members) == nil && len(members) > 0:
		attrs = append(attrs, slog.Any("fields", members))
	}
	r.opts.Log.LogAttrs(r.life, at, message, attrs...)
}

// maxFields is how many bytes of fields a line of the log has.
const maxFields = 16 << 10
