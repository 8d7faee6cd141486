package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/plugin"
)

var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// logs reports whether a server says that it sends its log.
func logs(t *testing.T, c *sdk.ServerCapabilities) bool {
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), `"logging"`)
}

// The official client lists and calls on each revision, at one address.
func TestTheOfficialClientOnEachRevision(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run read")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			s := b.connect(token, revision, "", nil)
			if got := s.InitializeResult(); got.Capabilities.Tools == nil || logs(t, got.Capabilities) || got.ServerInfo.Name != "mortise" || got.ProtocolVersion != revision {
				t.Errorf("the host says of itself %+v", got)
			}
			want := []string{"desk.fail", "desk.gated", "desk.line", "desk.send", "desk.short", "desk.slow", "desk.stay", "desk.upper", "desk.vanish", "desk.words", "mortise.call_result"}
			if got := names(t, s); !slices.Equal(got, want) {
				t.Errorf("the tools are %q, want %q", got, want)
			}
			res, said, data := call(t, s, "desk.upper", `{"text":"a"}`)
			if res.IsError || data["text"] != "A" || said != `{"text":"A"}` {
				t.Errorf("upper answers %q %v", said, data)
			}
			if row := b.record(res); row.Origin != plugin.OriginMCP || !strings.HasSuffix(row.Principal, "ann") || row.Operation != "desk/upper" {
				t.Errorf("the record of the call is %+v", row)
			}
			res, said, _ = call(t, s, "desk.words", `{"text":"a b"}`)
			if res.IsError || said != `["a","b"]` || (res.StructuredContent != nil) != (revision == "2026-07-28") {
				t.Errorf("words answers %q, structured %v", said, res.StructuredContent)
			}
		})
	}
}

var root = plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}

// What a tool is said to be comes from its manifest: schemas, and hints from kind and effects.
func TestWhatIsSaidOfATool(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	res, err := b.connect(token, "2026-07-28", "", nil).ListTools(t.Context(), nil)
	if err != nil || res.TTLMs <= 0 || res.CacheScope != "private" {
		t.Fatalf("a list is kept %d ms, %s, %v", res.TTLMs, res.CacheScope, err)
	}
	old, err := b.connect(token, "2025-06-18", "", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	of := func(l *sdk.ListToolsResult, name string) *sdk.Tool {
		i := slices.IndexFunc(l.Tools, func(t *sdk.Tool) bool { return t.Name == name })
		return l.Tools[i]
	}
	upper, line, send := of(res, "desk.upper"), of(res, "desk.line"), of(res, "desk.send")
	if a := upper.Annotations; !a.ReadOnlyHint || *a.DestructiveHint || !a.IdempotentHint || *a.OpenWorldHint {
		t.Errorf("a tool is said to be %+v", a)
	}
	if a := line.Annotations; a.ReadOnlyHint || !*a.DestructiveHint || a.IdempotentHint || *a.OpenWorldHint {
		t.Errorf("an operator of the database is said to be %+v", a)
	}
	if a := send.Annotations; a.ReadOnlyHint || !*a.DestructiveHint || !*a.OpenWorldHint {
		t.Errorf("an operator of the network is said to be %+v", a)
	}
	shown, err := b.app.Host.As(root).Plugins().Show(t.Context(), "desk")
	if err != nil {
		t.Fatal(err)
	}
	same := func(a any, raw []byte) bool {
		text, _ := json.Marshal(a)
		var one, two any
		return json.Unmarshal(text, &one) == nil && json.Unmarshal(raw, &two) == nil && fmt.Sprint(one) == fmt.Sprint(two)
	}
	op := shown.Manifest.Operation("upper")
	if !same(upper.InputSchema, op.Input) || !same(upper.OutputSchema, op.Output) || upper.Description != op.Description {
		t.Errorf("upper is said to be %+v; its manifest has %s and %s", upper, op.Input, op.Output)
	}
	if words := of(res, "desk.words"); words.OutputSchema == nil {
		t.Error("a schema that is no object is left out")
	}
	if words := of(old, "desk.words"); words.OutputSchema != nil {
		t.Errorf("before 2026-07-28 an output is an object: %v", words.OutputSchema)
	}
}

// A list has what its token may run, and a call of anything else does nothing: what the caller
// may not know of is not found, in the words of what there is not.
func TestATokenSeesAndCallsWhatItMay(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	narrow := b.connect(b.token("ann", "run", "desk/upper"), "", "", nil)
	if got := names(t, narrow); !slices.Equal(got, []string{"desk.upper", "mortise.call_result"}) {
		t.Errorf("a token for one operation sees %q", got)
	}
	ann := b.connect(b.token("ann", "run"), "", "", nil)
	for _, c := range []struct {
		s    *sdk.ClientSession
		name string
	}{{narrow, "desk.line"}, {ann, "desk.secret"}, {ann, "desk.absent"}, {ann, "absent"}, {ann, "a/b"}, {ann, "mortise.absent"}, {ann, strings.Repeat("a.", 100)}} {
		_, err := c.s.CallTool(t.Context(), &sdk.CallToolParams{Name: c.name, Arguments: map[string]any{"text": "x"}})
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams || !strings.HasPrefix(e.Message, "unknown tool ") {
			t.Errorf("%s: %v", c.name, err)
		}
		res, through := c.s.CallTool(t.Context(), &sdk.CallToolParams{Name: "mortise.call", Arguments: map[string]any{"name": c.name, "arguments": map[string]any{"text": "x"}}})
		if through == nil && !res.IsError || through != nil && through.Error() != err.Error() {
			t.Errorf("mortise.call of %s: %v, and directly %v", c.name, through, err)
		}
	}
	for _, name := range []string{"desk.denied", "desk.short"} {
		res, said, _ := call(t, ann, name, `{"text":"a long one"}`)
		if !res.IsError || !strings.HasPrefix(said, "policy_denied: ") || !strings.Contains(said, "Do not try again") {
			t.Errorf("%s: %q", name, said)
		}
		through, same, _ := call(t, ann, "mortise.call", fmt.Sprintf(`{"name":%q,"arguments":{"text":"a long one"}}`, name))
		if !through.IsError || same != said {
			t.Errorf("mortise.call of %s: %q, and directly %q", name, same, said)
		}
	}
	if got := b.lines(); got != "" {
		t.Errorf("it wrote %q", got)
	}
	if res, said, _ := call(t, ann, "desk.short", `{"text":"short"}`); res.IsError || b.lines() != "short" {
		t.Errorf("what policy allows with these arguments: %q", said)
	}
}

// Errors of arguments and of plugins are results that a model can read.
func TestErrorsAreResults(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	s := b.connect(b.token("ann", "run"), "", "", nil)
	res, said, _ := call(t, s, "desk.upper", `{"text":7}`)
	if !res.IsError || !strings.HasPrefix(said, "invalid_input: ") || !strings.Contains(said, "/text") {
		t.Errorf("a schema error says %q", said)
	}
	res, said, _ = call(t, s, "desk.fail", `{"text":"a letter"}`)
	if !res.IsError || said != "plugin_error (OUT_OF_INK): there is no ink for a letter" {
		t.Errorf("an error of a plugin says %q", said)
	}
	if m, _ := res.Meta["dev.mortise/error"].(map[string]any); m["code"] != "plugin_error" || m["plugin_code"] != "OUT_OF_INK" || m["call_id"] == "" {
		t.Errorf("and for programs %v", res.Meta)
	}
}

// A call that waits for a person is no error, is not asked for twice, and has its outcome
// where call_result asks for it.
func TestACallThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{Base: "https://mortise.example.com"})
	for i, revision := range revisions {
		who := []string{"ann", "ben", "cas"}[i]
		s := b.connect(b.token(who, "run"), revision, "", nil)
		res, said, data := call(t, s, "desk.gated", `{"text":"`+who+`"}`)
		id := fmt.Sprint(data["call_id"])
		if res.IsError || data["status"] != "pending_approval" || !strings.Contains(said, "mortise.call_result") || !strings.Contains(said, "Do not call the tool again") {
			t.Fatalf("it answers %q %v", said, data)
		}
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(data["expires_at"])); err != nil || at.Before(time.Now()) {
			t.Errorf("it expires at %v, %v", data["expires_at"], err)
		}
		asked, err := b.app.As(bob).Approvals().Questions(t.Context(), true, 100)
		if err != nil {
			t.Fatal(err)
		}
		var approval string
		for _, q := range asked {
			if q.Subject == id {
				approval = q.ID
			}
		}
		if approval == "" || data["url"] != "https://mortise.example.com/decide/"+approval {
			t.Errorf("the page is %v, the approval %s", data["url"], approval)
		}
		if _, _, again := call(t, s, "desk.gated", `{ "text" : "`+who+`" }`); again["call_id"] != id {
			t.Errorf("a repeated call is another: %v, %s", again, id)
		}
		if _, _, through := call(t, s, "mortise.call", `{"name":"desk.gated","arguments":{"text":"`+who+`"}}`); through["call_id"] != id {
			t.Errorf("so is one through mortise.call: %v, %s", through, id)
		}
		if _, _, other := call(t, s, "desk.gated", `{"text":"other"}`); other["call_id"] == id || other["status"] != "pending_approval" {
			t.Errorf("other arguments join it: %v", other)
		}
		stranger := b.connect(b.token("dan", "run"), revision, "", nil)
		if _, _, theirs := call(t, stranger, "desk.gated", `{"text":"`+who+`"}`); theirs["call_id"] == id {
			t.Error("another principal joins it")
		}
		if res, said, _ := call(t, stranger, "mortise.call_result", `{"call_id":"`+id+`"}`); !res.IsError || !strings.HasPrefix(said, "not_found: ") {
			t.Errorf("another principal is told of it: %q", said)
		}
		if _, _, still := call(t, s, "mortise.call_result", `{"call_id":"`+id+`"}`); still["status"] != "pending_approval" {
			t.Errorf("before the decision: %v", still)
		}
		b.approve(approval)
		if res, said, done := call(t, s, "mortise.call_result", `{"call_id":"`+id+`","wait_seconds":300}`); res.IsError || done["wrote"] != who {
			t.Errorf("after it: %q", said)
		}
	}
	if got := b.lines(); got != "ann ben cas" {
		t.Errorf("it wrote %q", got)
	}
}

var bob = plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}

// A call with effects goes on when its request is over, and has its outcome where call_result asks
// for it; that an outcome is not known is no success and no reason to try again.
func TestACallThatOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{Wait: 200 * time.Millisecond})
	s := b.connect(b.token("ann", "run"), "", "", nil)
	res, said, data := call(t, s, "desk.slow", `{"text":"slow"}`)
	if res.IsError || data["status"] != "in_progress" || !strings.Contains(said, "Do not call the tool again") {
		t.Fatalf("it answers %q", said)
	}
	b.write(filepath.Join(b.dir, "slow"), "")
	id := fmt.Sprint(data["call_id"])
	testwait.Until(t, "the call has ended", func() bool {
		_, _, data = call(t, s, "mortise.call_result", `{"call_id":"`+id+`","wait_seconds":1}`)
		return data["wrote"] == "slow"
	})
	_, _, data = call(t, s, "desk.vanish", `{"text":"gone"}`)
	id = fmt.Sprint(data["call_id"])
	testwait.Until(t, "the outcome of the call is unknown", func() bool {
		res, said, data = call(t, s, "mortise.call_result", `{"call_id":"`+id+`"}`)
		return data["status"] == "unknown"
	})
	if res.IsError || !strings.Contains(said, "Do not call the tool again") {
		t.Errorf("of an outcome that is not known it says %q", said)
	}
	if got := b.lines(); got != "slow gone" {
		t.Errorf("it wrote %q", got)
	}
}

// A call under a key happens once.
func TestAKey(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	s := b.connect(b.token("ann", "run"), "", "", nil)
	keyed := func(key any, text string) (*sdk.CallToolResult, error) {
		return s.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{mcp.KeyMeta: key}, Name: "desk.line", Arguments: map[string]any{"text": text}})
	}
	one, err := keyed("k1", "one")
	two, err2 := keyed("k1", "one")
	if err != nil || err2 != nil || one.Meta["dev.mortise/call-id"] != two.Meta["dev.mortise/call-id"] || b.lines() != "one" {
		t.Errorf("one key, two calls: %v %v, it wrote %q", err, err2, b.lines())
	}
	other, err := keyed("k1", "two")
	if err != nil || !other.IsError || !strings.HasPrefix(saidOf(other), "key_conflict") || b.lines() != "one" {
		t.Errorf("one key, other arguments: %v %v", other, err)
	}
	for _, key := range []any{"", 7, strings.Repeat("k", 256)} {
		if _, err := keyed(key, "three"); err == nil {
			t.Errorf("the key %v is taken", key)
		}
	}
}

// Progress is told where it is asked for, and a call without effects ends with its client.
func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			var mu sync.Mutex
			var told []string
			s := b.connect(token, revision, "", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprintf("%v %v %v %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message))
			}})
			heard := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Contains(told, "p 2 3 two of three")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			file := "cancel-" + revision
			go func() {
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Meta: sdk.Meta{"progressToken": "p"}, Name: "desk.stay", Arguments: map[string]any{"text": file}})
				ended <- err
			}()
			testwait.Until(t, "the client has heard of the progress", heard)
			cancel()
			if err := <-ended; err == nil {
				t.Error("a cancelled call is answered")
			}
			testwait.Until(t, "the plugin knows that the call was cancelled", func() bool { _, err := os.Stat(filepath.Join(b.dir, file+".gone")); return err == nil })
		})
	}
}

// What stands before the API stands before the protocol: who asks, from where, how much.
func TestWhoIsNotAnswered(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	post := func(body string, header ...string) (int, http.Header, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, res.Header, string(text)
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	status, header, _ := post(list)
	if got := header.Get("WWW-Authenticate"); status != 401 || !strings.Contains(got, `resource_metadata="https://mortise.example.com/.well-known/oauth-protected-resource"`) {
		t.Errorf("without a token: %d %s", status, got)
	}
	for what, c := range map[string]struct {
		status int
		header []string
		body   string
	}{
		"as it should be":      {200, []string{"Authorization", "Bearer " + token}, list},
		"a token that is none": {401, []string{"Authorization", "Bearer mrt_x"}, list},
		"a token that reads":   {403, []string{"Authorization", "Bearer " + b.token("ann", "read")}, list},
		"another site":         {403, []string{"Authorization", "Bearer " + token, "Origin", "https://evil.example.com"}, list},
		"a page of another":    {403, []string{"Authorization", "Bearer " + token, "Sec-Fetch-Site", "cross-site"}, list},
		"another name":         {403, []string{"Authorization", "Bearer " + token, "Host", "evil.example.com"}, list},
		"another's words":      {403, []string{"Authorization", "Bearer " + token, "Mortise-As", "root"}, list},
		"too much":             {413, []string{"Authorization", "Bearer " + token}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`},
		"a member twice":       {400, []string{"Authorization", "Bearer " + token}, `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}`},
		"no mode":              {400, []string{"Authorization", "Bearer " + token}, "null"},
	} {
		if status, _, text := post(c.body, c.header...); status != c.status {
			t.Errorf("%s: %d %.300s, want %d", what, status, text, c.status)
		}
	}
	listens := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	if _, _, text := post(listens, "Authorization", "Bearer "+token, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"); !strings.Contains(text, "-32601") {
		t.Errorf("a subscription stays open: %s", text)
	}
}

// Where there are many tools a client finds, describes and calls them, as the tools that they are.
func TestManyTools(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	b.register("many", "250")
	token := b.token("ann", "run")
	few := []string{"mortise.call", "mortise.call_result", "mortise.describe", "mortise.search"}
	s := b.connect(token, "", "", nil)
	if got := names(t, s); !slices.Equal(got, few) {
		t.Errorf("of many tools a list has %q", got)
	}
	if got := names(t, b.connect(token, "", "?list=all", nil)); len(got) != 261 || !slices.IsSorted(got) {
		t.Errorf("all are %d", len(got))
	}
	if got := names(t, b.connect(token, "", "?list=routed&for=make+a+text+upper+case", nil)); !slices.Contains(got, "desk.upper") || len(got) > 9 {
		t.Errorf("routed are %q", got)
	}
	_, _, found := call(t, s, "mortise.search", `{"query":"upper case"}`)
	if list, _ := found["tools"].([]any); len(list) == 0 || list[0].(map[string]any)["name"] != "desk.upper" {
		t.Errorf("upper case is found as %v", found)
	}
	if _, said, _ := call(t, s, "mortise.search", `{"query":"no one is to know of"}`); strings.Contains(said, "secret") {
		t.Errorf("a search tells of what is not for the caller: %s", said)
	}
	if _, _, described := call(t, s, "mortise.describe", `{"name":"desk.upper"}`); described["inputSchema"] == nil || described["outputSchema"] == nil {
		t.Errorf("it is described as %v", described)
	}
	for _, name := range []string{"desk.secret", "desk.denied", "desk.absent"} {
		if res, said, _ := call(t, s, "mortise.describe", `{"name":"`+name+`"}`); !res.IsError || said != fmt.Sprintf("not_found: there is no tool %q", name) {
			t.Errorf("%s is described: %q", name, said)
		}
	}
	res, said, data := call(t, s, "mortise.call", `{"name":"many.t0249"}`)
	if res.IsError || data["n"] != 249.0 {
		t.Errorf("it is called: %q", said)
	}
	if row := b.record(res); row.Operation != "many/t0249" {
		t.Errorf("on the record it is %+v", row)
	}
	if res, _, _ := call(t, s, "mortise.call", `{"name":"mortise.call","arguments":{"name":"desk.upper"}}`); !res.IsError {
		t.Error("it calls itself")
	}
}
