package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	"github.com/mortise-dev/mortise/protocol/protocoltest"
)

// TestTranscripts plays the plugin's part of every recorded conversation to
// the host, and holds what the host writes against it.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcripts, err := protocoltest.Load("../../../protocol/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range transcripts {
		if c.Only == "plugin" || c.Version != protocol.Version2 {
			continue // version 1 has no session: see TestRequestsOfVersion1
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			replay(t, c)
		})
	}
}

// replay drives a session through the host's requests of a transcript.
func replay(t *testing.T, c protocoltest.Transcript) {
	hostIn, pluginOut := io.Pipe()
	pluginIn, hostOut := io.Pipe()
	s := newConn("example.reference", hostOut, protocol.NewLineReader(hostIn, protocol.MaxFrame2))
	tokens := 0
	s.token = func() string { tokens++; return fmt.Sprintf("%032d", tokens) }
	s.kill = func() { _ = pluginOut.Close() }
	go s.read()
	defer func() {
		_ = pluginOut.Close()
		_ = pluginIn.Close()
		s.wait()
	}()
	lines := protocol.NewLineReader(pluginIn, protocol.MaxFrame2)
	var running func() // waits for the call that is under way
	var cancel context.CancelFunc
	for i, line := range c.Lines {
		if !line.FromHost {
			if _, err := io.WriteString(pluginOut, line.Text+"\n"); err != nil {
				t.Fatalf("line %d: %v", i, err)
			}
			if f, err := protocol.ParseFrame([]byte(line.Text)); err == nil && f.IsResponse() && running != nil {
				running()
				running = nil
			}
			continue
		}
		f, err := protocol.ParseFrame([]byte(line.Text))
		if err != nil {
			t.Fatal(err)
		}
		switch f.Method {
		case protocol.MethodInitialize:
			var params protocol.Initialize
			mustDecode(t, f.Params, &params)
			running = begin(t, func() error {
				return s.initialize(t.Context(), params, []protocol.Peer{{Name: "example.reference", Version: "1.0.0"}})
			})
		case protocol.MethodDescribe, protocol.MethodShutdown:
			running = begin(t, func() error {
				if f.Method == protocol.MethodShutdown {
					s.shutdown(t.Context())
					return nil
				}
				_, err := s.request(t.Context(), f.Method, f.Params)
				return err
			})
		case protocol.MethodHook:
			running = hear(t, s, f.Params, answerTo(c.Lines[i:], f.ID))
		case protocol.MethodExecute, protocol.MethodPreview, protocol.MethodReconcile:
			ctx, stop := context.WithTimeout(t.Context(), testwait.Limit)
			t.Cleanup(stop)
			cancel = stop
			running = ask(t, s, ctx, f.Method, f.Params, answerTo(c.Lines[i:], f.ID))
		case protocol.MethodCancel:
			cancel()
		case "":
			// An answer of the host to the plugin, which it writes by itself.
		default:
			t.Fatalf("line %d: the transcript's host asks for %s", i, f.Method)
		}
		got, err := lines.ReadLine()
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if differs := protocoltest.Match(line.Text, string(got), "deadline_ms"); differs != "" {
			t.Errorf("line %d: %s\nwant %s\ngot  %s", i, differs, line.Text, got)
		}
	}
}

// begin runs f beside the test and returns what waits for its end.
func begin(t *testing.T, f func() error) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// ask asks what a request about a call asks, and holds what comes of it against
// the answer of the transcript.
func ask(t *testing.T, c *conn, ctx context.Context, method string, params, want jsontext.Value) (wait func()) {
	var e protocol.Reconcile
	mustDecode(t, params, &e)
	name := e.Operation[strings.LastIndexByte(e.Operation, '/')+1:]
	target := &plugin.Target{Manifest: &plugin.Manifest{Name: "example.reference"}, Operation: &plugin.Operation{Name: name}}
	auth := e.Context.Auth
	call := &plugin.Call{
		Tenant:    auth.Tenant,
		Principal: plugin.Principal{Type: auth.Principal.Type, ID: auth.Principal.ID, Scopes: auth.Scopes},
		Trace:     e.Context.Trace,
		Key:       e.Context.Key,
		Attempt:   e.Context.Attempt,
		Input:     []byte(e.Input),
		Observe:   func(plugin.Event) {},
	}
	if p := e.Context.Policy; p != nil {
		call.Decision = &plugin.Decision{Verdict: p.Verdict, Reasons: p.Reasons, Policy: p.Version}
	}
	return begin(t, func() error {
		got, err := asked(c, ctx, method, target, call, e.Effects)
		if ctx.Err() != nil {
			return nil // cancelled: the answer comes too late to be read
		}
		code := plugin.CodeOf(err)
		var answer struct {
			Result jsontext.Value
			Error  *struct {
				Code int
				Data struct{ Code string }
			}
		}
		mustDecode(t, want, &answer)
		switch {
		case answer.Error == nil && err == nil:
			if differs := protocoltest.Match(string(answer.Result), got); differs != "" {
				t.Errorf("the result: %s", differs)
			}
		case answer.Error == nil:
			return err
		case answer.Error.Code == protocol.RPCInvalidParams:
			if code != plugin.CodeInvalidInput {
				t.Errorf("the error is %v", err)
			}
		case answer.Error.Code == protocol.RPCMethodNotFound:
			if code != plugin.CodeToolNotExposed {
				t.Errorf("the error is %v", err)
			}
		case string(code) != answer.Error.Data.Code:
			t.Errorf("the error is %v, want %s", err, answer.Error.Data.Code)
		}
		return nil
	})
}

// hear asks a hook, and holds what comes of it against the answer of the transcript.
func hear(t *testing.T, c *conn, params, want jsontext.Value) (wait func()) {
	var h protocol.Hook
	mustDecode(t, params, &h)
	target := &plugin.Target{Manifest: &plugin.Manifest{Name: "example.reference"}, Operation: &plugin.Operation{Name: h.Event}}
	call := &plugin.Call{Agent: h.Agent, Session: h.Session}
	ctx, stop := context.WithTimeout(t.Context(), testwait.Limit)
	t.Cleanup(stop)
	return begin(t, func() error {
		got, _, err := c.hook(ctx, target, call, h.Shape, h.Payload)
		var answer struct {
			Result jsontext.Value
			Error  *struct {
				Code int
				Data struct{ Code string }
			}
		}
		mustDecode(t, want, &answer)
		switch code := plugin.CodeOf(err); {
		case answer.Error == nil && err == nil:
			if differs := protocoltest.Match(string(answer.Result), string(got)); differs != "" {
				t.Errorf("the result: %s", differs)
			}
		case answer.Error == nil:
			return err
		case answer.Error.Code == protocol.RPCMethodNotFound:
			if code != plugin.CodeToolNotExposed {
				t.Errorf("the error is %v", err)
			}
		case string(code) != answer.Error.Data.Code:
			t.Errorf("the error is %v, want %s", err, answer.Error.Data.Code)
		}
		return nil
	})
}

// asked returns what the host understood, spelled as the plugin's answer was.
func asked(c *conn, ctx context.Context, method string, target *plugin.Target, call *plugin.Call, effects []protocol.Effect) (string, error) {
	services := recorded{target.Operation.Name}
	w := &worker{conn: c}
	said := map[string]any{}
	switch method {
	case protocol.MethodPreview:
		preview, _, err := w.preview(ctx, target, call, services)
		if err != nil {
			return "", err
		}
		said["preview"] = jsontext.Value(preview)
	case protocol.MethodReconcile:
		r, _, err := w.reconcile(ctx, target, call, effects, services, protocol.MaxFrame2)
		if err != nil {
			return "", err
		}
		said["outcome"] = r.Outcome
		if r.Data != nil {
			said["data"] = r.Data
		}
		if r.Evidence != nil {
			said["evidence"] = r.Evidence
		}
		if r.Err != nil {
			said["error"] = map[string]any{
				"code": r.Err.Code, "plugin_code": r.Err.PluginCode, "message": r.Err.Message,
				"details": jsontext.Value(r.Err.Details), "retryable": r.Err.Retryable, "retry_after_ms": r.Err.RetryAfter.Milliseconds(),
			}
		}
	default:
		res, _, err := c.execute(ctx, target, call, services)
		if err != nil {
			return "", err
		}
		said["status"], said["data"] = res.Status, jsontext.Value(res.Data)
	}
	raw, err := json2.Marshal(said)
	return string(raw), err
}

// answerTo returns the plugin's answer to the request of that id.
func answerTo(lines []protocoltest.Line, id jsontext.Value) jsontext.Value {
	for _, line := range lines {
		if f, err := protocol.ParseFrame([]byte(line.Text)); err == nil && !line.FromHost && f.IsResponse() && string(f.ID) == string(id) {
			return jsontext.Value(line.Text)
		}
	}
	return nil
}

// recorded answers the plugin as services.txtar has it.
type recorded struct{ operation string }

func (r recorded) Serve(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "cache.set":
		return nil, nil
	case "cache.get":
		return json.RawMessage(`{"found":true,"value":[1,2]}`), nil
	}
	service, _, _ := strings.Cut(method, ".")
	return nil, plugin.Errorf(plugin.CodeServiceDenied, "example.reference/%s was not granted the service %s", r.operation, service)
}

func mustDecode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json2.Unmarshal(raw, into, json2.MatchCaseInsensitiveNames(true)); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
}

// What the host writes in version 1 is the transcripts' text, letter by letter.
func TestRequestsOfVersion1(t *testing.T) {
	t.Parallel()
	transcripts, err := protocoltest.Load("../../../protocol/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range transcripts {
		if c.Version != protocol.Version1 {
			continue
		}
		var request struct {
			RequestID string            `json:"request_id"`
			ToolName  string            `json:"tool_name"`
			Context   map[string]string `json:"context"`
			Input     jsontext.Value    `json:"input"`
		}
		mustDecode(t, []byte(c.Lines[2].Text), &request)
		for i, got := range map[int]string{
			0: string(protocol.AppendHandshake(nil, protocol.RuntimeVersion)),
			2: string(protocol.AppendV1Request(nil, request.RequestID, request.ToolName, request.Context, request.Input)),
		} {
			if got != c.Lines[i].Text+"\n" {
				t.Errorf("%s, line %d:\nwant %s\ngot  %s", c.Name, i, c.Lines[i].Text, got)
			}
		}
		want := protocol.Binding{PluginID: "example.reference", ProtocolVersion: protocol.RuntimeVersion, Tool: request.ToolName}
		if refused := protocol.CheckHandshake([]byte(c.Lines[1].Text), want); refused != nil {
			t.Errorf("%s: %v", c.Name, refused)
		}
		if _, failure := protocol.CheckResponse([]byte(c.Lines[3].Text), request.RequestID); (failure != nil) != (c.Name == "v1_error") {
			t.Errorf("%s: %v", c.Name, failure)
		}
	}
}
