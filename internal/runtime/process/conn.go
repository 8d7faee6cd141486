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

// A conn is the host's end of one process of protocol 2. Besides those of
// its child and its outbox, one goroutine belongs to it:
//
//	read  owns stdout and alone completes calls
//
// and one for each request of the plugin that the host is answering. All have
// ended when close returns. Its methods are safe for concurrent use.
type conn struct {
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

	mu       sync.Mutex // guards the rest
	lastID   int64
	pending  map[int64]*exchange
	tokens   map[string]*exchange
	settling *exchange // answered just now, and followed or failed: stderr may still speak of it
	dead     error     // why it is gone; nil while it runs
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
	late     bool              // the caller is gone; guarded by conn.mu
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

func newConn(name string, stdin io.WriteCloser, stdout lineSource) *conn {
	return &conn{
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

// initialize opens the connection and holds the answer against what is expected.
func (c *conn) initialize(ctx context.Context, params protocol.Initialize, plugins []protocol.Peer) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	result, err := c.request(ctx, protocol.MethodInitialize, raw)
	var failed *plugin.Error
	switch {
	case errors.As(err, &failed) && failed.Code == plugin.CodePluginError:
		return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: initialize: %s", c.name, failed.Message)
	case err != nil:
		return err
	}
	in, err := protocol.ParseInitialized(result)
	if err != nil {
		return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: initialize: %w", c.name, err)
	}
	if in.Protocol != protocol.Version2 {
		return plugin.Errorf(plugin.CodeProtocolVersionMismatch, "%s: the plugin speaks protocol %.40q; the host speaks %q", c.name, in.Protocol, protocol.Version2)
	}
	for _, want := range plugins {
		if !slices.Contains(in.Plugins, want) {
			return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: the process does not serve %s %s, which its manifest names; it serves %.200v", c.name, want.Name, want.Version, in.Plugins)
		}
	}
	c.concurrency = in.Concurrency
	return nil
}

// request sends a request that is not a call, and waits for its result.
func (c *conn) request(ctx context.Context, method string, params []byte) (jsontext.Value, error) {
	x := &exchange{answer: make(chan answer, 1)}
	b, alone, err := c.begin(x)
	if err != nil {
		return nil, err
	}
	c.out.commit(protocol.AppendRequest(b, x.id, method, params), alone)
	select {
	case a := <-x.answer:
		if a.failure != nil {
			return nil, a.failure
		}
		return a.result, a.err
	case <-ctx.Done():
		c.forget(x)
		return nil, plugin.AsError(context.Cause(ctx))
	}
}

// begin registers x and opens the outbox for its frame; alone reports that no other
// exchange waits for an answer. The outbox's commit must follow.
func (c *conn) begin(x *exchange) (b []byte, alone bool, err error) {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return nil, false, &notSent{c.dead}
	}
	c.lastID++
	x.id = c.lastID
	alone = len(c.pending) == 0
	c.pending[x.id] = x
	if x.token != "" {
		c.tokens[x.token] = x
	}
	c.mu.Unlock()
	if b, err = c.out.begin(); err != nil {
		c.forget(x)
	}
	return b, alone, err
}

// notSent says that a request never left the host, because the connection had
// ended by then.
type notSent struct{ error }

// Sent reports that no plugin had the call.
func (*notSent) Sent() bool { return false }

// wasNotSent reports whether err says that of a request.
func wasNotSent(err error) bool {
	if err == nil {
		return false
	}
	var unsent *notSent
	return errors.As(err, &unsent)
}

func (e *notSent) Unwrap() error { return e.error }

// forget drops x: an answer to it, should one come, is an answer to nothing asked.
func (c *conn) forget(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, x.id)
	delete(c.tokens, x.token)
}

func (c *conn) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		return
	}
	if b, err := c.out.begin(); err == nil {
		c.out.commit(protocol.AppendNotification(b, method, raw), false)
	}
}

// read takes the plugin's lines until there are no more or one is no frame.
func (c *conn) read() {
	defer close(c.readDone)
	defer c.stdout.Leave()
	var pace pacer
	for {
		line, err := c.stdout.ReadLine()
		switch {
		case errors.Is(err, protocol.ErrLineTooLong):
			c.fail(c.malformed("a line is longer than the host accepts"))
			return
		case err != nil && c.stopping.Load(): // it was asked to, calls or no calls
			c.fail(errClosing)
			return
		case err != nil:
			c.fail(c.crash("the plugin ended while it was needed"))
			return
		}
		f, err := c.parse(line)
		if budget.Exceeded(err) {
			c.fail(plugin.Errorf(plugin.CodeOutputTooLarge, "%s: a line of the plugin %w", c.name, err))
			return
		}
		if err == nil && f.Unknown != "" {
			err = fmt.Errorf("unknown member %.60q", f.Unknown)
		}
		if err == nil {
			err = c.take(&f)
		}
		if err != nil {
			c.fail(c.malformed("%v; the line begins %.80q", err, line))
			return
		}
		if f.ID == nil { // a notification, which the host did not ask for
			pace.take(len(line) + paceLine)
		}
	}
}

// parse takes a line apart within the host's budget of memory.
func (c *conn) parse(line []byte) (f protocol.Frame, err error) {
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

func (c *conn) malformed(format string, args ...any) *plugin.Error {
	return &plugin.Error{Code: plugin.CodeMalformedResponse, Message: c.name + ": " + fmt.Sprintf(format, args...), Retryable: true}
}

// take acts on one frame. An error means that the frame breaks the protocol.
func (c *conn) take(f *protocol.Frame) error {
	switch {
	case f.IsResponse():
		return c.complete(f)
	case f.Method == protocol.MethodEmit:
		return c.emit(f.Params)
	case f.Method == protocol.MethodLog:
		return c.log(f.Params)
	case f.ID == nil:
		return nil // a notification from a later version
	default:
		c.serve(f)
		return nil
	}
}

// complete delivers an answer to the exchange that waits for it.
func (c *conn) complete(f *protocol.Frame) error {
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
	c.mu.Lock()
	x := c.pending[id]
	late := false
	if x != nil {
		delete(c.pending, id)
		delete(c.tokens, x.token)
		late = x.late
		if a.failure != nil || x.events != nil {
			c.settling = x
		}
	}
	c.mu.Unlock()
	switch {
	case x == nil:
		return fmt.Errorf("an answer to request %d, which is not waiting for one", id)
	case late:
		c.onLate()
	default:
		if len(a.result) > smallLine && x.ctx != nil {
			budget.Keep(x.ctx, c.stdout.Take())
		}
		x.answer <- a
	}
	return nil
}

// byToken returns the running call that a token belongs to, nil for none.
func (c *conn) byToken(token string) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens[token]
}

// fail ends the connection and its process.
func (c *conn) fail(err error) {
	c.end(err)
	c.kill()
}

// end ends the connection: every exchange gets err, and no more begin. The
// process is left to end by itself.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return
	}
	c.dead = err
	waiting := c.pending
	c.pending, c.tokens = map[int64]*exchange{}, map[string]*exchange{}
	late := 0
	for _, x := range waiting {
		if x.late {
			late++
		} else {
			x.answer <- answer{err: &interrupted{err}}
		}
	}
	c.mu.Unlock()
	for range late {
		c.onLate()
	}
}

// err returns why the connection is gone, nil while it runs.
func (c *conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// errClosing is what calls get that the host itself ends.
var errClosing = plugin.Errorf(plugin.CodeUnavailable, "the host is stopping this plugin")

// shutdown asks the plugin to end, and waits until it said that it will or ctx ends.
func (c *conn) shutdown(ctx context.Context) {
	_, _ = c.request(ctx, protocol.MethodShutdown, fmt.Appendf(nil, `{"deadline_ms":%d}`, stopGrace.Milliseconds()))
}

// wait returns once every goroutine of the connection has ended; the process's
// stdout must have come to its end.
func (c *conn) wait() {
	<-c.readDone
	c.answering.Wait()
	c.out.close()
	<-c.out.done
}
