package mount

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Options say how a [Runner] works. Processes, Secret and Check are required.
type Options struct {
	// Processes starts the programs of servers.
	Processes *process.Runner

	// Secret returns a secret that was set for a plugin in the scope of the system.
	Secret func(ctx context.Context, tenant, plugin, name string) (value string, found bool, err error)

	// Check returns an error if the files of a package are not those that were registered.
	Check func(ctx context.Context, pkg plugin.Package) error

	// Drifted is told what a server says of itself now, once it is not what was approved, and
	// once it is that again. It is called at most once a minute for each server, in a goroutine.
	Drifted func(ctx context.Context, tenant string, m *plugin.Manifest, definition []byte)

	// Refused is told of a request to a host that the program of a server may not reach, for each
	// call that the server is at work on. It may be nil.
	Refused func(t *plugin.Target, call *plugin.Call, why *plugin.Error)

	Grants Grants // nil where no one signs in to servers

	Egress egress.Grants
	Roots  *x509.CertPool // authorities for hosts that Egress maps; nil for those of the system

	Connect time.Duration // how long a server may take to start and to list its tools; 30 s
	Recheck time.Duration // how old the list of a server's tools may be when one is called; 30 s
	Idle    time.Duration // when an unused connection ends; 5 min
	Log     *slog.Logger  // discarded by default
}

// A Runner calls the tools of mounted servers. It is safe for concurrent use.
type Runner struct {
	opts Options
	life context.Context // ends when Close begins
	end  context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex // guards the rest
	servers map[key]*server
	closed  bool
}

// A key tells which calls share a connection: those of one package in one tenant, and of the
// same session or agent instance where its manifest wants that.
type key struct{ tenant, digest, program, scope string }

// New returns a runner. Close must be called.
func New(o Options) *Runner {
	set(&o.Connect, 30*time.Second)
	set(&o.Recheck, 30*time.Second)
	set(&o.Idle, 5*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runner{opts: o, servers: map[key]*server{}}
	r.life, r.end = context.WithCancel(context.Background())
	r.work.Go(r.janitor)
	return r
}

func set(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Close ends every connection, and returns once nothing of the runner is left.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	servers := r.servers
	r.servers = nil
	r.mu.Unlock()
	r.end()
	for _, s := range servers {
		s.close()
	}
	r.work.Wait()
	return nil
}

// Run calls the tool that an operation stands for.
func (r *Runner) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
	s, release, err := r.acquire(ctx, t, call)
	if err != nil {
		return plugin.Result{}, &fate{named(t, err), false}
	}
	defer release()
	session, err := s.ready(ctx, t.Operation.Name, nil)
	if err != nil {
		return plugin.Result{}, &fate{named(t, err), false}
	}
	defer s.begin(t, call)()
	res, err := s.call(ctx, session, t.Operation, call)
	if errors.Is(err, errSessionLost) { // the server did not take the call, so it is sent once more
		if session, err = s.ready(ctx, t.Operation.Name, session); err != nil {
			return plugin.Result{}, &fate{named(t, err), false}
		}
		res, err = s.call(ctx, session, t.Operation, call)
	}
	var lost *fate
	switch {
	case errors.As(err, &lost):
		return res, &fate{named(t, lost.err), lost.sent}
	case err != nil:
		return res, named(t, err)
	}
	return res, nil
}

// Define starts a server, or connects to one, and returns the bytes of its [Definition].
func (r *Runner) Define(ctx context.Context, tenant string, pkg plugin.Package, m *plugin.Manifest) ([]byte, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	s := &server{runner: r, tenant: tenant, manifest: m, pkg: pkg, turn: make(chan struct{}, 1)}
	defer s.close()
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	d, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	return d.Bytes()
}

// Isolation implements kernel.Runner: what runs elsewhere is in no sandbox of this host.
func (r *Runner) Isolation(t *plugin.Target) string {
	if t.Manifest.Runner.URL != "" {
		return "none"
	}
	return r.opts.Processes.Level()
}

// Preview implements kernel.Runner: a server shows nothing without doing it.
func (r *Runner) Preview(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
	return nil, plugin.Errorf(plugin.CodeInvalidInput, "a mounted server has no preview of a call")
}

// Reconcile implements kernel.Runner: a server does not say what became of an earlier call.
func (r *Runner) Reconcile(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, plugin.Errorf(plugin.CodeInvalidInput, "a mounted server does not say how an earlier call ended")
}

// within bounds a context by the life of the runner.
func (r *Runner) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(errClosing) })
	return ctx, func() { stop(); cancel(nil) }
}

var errClosing = plugin.Errorf(plugin.CodeCancelled, "the host is closing")

// acquire returns the connection that a call uses. release must be called.
func (r *Runner) acquire(ctx context.Context, t *plugin.Target, call *plugin.Call) (*server, func(), error) {
	k, alone := keyOf(t, call)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosing
	}
	s := r.servers[k]
	if s == nil || alone {
		s = &server{runner: r, tenant: call.Tenant, manifest: t.Manifest, pkg: t.Package, turn: make(chan struct{}, 1)}
	}
	if !alone {
		if s.busy >= maxAtOnce {
			return nil, nil, &plugin.Error{Code: plugin.CodeOverloaded, Message: "its server has as many calls as it may have at a time", Retryable: true, RetryAfter: time.Second}
		}
		r.servers[k] = s
	}
	s.busy++
	return s, func() {
		if alone {
			s.close()
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		s.busy--
		s.used = time.Now()
	}, nil
}

// maxAtOnce is how many calls one connection has at a time.
const maxAtOnce = 64

// keyOf returns which connection a call uses, and whether it has one of its own.
func keyOf(t *plugin.Target, call *plugin.Call) (k key, alone bool) {
	k = key{tenant: call.Tenant, digest: t.Package.Digest, program: t.Manifest.Name}
	switch i := t.Manifest.Isolation; {
	case i == plugin.IsolationTenant:
	case i == plugin.IsolationSession && call.Session != "":
		k.scope = "session/" + call.Session
	case i == plugin.IsolationAgent && call.Agent != "":
		k.scope = "agent/" + call.Agent
	default:
		return k, true
	}
	return k, false
}

// janitor ends connections that are not used.
func (r *Runner) janitor() {
	tick := time.NewTicker(max(r.opts.Idle/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-r.life.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		var idle []*server
		for k, s := range r.servers {
			if s.busy == 0 && time.Since(s.used) > r.opts.Idle {
				delete(r.servers, k)
				idle = append(idle, s)
			}
		}
		r.mu.Unlock()
		for _, s := range idle {
			s.close()
		}
	}
}

// keepTime is how long Drifted may take: a runner that closes waits for it, or a process that makes
// one call would keep nothing.
const keepTime = 10 * time.Second

// drifted tells of a definition, unless the runner is closing.
func (r *Runner) drifted(s *server, definition []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.opts.Drifted == nil {
		return
	}
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), keepTime)
		defer cancel()
		r.opts.Drifted(ctx, s.tenant, s.manifest, definition)
	})
}

// finish runs what ends a connection, which waits for the calls that it has. Close waits for it.
func (r *Runner) finish(stop func()) {
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.work.Go(stop)
	}
	r.mu.Unlock()
	if closed {
		stop()
	}
}

// A fate is an error with whether the server may have had the call, from which its effects
// follow.
type fate struct {
	err  error
	sent bool
}

// Sent reports whether the server may have had the call.
func (f *fate) Sent() bool    { return f.sent }
func (f *fate) Error() string { return f.err.Error() }
func (f *fate) Unwrap() error { return f.err }

// named puts the operation before the message of an error.
func named(t *plugin.Target, err error) error {
	e := *plugin.AsError(err)
	e.Message = t.Name() + ": " + e.Message
	return &e
}
