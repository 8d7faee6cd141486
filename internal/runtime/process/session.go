package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A session is the host's end of one process of protocol 2. Besides those of
// its child and its outbox, one goroutine belongs to it:
//
//	read  owns stdout and alone completes calls
//
// and one for each request of the plugin that the host is answering. All have
// ended when close returns. Its methods are safe for concurrent use.
type session struct {
	name   string // of the plugin, for messages
	stdout lineSource
	out    *outbox
	crash  func(what string) *plugin.Error // how the process ended
	kill   func()                          // ends it; read then comes to its end
	unread func() bool                     // whether stderr has text that the host has not read
	onLate func()                          // a call that was given up has been answered after all
	onLog  func(call *plugin.Call, level, message string, fields jsontext.Value)
	token  func() string

	longest     int // bytes of a line that the plugin is told a line may have
	concurrency int
	serving     chan struct{} // one for each request of the plugin being answered
	answering   sync.WaitGroup
	readDone    chan struct{}
	stopping    atomic.Bool  // the host wants it to end
	asked       atomic.Int64 // bytes of its large requests that are being answered

	mu      sync.Mutex // guards the rest
	lastID  int64
	pending map[int64]*exchange
	tokens  map[string]*exchange
	failing *exchange // answered with a failure just now: stderr may still speak of it
	dead    error     // why it is gone; nil while it runs
}

// A lineSource yields the lines of a plugin.
type lineSource interface {
	ReadLine() ([]byte, error)
	Take() (leave func()) // what gives back the room of the last line
	Leave()               // it reads no more, and gives back the room of what it read
}

// An exchange is one request of the host that waits for its answer.
type exchange struct {
	id     int64
	answer chan answer // buffered

	// For what is asked about a call only.
	token    string
	ctx      context.Context
	call     *plugin.Call
	services plugin.Services
	events   chan plugin.Event // nil if the call has no listener
	offering sync.Mutex        // guards left
	left     bool              // no more events are taken
	untaken  atomic.Int64      // bytes of the events not yet taken
	late     bool              // the caller is gone; guarded by session.mu
}

type answer struct {
	result  jsontext.Value
	failure *plugin.Error // the plugin's own
	err     error         // there is no answer
	held    bool          // with err: the plugin is still at work all the same
}

// Bounds of what one process may have going on.
const (
	maxServing    = 64      // its requests being answered
	maxEvents     = 256     // events of one call not yet taken
	maxEventBytes = 8 << 20 // bytes of these
)

func newSession(name string, stdin io.WriteCloser, stdout lineSource) *session {
	return &session{
		name:     name,
		stdout:   stdout,
		out:      newOutbox(stdin),
		crash:    func(what string) *plugin.Error { return plugin.Errorf(plugin.CodeCrashed, "%s: %s", name, what) },
		kill:     func() {},
		unread:   func() bool { return false },
		onLate:   func() {},
		onLog:    func(*plugin.Call, string, string, jsontext.Value) {},
		token:    randomToken,
		longest:  protocol.MaxFrame2,
		serving:  make(chan struct{}, maxServing),
		readDone: make(chan struct{}),
		pending:  map[int64]*exchange{},
		tokens:   map[string]*exchange{},
	}
}

// randomToken returns 128 random bits in hexadecimal.
func randomToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[16:]) // never fails
	hex.Encode(raw[:], raw[16:])
	return string(raw[:])
}

// initialize opens the session and holds the answer against what is expected.
func (s *session) initialize(ctx context.Context, params protocol.Initialize, plugins []protocol.Peer) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	result, err := s.request(ctx, protocol.MethodInitialize, raw)
	var failed *plugin.Error
	switch {
	case errors.As(err, &failed) && failed.Code == plugin.CodePluginError:
		return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: initialize: %s", s.name, failed.Message)
	case err != nil:
		return err
	}
	in, err := protocol.ParseInitialized(result)
	if err != nil {
		return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: initialize: %w", s.name, err)
	}
	if in.Protocol != protocol.Version2 {
		return plugin.Errorf(plugin.CodeProtocolVersionMismatch, "%s: the plugin speaks protocol %.40q; the host speaks %q", s.name, in.Protocol, protocol.Version2)
	}
	for _, want := range plugins {
		if !slices.Contains(in.Plugins, want) {
			return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: the process does not serve %s %s, which its manifest names; it serves %.200v", s.name, want.Name, want.Version, in.Plugins)
		}
	}
	s.concurrency = in.Concurrency
	return nil
}

// request sends a request that is not a call, and waits for its result.
func (s *session) request(ctx context.Context, method string, params []byte) (jsontext.Value, error) {
	x := &exchange{answer: make(chan answer, 1)}
	b, alone, err := s.begin(x)
	if err != nil {
		return nil, err
	}
	s.out.commit(protocol.AppendRequest(b, x.id, method, params), alone)
	select {
	case a := <-x.answer:
		if a.failure != nil {
			return nil, a.failure
		}
		return a.result, a.err
	case <-ctx.Done():
		s.forget(x)
		return nil, plugin.AsError(context.Cause(ctx))
	}
}

// begin registers x and opens the outbox for its frame; alone reports that no other
// exchange waits for an answer. The outbox's commit must follow.
func (s *session) begin(x *exchange) (b []byte, alone bool, err error) {
	s.mu.Lock()
	if s.dead != nil {
		s.mu.Unlock()
		return nil, false, &notSent{s.dead}
	}
	s.lastID++
	x.id = s.lastID
	alone = len(s.pending) == 0
	s.pending[x.id] = x
	if x.token != "" {
		s.tokens[x.token] = x
	}
	s.mu.Unlock()
	if b, err = s.out.begin(); err != nil {
		s.forget(x)
	}
	return b, alone, err
}

// notSent says that a request never left the host, because the session had
// ended by then.
type notSent struct{ error }

// Sent reports that no plugin had the call.
func (*notSent) Sent() bool { return false }

func (e *notSent) Unwrap() error { return e.error }

// forget drops x: an answer to it, should one come, is an answer to nothing asked.
func (s *session) forget(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, x.id)
	delete(s.tokens, x.token)
}

func (s *session) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		return
	}
	if b, err := s.out.begin(); err == nil {
		s.out.commit(protocol.AppendNotification(b, method, raw), false)
	}
}

// read takes the plugin's lines until there are no more or one is no frame.
func (s *session) read() {
	defer close(s.readDone)
	defer s.stdout.Leave()
	var pace pacer
	for {
		line, err := s.stdout.ReadLine()
		switch {
		case errors.Is(err, protocol.ErrLineTooLong):
			s.fail(s.malformed("a line is longer than the host accepts"))
			return
		case err != nil && s.stopping.Load(): // it was asked to, calls or no calls
			s.fail(errClosing)
			return
		case err != nil:
			s.fail(s.crash("the plugin ended while it was needed"))
			return
		}
		f, err := s.parse(line)
		if budget.Exceeded(err) {
			s.fail(plugin.Errorf(plugin.CodeOutputTooLarge, "%s: a line of the plugin %w", s.name, err))
			return
		}
		if err == nil && f.Unknown != "" {
			err = fmt.Errorf("unknown member %.60q", f.Unknown)
		}
		if err == nil {
			err = s.take(&f)
		}
		if err != nil {
			s.fail(s.malformed("%v; the line begins %.80q", err, line))
			return
		}
		if f.ID == nil { // a notification, which the host did not ask for
			pace.take(len(line) + paceLine)
		}
	}
}

// parse takes a line apart within the host's budget of memory.
func (s *session) parse(line []byte) (f protocol.Frame, err error) {
	if len(line) <= smallLine {
		return protocol.ParseFrame(line)
	}
	var broken error
	err = budget.Do(budget.Weigh(line).Read(), func() error {
		f, broken = protocol.ParseFrame(line)
		return nil
	})
	return f, cmp.Or(err, broken)
}

// smallLine is up to which size a line is not weighed.
const smallLine = 16 << 10

func (s *session) malformed(format string, args ...any) *plugin.Error {
	return &plugin.Error{Code: plugin.CodeMalformedResponse, Message: s.name + ": " + fmt.Sprintf(format, args...), Retryable: true}
}

// take acts on one frame. An error means that the frame breaks the protocol.
func (s *session) take(f *protocol.Frame) error {
	switch {
	case f.IsResponse():
		return s.complete(f)
	case f.Method == protocol.MethodEmit:
		return s.emit(f.Params)
	case f.Method == protocol.MethodLog:
		return s.log(f.Params)
	case f.ID == nil:
		return nil // a notification from a later version
	default:
		s.serve(f)
		return nil
	}
}

// complete delivers an answer to the exchange that waits for it.
func (s *session) complete(f *protocol.Frame) error {
	id, ok := f.IntID()
	if !ok {
		return fmt.Errorf("an answer to %s, which the host never sent", f.ID)
	}
	a := answer{result: f.Result}
	if f.Error != nil {
		failure, err := protocol.ParseError(f.Error)
		if err != nil {
			return fmt.Errorf("error: %w", err)
		}
		a.failure = failure
	}
	s.mu.Lock()
	x := s.pending[id]
	late := false
	if x != nil {
		delete(s.pending, id)
		delete(s.tokens, x.token)
		late = x.late
		if a.failure != nil {
			s.failing = x
		}
	}
	s.mu.Unlock()
	switch {
	case x == nil:
		return fmt.Errorf("an answer to request %d, which is not waiting for one", id)
	case late:
		s.onLate()
	default:
		if len(a.result) > smallLine && x.ctx != nil {
			budget.Keep(x.ctx, s.stdout.Take())
		}
		x.answer <- a
	}
	return nil
}

// byToken returns the running call that a token belongs to, nil for none.
func (s *session) byToken(token string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[token]
}

// fail ends the session and its process.
func (s *session) fail(err error) {
	s.end(err)
	s.kill()
}

// end ends the session: every exchange gets err, and no more begin. The
// process is left to end by itself.
func (s *session) end(err error) {
	s.mu.Lock()
	if s.dead != nil {
		s.mu.Unlock()
		return
	}
	s.dead = err
	waiting := s.pending
	s.pending, s.tokens = map[int64]*exchange{}, map[string]*exchange{}
	late := 0
	for _, x := range waiting {
		if x.late {
			late++
		} else {
			x.answer <- answer{err: &interrupted{err}}
		}
	}
	s.mu.Unlock()
	for range late {
		s.onLate()
	}
}

// err returns why the session is gone, nil while it runs.
func (s *session) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// errClosing is what calls get that the host itself ends.
var errClosing = plugin.Errorf(plugin.CodeUnavailable, "the host is stopping this plugin")

// shutdown asks the plugin to end, and waits until it said that it will or ctx ends.
func (s *session) shutdown(ctx context.Context) {
	_, _ = s.request(ctx, protocol.MethodShutdown, fmt.Appendf(nil, `{"deadline_ms":%d}`, stopGrace.Milliseconds()))
}

// wait returns once every goroutine of the session has ended; the process's
// stdout must have come to its end.
func (s *session) wait() {
	<-s.readDone
	s.answering.Wait()
	s.out.close()
	<-s.out.done
}
