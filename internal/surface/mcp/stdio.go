package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mortise-dev/mortise/internal/host"
)

const (
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

// A Post sends a message to a host that serves, at its /mcp. An error means that no answer came.
type Post func(ctx context.Context, header http.Header, body []byte) (*http.Response, error)

// Forward passes each message of a stream on to a host, and what that answers back. The host gets
// each request under an id of this side, so that ids which a number of the host cannot hold do
// not meet; the client gets the literal of its own id back.
func Forward(ctx context.Context, in io.Reader, out io.Writer, post Post) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarder{post: post, out: out, running: map[string]*request{}, slots: make(chan struct{}, maxAtOnce)}
	lines, failed := make(chan line), make(chan error, 1)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			l, err := readLine(r)
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				failed <- err
				return
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, more := <-lines:
			if !more {
				stop := time.AfterFunc(lastWords, cancel)
				defer stop.Stop()
				f.under.Wait()
				return <-failed
			}
			switch {
			case l.long:
				f.refuse(l.id, -32600, fmt.Sprintf("the message has more than %d MiB, which is the most that is read: send less, or a file by its artifact", maxLine>>20))
			case len(bytes.TrimSpace(l.text)) > 0:
				f.take(ctx, l.text)
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
	last     int64               // id of the host's side
	running  map[string]*request // by the literal of the client's id
	revision string              // that was agreed on, before 2026-07-28
}

// A request is a message that is passed on, and the id that each side knows it by.
type request struct {
	message
	id       jsontext.Value // of the client, as spelled; nil for a notification or an answer
	body     []byte         // as the host gets it
	header   http.Header
	cancel   context.CancelFunc
	answered bool // the client has its answer
}

// A message is what is looked at of one.
type message struct {
	Method string `json:"method"`
	Params struct {
		Name      string         `json:"name"`
		URI       string         `json:"uri"`
		RequestID jsontext.Value `json:"requestId"`
		Meta      struct {
			Revision string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// take passes a message on. A request is answered when it is; what comes after initialize waits
// for it.
func (f *forwarder) take(ctx context.Context, text []byte) {
	if batch, _ := isBatch(bufio.NewReader(bytes.NewReader(text))); batch {
		f.refuse(nil, jsonrpc.CodeInvalidRequest, noBatches)
		return
	}
	q := &request{}
	f.last++
	body, id, err := replaceID(text, strconv.AppendInt(nil, f.last, 10))
	if err == nil {
		err = json2.Unmarshal(text, &q.message)
	}
	switch {
	case err != nil:
		f.refuse(nil, -32700, "the line is not a message: "+err.Error())
		return
	case q.Method == "": // an answer of the client to the host has the host's id
		q.body = text
	case id != nil && !isID(id):
		f.refuse(nil, -32600, fmt.Sprintf("the id of a request is a string or a number of at most %d bytes", maxID))
		return
	default:
		q.id, q.body = id, body
	}
	if q.Method == "notifications/cancelled" {
		f.mu.Lock()
		defer f.mu.Unlock()
		if other := f.running[string(q.Params.RequestID)]; other != nil {
			other.cancel()
		}
		return
	}
	ctx, q.cancel = context.WithCancel(ctx)
	f.mu.Lock()
	if q.id != nil {
		f.running[string(q.id)] = q
	}
	f.mu.Unlock()
	f.slots <- struct{}{}
	f.under.Add(1)
	pass := func() {
		defer f.under.Done()
		defer func() { <-f.slots }()
		defer q.cancel()
		err := f.deliver(ctx, q)
		f.mu.Lock()
		if f.running[string(q.id)] == q {
			delete(f.running, string(q.id))
		}
		f.mu.Unlock()
		if err != nil && ctx.Err() == nil && q.id != nil && !q.answered {
			f.refuse(q.id, -32603, err.Error())
		}
	}
	if q.Method == "initialize" || q.id == nil {
		pass()
		return
	}
	go pass()
}

// How often, and after what pause, a request is sent whose answer was lost.
const (
	attempts   = 3
	repeatWait = 200 * time.Millisecond
)

// deliver passes a request on until it is answered. A request whose answer is lost is sent again
// under the same idempotency key, so that its effect happens once.
func (f *forwarder) deliver(ctx context.Context, q *request) error {
	q.header = f.headerOf(q)
	for n := 1; ; n++ {
		err := f.pass(ctx, q)
		var lost lostAnswer
		if q.answered || q.id == nil || n == attempts || !errors.As(err, &lost) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(n) * repeatWait):
		}
	}
}

// A lostAnswer says that no answer came, or not all of one: the request may have been done.
type lostAnswer struct{ error }

// Unwrap returns the cause.
func (l lostAnswer) Unwrap() error { return l.error }

// headerOf returns the header of a request.
func (f *forwarder) headerOf(q *request) http.Header {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	f.mu.Lock()
	revision := q.Params.Meta.Revision
	if revision == "" {
		revision = f.revision
	}
	f.mu.Unlock()
	if revision != "" {
		header.Set("Mcp-Protocol-Version", revision)
	}
	if q.Params.Meta.Revision != "" {
		header.Set("Mcp-Method", q.Method)
		if name := q.Params.Name + q.Params.URI; name != "" {
			header.Set("Mcp-Name", name)
		}
	}
	if q.Method == "tools/call" {
		header.Set(KeyHeader, host.NewKey())
	}
	return header
}

// pass passes one message on, and what is answered to it back.
func (f *forwarder) pass(ctx context.Context, q *request) error {
	res, err := f.post(ctx, q.header.Clone(), q.body)
	if err != nil {
		return lostAnswer{err}
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return f.stream(q, res.Body)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return lostAnswer{err}
	}
	if said := new(struct{ JSONRPC string }); kind == "application/json" && json.Unmarshal(raw, said) == nil && said.JSONRPC != "" {
		return f.back(q, raw)
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
func (f *forwarder) stream(q *request, body io.Reader) error {
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
				if err := f.back(q, []byte(text)); err != nil {
					return err
				}
			}
			data = nil
		}
	}
	if err := scanner.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return lostAnswer{err}
	} else if err != nil {
		return err
	}
	if q.id != nil && !q.answered {
		return lostAnswer{errors.New("the stream of the host ended without an answer")}
	}
	return nil
}

// back writes a message of the host on one line. An answer gets the id of its request.
func (f *forwarder) back(q *request, raw []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("the host answers with no message: %w", err)
	}
	var said struct {
		Method string `json:"method"`
		Result struct {
			Revision string `json:"protocolVersion"`
		} `json:"result"`
	}
	_ = json.Unmarshal(raw, &said) // a result may be of any form
	text := line.Bytes()
	if said.Method == "" && q.id != nil {
		own, _, err := replaceID(text, q.id)
		if err != nil {
			return fmt.Errorf("the host answers with no message: %w", err)
		}
		text, q.answered = own, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Method == "initialize" && said.Result.Revision != "" {
		f.revision = said.Result.Revision
	}
	_, err := f.out.Write(append(bytes.Clone(text), '\n'))
	return err
}

// refuse answers a request that did not get through; id is nil if it is not known.
func (f *forwarder) refuse(id jsontext.Value, code int, why string) {
	if id == nil {
		id = jsontext.Value("null")
	}
	_ = f.back(&request{}, refusal(json.RawMessage(id), code, why)) // the client may be gone
}

// refusal returns the message that refuses the request of an id.
func refusal(id json.RawMessage, code int, why string) []byte {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		panic(err) // the id was read from JSON
	}
	return raw
}
