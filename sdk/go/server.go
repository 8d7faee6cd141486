package mortise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A server is the plugin's end of a session. The goroutine of serve reads; a
// goroutine of write writes what has collected; each call has one of its own.
type server struct {
	plugin *Plugin
	lines  *protocol.LineReader
	out    io.Writer
	opened protocol.Initialize

	once    bool         // version 1: the host takes no requests and no notifications
	longest atomic.Int64 // bytes of a line that the host accepts, newline not counted

	wake chan struct{} // buffered: there is something to write

	outMu   sync.Mutex // guards the two below
	buf     []byte
	closed  bool
	writing bool             // write has taken a buffer and is not done with it
	try     func([]byte) int // writes what can be written without waiting; nil if that cannot be told

	jobs chan job // to goroutines that have done a call and wait for the next

	mu      sync.Mutex // guards the rest
	calls   map[string]*Call
	lastID  int64
	pending map[string]chan *protocol.Frame
}

func newServer(p *Plugin, in io.Reader, out io.Writer) *server {
	s := &server{
		plugin:  p,
		lines:   protocol.NewLineReader(in, protocol.MaxFrame),
		out:     out,
		try:     protocol.TryWriter(out),
		wake:    make(chan struct{}, 1),
		jobs:    make(chan job),
		calls:   map[string]*Call{},
		pending: map[string]chan *protocol.Frame{},
	}
	s.longest.Store(protocol.MaxFrame2)
	return s
}

// serve answers the host until its lines end, or it asked for the end.
func (s *server) serve(line []byte) error {
	written := make(chan struct{})
	go s.write(written)
	err := s.read(line)
	close(s.jobs)
	s.outMu.Lock()
	s.closed = true
	close(s.wake)
	s.outMu.Unlock()
	<-written
	return err
}

func (s *server) read(line []byte) error {
	for {
		f, err := protocol.ParseFrame(line)
		if err != nil {
			return fmt.Errorf("the host sent no frame: %w", err)
		}
		if f.Method == protocol.MethodShutdown {
			s.result(f.ID, []byte("{}"))
			return nil
		}
		s.take(&f)
		if line, err = s.lines.ReadLine(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// take acts on one frame of the host.
func (s *server) take(f *protocol.Frame) {
	switch {
	case f.IsResponse():
		s.mu.Lock()
		waiting := s.pending[string(f.ID)]
		delete(s.pending, string(f.ID))
		s.mu.Unlock()
		if waiting != nil {
			own := *f
			waiting <- &own
		}
	case f.Method == protocol.MethodExecute, f.Method == protocol.MethodPreview, f.Method == protocol.MethodReconcile:
		s.execute(f)
	case f.Method == protocol.MethodHook:
		s.hook(f)
	case f.Method == protocol.MethodCancel:
		var cancel protocol.Cancel
		if json.Unmarshal(f.Params, &cancel) == nil {
			s.mu.Lock()
			if c := s.calls[cancel.Call]; c != nil {
				c.cancel(cancel.Reason)
			}
			s.mu.Unlock()
		}
	case f.Method == protocol.MethodInitialize:
		s.initialize(f)
	case f.Method == protocol.MethodDescribe:
		s.marshal(f.ID, s.plugin.describe())
	case f.ID != nil:
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCMethodNotFound, Message: "no such method: " + f.Method})
	}
}

func (s *server) initialize(f *protocol.Frame) {
	if err := json.Unmarshal(f.Params, &s.opened); err != nil {
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCInvalidParams, Message: err.Error()})
		return
	}
	if n := s.opened.Limits.FrameBytes; n > 0 {
		s.longest.Store(int64(n))
	}
	concurrency := s.plugin.Concurrency
	if concurrency == 0 {
		concurrency = 64
	}
	s.marshal(f.ID, protocol.Initialized{
		Protocol:    protocol.Version2,
		Plugins:     []protocol.Peer{{Name: s.plugin.name, Version: s.plugin.version}},
		Concurrency: concurrency,
		Features:    []string{"cancel", "emit"},
	})
}

// execute starts a call, or a question about one, in a goroutine of its own.
func (s *server) execute(f *protocol.Frame) {
	c := &Call{server: s}
	var op *operation
	var input jsontext.Value
	var effects []Effect
	var err error
	for m := protocol.ScanMembers(f.Params); err == nil && m.Next(); {
		switch value := m.Value; string(m.Name) {
		case "call":
			err = unquote(value, &c.token)
		case "operation":
			var full string
			err = unquote(value, &full)
			c.Operation = full[strings.LastIndexByte(full, '/')+1:]
			if op = s.plugin.operations[c.Operation]; op == nil {
				err = fmt.Errorf("%s has no operation %s", s.plugin.name, c.Operation)
			}
		case "input":
			input = value
		case "context":
			c.about = value
		case "deadline_ms":
			var ms int64
			ms, err = strconv.ParseInt(string(value), 10, 64)
			c.limit(ms)
		case "effects":
			err = json.Unmarshal(value, &effects)
		}
	}
	if err == nil && (op == nil || input == nil) {
		err = errors.New("operation or input is missing")
	}
	if err != nil {
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCInvalidParams, Message: err.Error()})
		return
	}
	if !op.knows(f.Method) {
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCMethodNotFound, Message: c.Operation + " has no " + f.Method})
		return
	}
	s.begin(job{f.Method, c, op, nil, f.ID, input, effects})
}

// begin lets a goroutine do the job.
func (s *server) begin(j job) {
	s.mu.Lock()
	s.calls[j.call.token] = j.call
	s.mu.Unlock()
	select {
	case s.jobs <- j:
	default:
		go s.work(j)
	}
}

// A job is one call to be answered, one question about it, or one hook.
type job struct {
	method  string
	call    *Call
	op      *operation // nil for a hook
	hook    *hook
	id      jsontext.Value
	input   jsontext.Value
	effects []Effect // of a reconcile
}

// work answers one call after the other: a goroutine that has done so has the
// stack for it.
func (s *server) work(j job) {
	for more := true; more; j, more = <-s.jobs {
		s.run(j)
	}
}

func (s *server) run(j job) {
	c := j.call
	result, raw, err := j.answer()
	s.mu.Lock()
	delete(s.calls, c.token)
	alone := len(s.calls) == 0
	s.mu.Unlock()
	if err != nil && c.Err() != nil {
		err = c.gaveUp()
	}
	c.end(context.Canceled)
	if err == nil {
		err = c.unsent()
	}
	if err != nil {
		s.fail(j.id, wire(err))
		return
	}
	err = s.line(alone, func(b []byte) []byte {
		if !raw {
			return protocol.AppendResult(b, j.id, result)
		}
		b = append(b, `{"jsonrpc":"2.0","id":`...)
		b = append(b, j.id...)
		b = append(b, `,"result":{"status":"succeeded","data":`...)
		b = append(b, result...)
		return append(b, "}}\n"...)
	})
	if err != nil {
		s.fail(j.id, wire(err))
	}
}

// unquote reads a JSON string.
func unquote(value jsontext.Value, into *string) error {
	text, err := jsontext.AppendUnquote(nil, value)
	*into = string(text)
	return err
}

// knows reports whether the operation has code for a method about calls.
func (op *operation) knows(method string) bool {
	switch method {
	case protocol.MethodPreview:
		return op.preview != nil
	case protocol.MethodReconcile:
		return op.reconcile != nil
	default:
		return true
	}
}

// answer does the job and returns the result member of its answer; where it is
// raw, only the data of a call that succeeded.
func (j job) answer() (result []byte, raw bool, err error) {
	defer j.caught(&err) // in a method that writes a type's JSON
	out, err := j.output()
	if err != nil {
		return nil, false, err
	}
	switch out := out.(type) {
	case jsontext.Value:
		return protocol.Line(out), j.method == protocol.MethodExecute, nil
	case answerer:
		result, err = marshal(out.answer())
	default:
		result, err = marshal(answer{Status: "succeeded", Data: out})
	}
	return result, false, err
}

// output does the job and returns what its function said: of a call the value, of
// everything else the result member itself. A panic is an error.
func (j job) output() (out any, err error) {
	defer j.caught(&err)
	var result []byte
	switch j.method {
	case protocol.MethodHook:
		result, err = j.hook.answer(j.call, Payload(j.input))
	case protocol.MethodPreview:
		var shown any
		if shown, err = j.op.preview(j.call, j.input); err == nil {
			result, err = marshal(map[string]any{"preview": shown})
		}
	case protocol.MethodReconcile:
		var found Reconciled
		if found, err = j.op.reconcile(j.call, j.input, j.effects); err == nil {
			result, err = found.marshal()
		}
	default:
		return j.op.run(j.call, j.input)
	}
	return jsontext.Value(result), err
}

// caught makes an error of a panic.
func (j job) caught(err *error) {
	if reason := recover(); reason != nil {
		fmt.Fprintf(os.Stderr, "panic in %s: %v\n%s", j.call.Operation, reason, debug.Stack())
		*err = Errorf("panic", "%v", reason)
	}
}

func marshal(value any) ([]byte, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, Errorf("INVALID_RESULT", "the result is not JSON: %v", err)
	}
	return raw, nil
}

// request asks the host, and waits for its answer or the end of the call.
func (s *server) request(c *Call, method string, params []byte) (jsontext.Value, error) {
	if s.once {
		return nil, &ServiceError{Code: "service_denied", Message: method + ": version 1 of the protocol has no host services; run the plugin with version 2"}
	}
	answer := make(chan *protocol.Frame, 1)
	s.mu.Lock()
	s.lastID++
	id := `"s` + strconv.FormatInt(s.lastID, 10) + `"`
	s.pending[id] = answer
	s.mu.Unlock()
	if err := s.line(false, func(b []byte) []byte { return protocol.AppendRequestID(b, []byte(id), method, params) }); err != nil {
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		return nil, err
	}
	select {
	case f := <-answer:
		if f.Error == nil {
			return f.Result, nil
		}
		var failed struct {
			Message string `json:"message"`
			Data    struct {
				Code         string         `json:"code"`
				Details      jsontext.Value `json:"details"`
				Retryable    bool           `json:"retryable"`
				RetryAfterMS int64          `json:"retry_after_ms"`
			} `json:"data"`
		}
		if err := json.Unmarshal(f.Error, &failed); err != nil {
			return nil, err
		}
		return nil, &ServiceError{
			Code: failed.Data.Code, Message: failed.Message, Details: failed.Data.Details, Retryable: failed.Data.Retryable, RetryAfterMS: failed.Data.RetryAfterMS,
		}
	case <-c.Done():
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		return nil, c.gaveUp()
	}
}

func (s *server) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return s.line(false, func(b []byte) []byte { return protocol.AppendNotification(b, method, raw) })
}

func (s *server) marshal(id []byte, value any) {
	raw, err := marshal(value)
	if err != nil {
		s.fail(id, wire(err))
		return
	}
	s.result(id, raw)
}

func (s *server) result(id, raw []byte) {
	if err := s.line(false, func(b []byte) []byte { return protocol.AppendResult(b, id, raw) }); err != nil {
		s.fail(id, wire(err))
	}
}

// fail answers with an error. Where its details do not fit into a line they are
// left out: the error itself is worth more.
func (s *server) fail(id []byte, e *protocol.Error) {
	spell := func(b []byte) []byte { return protocol.AppendError(b, id, e) }
	if s.line(false, spell) == nil || e.Data == nil {
		return
	}
	short := *e.Data
	short.Details, e.Data = nil, &short
	if s.line(false, spell) != nil { // the words too, under a limit that small
		e.Message = strings.ToValidUTF8(e.Message[:min(len(e.Message), 256)], "")
		_ = s.line(false, spell)
	}
}

// line adds one frame to what is to be written. alone says that no others are
// to be expected: then it is written at once, as far as the pipe takes it. A
// frame that is longer than the host accepts is an error and is not written: it
// would end the process and every call in it.
func (s *server) line(alone bool, frame func(b []byte) []byte) error {
	if s.once {
		return nil
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	before := len(s.buf)
	longer := frame(s.buf)
	if n, most := int64(len(longer)-before-1), s.longest.Load(); n > most {
		if cap(longer) <= 1<<20 {
			s.buf = longer[:before]
		}
		return tooLong(n, most)
	}
	s.buf = longer
	if alone && s.try != nil && !s.writing && !s.closed {
		s.buf = s.buf[:copy(s.buf, s.buf[s.try(s.buf):])]
	}
	if s.closed || len(s.buf) == 0 {
		return nil
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// tooLong is the error of a line that the host does not accept.
func tooLong(bytes, most int64) *Error {
	return &Error{code: "limit_exceeded", Message: fmt.Sprintf("a line of %d bytes; the host accepts %d: return less, in pages or as an artifact", bytes, most)}
}

// write writes whatever has collected at once, until the server is closed.
func (s *server) write(done chan<- struct{}) {
	defer close(done)
	var spare []byte
	for open := true; open; {
		_, open = <-s.wake
		for {
			runtime.Gosched() // other calls that can go on add their frames to the same write
			s.outMu.Lock()
			buf := s.buf
			s.writing = len(buf) > 0
			if !s.writing {
				s.outMu.Unlock()
				break
			}
			s.buf = spare[:0]
			s.outMu.Unlock()
			if _, err := s.out.Write(buf); err != nil {
				return
			}
			if spare = buf; cap(spare) > 1<<20 {
				spare = nil
			}
		}
	}
}
