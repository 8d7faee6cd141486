package sessionhost

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/plugin"
)

// A Server takes the calls of one session. Its fields are set before Serve.
type Server struct {
	Place
	Identity string        // of the program, its configuration and its data
	Idle     time.Duration // it ends after so long without a call; 30 minutes where it is 0

	// Call runs a call for a principal whom the configuration names.
	Call func(ctx context.Context, principal string, call plugin.Call) (plugin.Result, error)
	// Advance resumes a queued call.
	Advance func(ctx context.Context, id string) error
	Log     *slog.Logger // discarded where it is nil

	seen    string // the file that says that there was a session host
	earlier bool
	socket  os.FileInfo
	home    os.FileInfo // the data directory

	mu       sync.Mutex // guards the rest
	running  map[string]context.CancelCauseFunc
	closing  bool // no more calls
	now      bool // and those under way are cancelled
	lastUsed time.Time
	changed  chan struct{} // buffered; something above has changed
}

// lockTime is how long a session host waits for the one before it to be gone.
const lockTime = 8 * time.Second

// stopTime is how long a session host waits, when it is to end, for calls that it has
// cancelled.
const stopTime = 5 * time.Second

// ErrServed says that the session has a session host already.
var ErrServed = errors.New("the session has a session host")

// Serve takes calls until ctx ends, a client ends the session host, or it has been idle for
// long. Calls under way are cancelled then, and have ended when it returns. Open is
// called once it is certain that no other session host of the session lives, before the first
// call is taken, and what it returns before another may.
func (h *Server) Serve(ctx context.Context, open func(ctx context.Context) (closing func() error, err error)) (err error) {
	base, err := h.base()
	if err != nil {
		return err
	}
	if h.home, err = os.Lstat(h.Home); err != nil {
		return err
	}
	lock, err := h.lock(ctx, base+lockFile)
	if err != nil {
		return err
	}
	defer lock.Remove()
	if h.Idle == 0 {
		h.Idle = 30 * time.Minute
	}
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	h.running, h.changed, h.lastUsed = map[string]context.CancelCauseFunc{}, make(chan struct{}, 1), time.Now()
	h.seen = base + seenFile
	_, err = os.Lstat(h.seen)
	h.earlier = err == nil
	closing, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	listener, err := socket.Listen(base + socketFile)
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false) // the name may be the next session host's by then
	if h.socket, err = os.Lstat(base + socketFile); err != nil {
		return errors.Join(err, listener.Close())
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler:           h.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return life },
		ErrorLog:          slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(owned{listener}) }()
	h.wait(ctx, base+socketFile)
	h.refuseMore()
	// The name goes first, so that a client that arrives now starts another session host, which
	// waits for the lock.
	if is(base+socketFile, h.socket) {
		_ = os.Remove(base + socketFile)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if server.Shutdown(stop) != nil {
		end()
		_ = server.Close()
	}
	<-served
	h.drained(stop)
	return nil
}

// Earlier reports whether another session host served the session before this one:
// what its plugins kept in memory is lost. It is known once Serve calls open.
func (h *Server) Earlier() bool { return h.earlier }

// lock waits for the session host before to be gone, if there is one that ends.
func (h *Server) lock(ctx context.Context, path string) (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		lock, err := filelock.Try(path)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, ErrServed
		}
	}
}

// owned is a listener that lets only its owner in.
type owned struct{ net.Listener }

// Accept returns the next connection of the owner's.
func (l owned) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if checkPeer(conn) == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// lookEvery is how often a session host checks that clients can still find it.
const lookEvery = 2 * time.Second

// wait returns when the session host is to end: it is told to, or idle for long, or its
// socket is gone. Without the data directory it ends at once: what a call under way may
// still do is on no record, and no client waits for it.
func (h *Server) wait(ctx context.Context, path string) {
	for {
		h.mu.Lock()
		if !is(h.Home, h.home) {
			h.closing, h.now = true, true
		}
		busy, now := len(h.running) > 0, h.now
		left := time.Until(h.lastUsed.Add(h.Idle))
		if !is(path, h.socket) || !busy && left <= 0 {
			h.closing = true
		}
		closing := h.closing
		h.mu.Unlock()
		if now || closing && !busy {
			return
		}
		if busy {
			left = lookEvery
		}
		timer := time.NewTimer(min(left, lookEvery))
		select {
		case <-timer.C:
		case <-h.changed:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// is reports whether a path still names the file that it named.
func is(path string, file os.FileInfo) bool {
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(found, file)
}

// errEnding is what calls get from a session host that ends.
var errEnding = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the process that holds the session is ending; run the call again", Retryable: true}

// refuseMore takes no more calls, and cancels those under way.
func (h *Server) refuseMore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
	for _, cancel := range h.running {
		cancel(plugin.Errorf(plugin.CodeCancelled, "the session's process was ended"))
	}
}

// drained waits until no call is under way any more.
func (h *Server) drained(ctx context.Context) {
	for {
		h.mu.Lock()
		busy := len(h.running) > 0
		h.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-h.changed:
		case <-ctx.Done():
			return
		}
	}
}

// enter begins an exchange. leave ends it.
func (h *Server) enter(ctx context.Context, exchange string) (inside context.Context, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch _, taken := h.running[exchange]; {
	case h.closing:
		return nil, nil, errEnding
	case exchange == "" || taken:
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "an exchange of that name is under way")
	case len(h.running) >= maxCalls:
		return nil, nil, &plugin.Error{Code: plugin.CodeOverloaded, Message: "the session has too many calls under way", Retryable: true, RetryAfter: time.Second}
	}
	inside, cancel := context.WithCancelCause(ctx)
	h.running[exchange] = cancel
	return inside, func() {
		cancel(nil)
		h.mu.Lock()
		delete(h.running, exchange)
		h.lastUsed = time.Now()
		h.mu.Unlock()
		h.tell()
	}, nil
}

// tell wakes the goroutines that wait for a change.
func (h *Server) tell() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathHello, func(w http.ResponseWriter, _ *http.Request) {
		h.answer(w, hello{Identity: h.Identity, Session: h.Session, PID: os.Getpid()})
	})
	mux.HandleFunc("POST "+pathCall, h.call)
	mux.HandleFunc("POST "+pathAdvance, h.advance)
	mux.HandleFunc("POST "+pathCancel, h.cancel)
	mux.HandleFunc("POST "+pathEnd, h.end)
	return mux
}

// read reads the one object of a request.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(raw, into, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the request to the session's process cannot be read: %w", err)
	}
	return nil
}

// A stream writes the lines of one answer, until its end.
type stream struct {
	h    *Server
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
}

func (s *stream) write(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = l.End
		s.h.answer(s.w, l)
	}
}

// answer writes one object.
func (h *Server) answer(w http.ResponseWriter, value any) {
	raw, err := encode(value)
	if err != nil {
		h.Log.Error("an answer could not be written", "cause", err.Error())
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(raw)
	_ = http.NewResponseController(w).Flush()
}

func (h *Server) call(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := read(w, r, &in); err != nil {
		h.answer(w, line{Error: failureOf(err), End: true})
		return
	}
	ctx, leave, err := h.enter(r.Context(), in.Exchange)
	if err != nil {
		h.answer(w, line{Error: failureOf(err), End: true})
		return
	}
	defer leave()
	if err := os.WriteFile(h.seen, nil, 0o600); err != nil {
		h.answer(w, line{Error: failureOf(err), End: true})
		return
	}
	out := &stream{h: h, w: w}
	out.write(line{Taken: true})
	call := plugin.Call{
		Tenant: h.Tenant, Session: h.Session, Origin: plugin.OriginCLI, ID: in.ID, Operation: in.Operation, Input: []byte(in.Input), Key: in.Key,
		Fresh: in.Fresh, NoWait: in.NoWait, Timeout: time.Duration(in.TimeoutNS), Patience: time.Duration(in.Patience), Labels: in.Labels, Files: in.Files,
	}
	if !in.Quiet {
		call.Observe = func(e plugin.Event) { out.write(line{Event: &e}) }
	}
	res, err := h.Call(ctx, in.Principal, call)
	out.write(line{Result: &res, Error: failureOf(err), End: true})
}

func (h *Server) advance(w http.ResponseWriter, r *http.Request) {
	var in exchangeRequest
	err := read(w, r, &in)
	if err == nil {
		var ctx context.Context
		var leave func()
		if ctx, leave, err = h.enter(r.Context(), in.Exchange); err == nil {
			defer leave()
			h.answer(w, line{Taken: true})
			err = h.Advance(ctx, in.ID)
		}
	}
	h.answer(w, line{Error: failureOf(err), End: true})
}

// end takes no more calls. Those under way may go on, unless it is to be now.
func (h *Server) end(w http.ResponseWriter, r *http.Request) {
	var in ending
	if err := read(w, r, &in); err != nil {
		h.answer(w, line{Error: failureOf(err), End: true})
		return
	}
	h.mu.Lock()
	h.closing, h.now = true, h.now || in.Now
	h.mu.Unlock()
	h.answer(w, struct{}{})
	h.tell()
}

func (h *Server) cancel(w http.ResponseWriter, r *http.Request) {
	var in exchangeRequest
	if err := read(w, r, &in); err == nil {
		h.mu.Lock()
		cancel := h.running[in.Exchange]
		h.mu.Unlock()
		if cancel != nil {
			cancel(context.Canceled)
		}
	}
	h.answer(w, struct{}{})
}
