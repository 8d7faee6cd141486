package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mortise-dev/mortise/internal/host"
)

const (
	maxLine   = 5 << 20          // bytes of a message that comes in
	maxAtOnce = 64               // requests that are passed on at a time
	lastWords = 10 * time.Second // for what is under way when there is no more input
)

// Stdio serves one caller of a host of this process on two streams, a message a line, until the
// input or ctx ends. What it writes is the protocol and nothing else.
func Stdio(ctx context.Context, in io.Reader, out io.Writer, api host.API, by host.Caller, o Options) error {
	o = o.complete()
	answer := Handler(api, by, o)
	return Forward(ctx, in, out, func(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
		return asked(ctx, o.Log, answer, header, body)
	})
}

// asked has a handler of this process answer a message.
func asked(ctx context.Context, log *slog.Logger, answer http.Handler, header http.Header, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header
	from, to := io.Pipe()
	w := &piped{header: http.Header{}, to: to, begun: make(chan struct{})}
	go func() {
		defer to.Close()
		defer w.WriteHeader(http.StatusInternalServerError) // where nothing was said
		defer func() {
			if fault := recover(); fault != nil {
				log.Error("a request panicked", "cause", fmt.Sprint(fault), "stack", string(debug.Stack()))
			}
		}()
		answer.ServeHTTP(w, r)
	}()
	select {
	case <-w.begun:
		return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header, Body: from}, nil
	case <-ctx.Done():
		_ = from.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
}

// A piped is an answer whose body is read as it is written.
type piped struct {
	header http.Header
	status int
	to     *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
}

// Header implements [http.ResponseWriter].
func (p *piped) Header() http.Header { return p.header }

// WriteHeader implements [http.ResponseWriter].
func (p *piped) WriteHeader(status int) {
	p.once.Do(func() { p.status = status; close(p.begun) })
}

// Write implements [http.ResponseWriter].
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.to.Write(b)
}

// Flush implements [http.Flusher].
func (p *piped) Flush() {}

// A Post sends a message to a host that serves, at its /mcp.
type Post func(ctx context.Context, header http.Header, body []byte) (*http.Response, error)

// Forward passes each message of a stream on to a host, and what that answers back.
func Forward(ctx context.Context, in io.Reader, out io.Writer, post Post) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarder{post: post, out: out, running: map[string]context.CancelFunc{}, slots: make(chan struct{}, maxAtOnce)}
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case lines <- bytes.Clone(scanner.Bytes()):
			case <-ctx.Done():
				return
			}
		}
		failed <- scanner.Err()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more {
				stop := time.AfterFunc(lastWords, cancel)
				defer stop.Stop()
				f.under.Wait()
				return <-failed
			}
			if len(bytes.TrimSpace(line)) > 0 {
				f.take(ctx, line)
			}
		}
	}
}

// A forwarder passes messages on.
type forwarder struct {
	post  Post
	slots chan struct{}
	under sync.WaitGroup

	mu       sync.Mutex
	out      io.Writer
	running  map[string]context.CancelFunc // by the id of the request
	revision string                        // that was agreed on, before 2026-07-28
}

// A message is what is looked at of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Revision string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// take passes a message on. A request is answered when it is; what comes after initialize waits
// for it.
func (f *forwarder) take(ctx context.Context, line []byte) {
	if batch, _ := isBatch(bufio.NewReader(bytes.NewReader(line))); batch {
		f.refuse(json.RawMessage("null"), jsonrpc.CodeInvalidRequest, noBatches)
		return
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		f.refuse(json.RawMessage("null"), -32700, "the line is not a message: "+err.Error())
		return
	}
	if m.Method == "notifications/cancelled" {
		f.mu.Lock()
		defer f.mu.Unlock()
		if stop := f.running[string(m.Params.RequestID)]; stop != nil {
			stop()
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	f.running[string(m.ID)] = cancel
	f.mu.Unlock()
	f.slots <- struct{}{}
	f.under.Add(1)
	pass := func() {
		defer f.under.Done()
		defer func() { <-f.slots }()
		defer cancel()
		err := f.pass(ctx, &m, line)
		f.mu.Lock()
		delete(f.running, string(m.ID))
		f.mu.Unlock()
		if err != nil && ctx.Err() == nil && len(m.ID) > 0 {
			f.refuse(m.ID, -32603, err.Error())
		}
	}
	if m.Method == "initialize" || len(m.ID) == 0 {
		pass()
		return
	}
	go pass()
}

// pass passes one message on, and what is answered to it back.
func (f *forwarder) pass(ctx context.Context, m *message, line []byte) error {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	f.mu.Lock()
	revision := m.Params.Meta.Revision
	if revision == "" {
		revision = f.revision
	}
	f.mu.Unlock()
	if revision != "" {
		header.Set("Mcp-Protocol-Version", revision)
	}
	if m.Params.Meta.Revision != "" {
		header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			header.Set("Mcp-Name", name)
		}
	}
	res, err := f.post(ctx, header, line)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return f.stream(m, res.Body)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if said := new(struct{ JSONRPC string }); kind == "application/json" && json.Unmarshal(raw, said) == nil && said.JSONRPC != "" {
		return f.back(m, raw)
	}
	if res.StatusCode >= 300 {
		problem := struct{ Code, Detail string }{}
		if json.Unmarshal(raw, &problem) == nil && problem.Code != "" {
			return fmt.Errorf("%s: %s", problem.Code, problem.Detail)
		}
		return fmt.Errorf("the host answers %s: %.200q", res.Status, raw)
	}
	return nil
}

// stream passes back the messages of an answer that is a stream.
func (f *forwarder) stream(m *message, body io.Reader) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, 64<<20)
	var data []string
	for scanner.Scan() {
		line := scanner.Text()
		if text, is := strings.CutPrefix(line, "data:"); is {
			data = append(data, strings.TrimPrefix(text, " "))
			continue
		}
		if line == "" && len(data) > 0 {
			if text := strings.Join(data, "\n"); strings.TrimSpace(text) != "" {
				if err := f.back(m, []byte(text)); err != nil {
					return err
				}
			}
			data = nil
		}
	}
	return scanner.Err()
}

// back writes a message of the host on one line.
func (f *forwarder) back(m *message, raw []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("the host answers with no message: %w", err)
	}
	line.WriteByte('\n')
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Method == "initialize" {
		var answer struct {
			Result struct {
				Revision string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(raw, &answer) == nil && answer.Result.Revision != "" {
			f.revision = answer.Result.Revision
		}
	}
	_, err := f.out.Write(line.Bytes())
	return err
}

// refuse answers a request that did not get through.
func (f *forwarder) refuse(id json.RawMessage, code int, why string) {
	_ = f.back(&message{}, refusal(id, code, why)) // the client may be gone
}

// refusal returns the message that refuses the request of an id.
func refusal(id json.RawMessage, code int, why string) []byte {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		panic(err) // the id was read from JSON
	}
	return raw
}
