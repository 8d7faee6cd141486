package mortise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

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
	return &server{
		plugin:  p,
		lines:   protocol.NewLineReader(in, protocol.MaxFrame),
		out:     out,
		try:     protocol.TryWriter(out),
		wake:    make(chan struct{}, 1),
		jobs:    make(chan job),
		calls:   map[string]*Call{},
		pending: map[string]chan *protocol.Frame{},
	}
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
				c.cancel()
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
			c.Limit = time.Duration(ms) * time.Millisecond
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
	if c.Err() != nil && err != nil {
		err = ErrCancelled
	}
	c.cancel()
	if err != nil {
		s.fail(j.id, wire(err))
		return
	}
	s.line(alone, func(b []byte) []byte {
		if !raw {
			return protocol.AppendResult(b, j.id, result)
		}
		b = append(b, `{"jsonrpc":"2.0","id":`...)
		b = append(b, j.id...)
		b = append(b, `,"result":{"status":"succeeded","data":`...)
		b = append(b, result...)
		return append(b, "}}\n"...)
	})
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
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Fprintf(os.Stderr, "panic in %s: %v\n%s", j.call.Operation, reason, debug.Stack())
			err = Errorf("panic", "%v", reason)
		}
	}()
	switch j.method {
	case protocol.MethodHook:
		result, err = j.hook.answer(j.call, Payload(j.input))
		return result, false, err
	case protocol.MethodPreview:
		shown, err := j.op.preview(j.call, j.input)
		if err != nil {
			return nil, false, err
		}
		result, err = marshal(map[string]any{"preview": shown})
		return result, false, err
	case protocol.MethodReconcile:
		found, err := j.op.reconcile(j.call, j.input, j.effects)
		if err != nil {
			return nil, false, err
		}
		result, err = found.marshal()
		return result, false, err
	}
	out, err := j.op.run(j.call, j.input)
	if err != nil {
		return nil, false, err
	}
	switch out := out.(type) {
	case jsontext.Value:
		return protocol.Line(out), true, nil
	case answerer:
		result, err = marshal(out.answer())
	default:
		result, err = marshal(answer{Status: "succeeded", Data: out})
	}
	return result, false, err
}

func marshal(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, Errorf("INVALID_RESULT", "the result is not JSON: %v", err)
	}
	return raw, nil
}

// request asks the host, and waits for its answer or the end of the call.
func (s *server) request(c *Call, method string, params []byte) (jsontext.Value, error) {
	answer := make(chan *protocol.Frame, 1)
	s.mu.Lock()
	s.lastID++
	id := `"s` + strconv.FormatInt(s.lastID, 10) + `"`
	s.pending[id] = answer
	s.mu.Unlock()
	s.line(false, func(b []byte) []byte { return protocol.AppendRequestID(b, []byte(id), method, params) })
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
		return nil, ErrCancelled
	}
}

func (s *server) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		return
	}
	s.line(false, func(b []byte) []byte { return protocol.AppendNotification(b, method, raw) })
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
	s.line(false, func(b []byte) []byte { return protocol.AppendResult(b, id, raw) })
}

func (s *server) fail(id []byte, e *protocol.Error) {
	s.line(false, func(b []byte) []byte { return protocol.AppendError(b, id, e) })
}

// line adds one frame to what is to be written. alone says that no others are
// to be expected: then it is written at once, as far as the pipe takes it.
func (s *server) line(alone bool, frame func(b []byte) []byte) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	s.buf = frame(s.buf)
	if alone && s.try != nil && !s.writing && !s.closed {
		s.buf = s.buf[:copy(s.buf, s.buf[s.try(s.buf):])]
	}
	if s.closed || len(s.buf) == 0 {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write writes whatever has collected at once, until the server is closed.
func (s *server) write(done chan<- struct{}) {
	defer close(done)
	var spare []byte
	for open := true; open; {
		_, open = <-s.wake
		for {
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

// isVersion1 reports whether a first line opens a conversation of version 1.
func isVersion1(line []byte) bool {
	if !bytes.Contains(line, []byte(`"handshake"`)) {
		return false
	}
	var hello protocol.Handshake
	return json.Unmarshal(line, &hello) == nil && hello.Type == protocol.TypeHandshake
}

// serveOnce answers one call of version 1.
func (s *server) serveOnce(line []byte) error {
	var hello protocol.Handshake
	if err := json.Unmarshal(line, &hello); err != nil {
		return err
	}
	version := protocol.RuntimeVersion
	if hello.ProtocolVersion == protocol.Version1 {
		version = protocol.Version1
	}
	if err := s.say(protocol.HandshakeReply{Type: protocol.TypeHandshake, Manifest: protocol.V1Manifest{
		PluginID: s.plugin.name, PluginVersion: s.plugin.version, ProtocolVersion: version,
		ExposedTools: s.plugin.order, Capabilities: []string{},
	}}); err != nil {
		return err
	}
	line, err := s.lines.ReadLine()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	var request protocol.Request
	if err := json.Unmarshal(line, &request); err != nil {
		return err
	}
	return s.say(s.respond(&request))
}

func (s *server) respond(request *protocol.Request) protocol.Response {
	r := protocol.Response{Type: protocol.TypeResponse, RequestID: request.RequestID, Status: "error"}
	op := s.plugin.operations[request.ToolName]
	if op == nil {
		r.Error = &protocol.V1Error{Code: "not_found", Message: "no such tool: " + request.ToolName}
		return r
	}
	c := &Call{server: s, Operation: request.ToolName}
	out, err := op.run(c, request.Input)
	var data []byte
	if err == nil {
		if full, ok := out.(answerer); ok {
			out = full.answer().Data
		}
		data, err = marshal(out)
	}
	if err != nil {
		e := wire(err)
		r.Error = &protocol.V1Error{Code: e.Data.PluginCode, Message: e.Message}
		if r.Error.Code == "" {
			r.Error.Code = e.Data.Code
		}
		return r
	}
	r.Status, r.Output, r.Metadata = "ok", data, jsontext.Value("{}")
	return r
}

func (s *server) say(message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(raw, '\n'))
	return err
}
