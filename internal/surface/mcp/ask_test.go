package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/plugin"
)

// asking is a client that can be asked, by form or by URL, and answers with reply.
func (b *bench) asking(token string, form, url bool, reply func(*sdk.ElicitParams) *sdk.ElicitResult) *sdk.ClientSession {
	e := &sdk.ElicitationCapabilities{}
	if form {
		e.Form = &sdk.FormElicitationCapabilities{}
	}
	if url {
		e.URL = &sdk.URLElicitationCapabilities{}
	}
	return b.connect(token, "2026-07-28", "", &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: e},
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return reply(r.Params), nil
		},
	})
}

func accepted(content map[string]any) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: content}
}

// A caller that policy allows to confirm its own call is asked in a form with the exact arguments, and
// the answer is the operation's own result. One who is not let is not asked, and what they would
// answer does not count.
func TestAFormIsForThoseWhoMayConfirmTheirOwnCalls(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	var shown atomic.Pointer[sdk.ElicitParams]
	yes := func(p *sdk.ElicitParams) *sdk.ElicitResult {
		shown.Store(p)
		return accepted(map[string]any{"approve": true})
	}
	res, said, data := call(t, b.asking(b.token("cas", "run approve"), true, false, yes), "desk.gated", `{"text":"one\u202etwo"}`)
	if res.IsError || data["wrote"] != "one\u202etwo" || !strings.Contains(b.lines(), "one") {
		t.Fatalf("a confirmed call answers %q", said)
	}
	if p := shown.Load(); p == nil || p.Mode != "form" || !strings.Contains(p.Message, `one\u202etwo`) || !strings.Contains(p.Message, "it is gated") || !strings.Contains(p.Message, "db_write") {
		t.Errorf("the form shows %+v", p)
	}
	if row := b.record(res); row.Origin != plugin.OriginMCP || row.Approval == "" {
		t.Errorf("the record of a confirmed call is %+v", row)
	}
	before := b.lines()
	for who, token := range map[string]string{
		"without @self":             b.token("ann", "run approve"),
		"without the scope approve": b.token("cas", "run"),
	} {
		asked := false
		s := b.asking(token, true, false, func(*sdk.ElicitParams) *sdk.ElicitResult {
			asked = true
			return accepted(map[string]any{"approve": true})
		})
		_, _, data := call(t, s, "desk.gated", `{"text":"two"}`)
		if asked || data["status"] != "pending_approval" || b.lines() != before {
			t.Errorf("%s: asked %t, %v", who, asked, data)
		}
	}
}

// A decline is final for that call, a cancel leaves it open, and an answer of another form is asked
// for again.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("cas", "run approve")
	for name, c := range map[string]struct {
		replies []*sdk.ElicitResult
		want    string
		ran     bool
	}{
		"declined":    {[]*sdk.ElicitResult{{Action: "decline"}}, "approval_denied", false},
		"false":       {[]*sdk.ElicitResult{accepted(map[string]any{"approve": false})}, "approval_denied", false},
		"cancelled":   {[]*sdk.ElicitResult{{Action: "cancel"}}, "pending_approval", false},
		"asked twice": {[]*sdk.ElicitResult{accepted(map[string]any{"approve": true})}, "wrote", true},
	} {
		text := strings.ReplaceAll(name, " ", "-")
		n := 0
		s := b.asking(token, true, false, func(*sdk.ElicitParams) *sdk.ElicitResult { n++; return c.replies[min(n, len(c.replies))-1] })
		_, said, _ := call(t, s, "desk.gated", `{"text":"`+text+`"}`)
		if !strings.Contains(said, c.want) || strings.Contains(b.lines(), text) != c.ran {
			t.Errorf("%s: %q, and the lines are %q", name, said, b.lines())
		}
	}
}

// Where a client opens pages, the person decides on the host's own page: the client's answer alone
// changes nothing, and once an approver agreed it is the operation's own result.
func TestAPageIsForTheApprover(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{Base: "https://mortise.example.com", Wait: 1e9})
	token := b.token("ann", "run")
	var approval string
	s := b.asking(token, true, true, func(p *sdk.ElicitParams) *sdk.ElicitResult {
		url, is := strings.CutPrefix(p.URL, "https://mortise.example.com/decide/")
		if !is || p.Mode != "url" {
			t.Errorf("asked with %+v", p)
		}
		approval = url
		return accepted(nil)
	})
	_, _, data := call(t, s, "desk.gated", `{"text":"page"}`)
	if data["status"] != "pending_approval" || b.lines() != "" {
		t.Fatalf("a page that was opened counts as a decision: %v", data)
	}
	decided := b.asking(token, false, true, func(*sdk.ElicitParams) *sdk.ElicitResult { b.approve(approval); return accepted(nil) })
	res, said, data := call(t, decided, "desk.gated", `{"text":"page"}`)
	if res.IsError || data["wrote"] != "page" || b.lines() != "page" {
		t.Errorf("after the approval: %q", said)
	}
}

// raw is a client that shows what it is answered, and sends what it is told to.
func (b *bench) raw(token string) *sdk.ClientSession {
	return b.connect(token, "2026-07-28", "", &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
}

// A request state counts for its caller, tool and arguments, until it expires, once, and only as the
// host made it.
func TestARequestStateIsBound(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("cas", "run approve")
	s := b.raw(token)
	yes := sdk.InputResponseMap{"approval": accepted(map[string]any{"approve": true})}
	send := func(s *sdk.ClientSession, tool, arguments, state string) (*sdk.CallToolResult, string) {
		t.Helper()
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), InputResponses: yes, RequestState: state})
		if err != nil {
			var e *jsonrpc.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return &sdk.CallToolResult{IsError: true}, e.Message
		}
		return res, saidOf(res)
	}
	first, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "desk.gated", Arguments: json.RawMessage(`{"text":"bound"}`)})
	if err != nil || !first.NeedsInput() || first.RequestState == "" {
		t.Fatalf("it was not asked: %+v, %v", first, err)
	}
	state := first.RequestState
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	other := b.raw(b.token("dan", "run approve"))
	for what, c := range map[string]struct {
		s                      *sdk.ClientSession
		tool, arguments, state string
	}{
		"tampered":             {s, "desk.gated", `{"text":"bound"}`, string(flipped)},
		"cut short":            {s, "desk.gated", `{"text":"bound"}`, state[:len(state)-4]},
		"made up":              {s, "desk.gated", `{"text":"bound"}`, "eyJhIjoiYiJ9"},
		"too long":             {s, "desk.gated", `{"text":"bound"}`, strings.Repeat("A", 1<<20)},
		"other arguments":      {s, "desk.gated", `{"text":"changed"}`, state},
		"another tool":         {s, "desk.line", `{"text":"bound"}`, state},
		"another principal":    {other, "desk.gated", `{"text":"bound"}`, state},
		"through mortise.call": {s, "mortise.call", `{"name":"desk.line","arguments":{"text":"bound"}}`, state},
	} {
		if res, said := send(c.s, c.tool, c.arguments, c.state); !res.IsError || !strings.Contains(said, "the state was not given out by this host") || b.lines() != "" {
			t.Errorf("%s: %q, and the lines are %q", what, said, b.lines())
		}
	}
	if res, said := send(s, "desk.gated", `{ "text" : "bound" }`, state); res.IsError || b.lines() != "bound" {
		t.Fatalf("as it was made: %q", said)
	}
	if res, said := send(s, "desk.gated", `{"text":"bound"}`, state); !res.IsError || b.lines() != "bound" {
		t.Errorf("used again: %q, and the lines are %q", said, b.lines())
	}
	through, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "mortise.call", Arguments: json.RawMessage(`{"name":"desk.gated","arguments":{"text":"through"}}`)})
	if err != nil || !through.NeedsInput() {
		t.Fatalf("mortise.call does not ask: %v", err)
	}
	if res, said := send(s, "mortise.call", `{"name":"desk.gated","arguments":{"text":"through"}}`, through.RequestState); res.IsError || !strings.HasSuffix(b.lines(), "through") {
		t.Errorf("through mortise.call: %q", said)
	}
}

// What policy or the package no longer is when the answer comes voids the approval.
func TestAChangedPolicyVoidsAQuestion(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	s := b.asking(b.token("cas", "run approve"), true, false, func(*sdk.ElicitParams) *sdk.ElicitResult {
		if _, err := b.app.Host.As(root).Policies().Put(t.Context(), "more", []byte(`@id("more") permit (principal == User::"eve", action == Action::"list", resource);`), ""); err != nil {
			t.Error(err)
		}
		return accepted(map[string]any{"approve": true})
	})
	res, said, _ := call(t, s, "desk.gated", `{"text":"void"}`)
	if !res.IsError || !strings.Contains(said, "approval_void") || b.lines() != "" {
		t.Errorf("%q, and the lines are %q", said, b.lines())
	}
}

type taskAnswer struct {
	ResultType string              `json:"resultType"`
	ID         string              `json:"taskId"`
	Status     string              `json:"status"`
	Message    string              `json:"statusMessage"`
	Result     *sdk.CallToolResult `json:"result"`
	TTL        *int64              `json:"ttlMs"`
}

// request sends one request of revision 2026-07-28 of a client that takes tasks.
func (b *bench) request(token, method, name string, params map[string]any) (got taskAnswer, failed *jsonrpc.Error) {
	b.Helper()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{mcp.TasksExtension: map[string]any{}}},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+"/mcp", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		r.Header.Set(key, value)
	}
	res, err := bearer(token).RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	for _, line := range strings.Split(string(raw), "\n") {
		if data, is := strings.CutPrefix(line, "data: "); is {
			raw = []byte(data)
		}
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Error == nil && json.Unmarshal(answer.Result, &got) != nil {
		b.Fatalf("%s answers %d %.300s", method, res.StatusCode, raw)
	}
	return got, answer.Error
}

// A client that takes tasks gets one for a call that waits, polls it to the operation's own result,
// and cancels another. It is the call of the host, and is for its caller alone.
func TestACallThatWaitsIsATask(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{Base: "https://mortise.example.com"})
	ann, dan := b.token("ann", "run"), b.token("dan", "run")
	gated := func(text string) taskAnswer {
		created, failed := b.request(ann, "tools/call", "desk.gated", map[string]any{"name": "desk.gated", "arguments": map[string]any{"text": text}})
		if failed != nil || created.ResultType != "task" || created.Status != "working" || created.TTL != nil || !strings.Contains(created.Message, "https://mortise.example.com/decide/") {
			t.Fatalf("a call that waits answers %+v, %v", created, failed)
		}
		return created
	}
	get := func(token, id string) (taskAnswer, *jsonrpc.Error) {
		return b.request(token, "tasks/get", id, map[string]any{"taskId": id})
	}
	created := gated("task")
	if got, failed := get(ann, created.ID); failed != nil || got.Status != "working" || got.ResultType != "complete" {
		t.Errorf("%+v, %v", got, failed)
	}
	for _, id := range []string{created.ID, "01a20c99-4a85-7e4a-9081-8458e6158946", "x"} {
		if got, failed := get(dan, id); failed == nil || failed.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("a task of another is %+v, %v", got, failed)
		}
		if _, failed := b.request(dan, "tasks/cancel", id, map[string]any{"taskId": id}); failed == nil {
			t.Error("a task of another is cancelled")
		}
	}
	if _, failed := b.request(ann, "tasks/update", created.ID, map[string]any{"taskId": created.ID, "inputResponses": map[string]any{}}); failed != nil {
		t.Error(failed)
	}
	b.approve(created.Message[strings.LastIndex(created.Message, "/")+1:])
	testwait.Until(t, "the task is completed", func() bool {
		got, failed := get(ann, created.ID)
		return failed == nil && got.Status == "completed" && got.Result != nil && !got.Result.IsError && strings.Contains(saidOf(got.Result), `"wrote":"task"`)
	})
	other := gated("not this")
	if _, failed := b.request(ann, "tasks/cancel", other.ID, map[string]any{"taskId": other.ID}); failed != nil {
		t.Error(failed)
	}
	if got, failed := get(ann, other.ID); failed != nil || got.Status != "cancelled" || strings.Contains(b.lines(), "not") {
		t.Errorf("a cancelled task is %+v, %v", got, failed)
	}
}
