package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

const modelKey = "key-of-the-provider"

// A chat is a server that speaks chat completions. It answers with the last
// words of what it was asked.
type chat struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+modelKey {
			http.Error(w, `{"error":{"message":"what is this?"}}`, http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.bodies = append(c.bodies, string(raw))
		c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"as you say","refusal":null}}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *chat) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies
}

// modelHome is a data directory whose configuration has one model.
func modelHome(t *testing.T, address, more string) string {
	t.Helper()
	home := t.TempDir()
	write(t, home, "key", modelKey+"\n", "mortise.yaml", fmt.Sprintf(`
models:
  light:
    - {name: small, provider: openai, model: m-1, base_url: "%s/v1", api_key_file: key, vision: true, json: true, documents: [application/pdf], input_price: 1, output_price: 2}
%s`, address, more))
	return home
}

// asker writes an Event Mill tool that asks a model in every way there is.
func asker(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugins", "log_analysis", "asker")
	write(t, dir, "manifest.json", `{"tool_name":"asker","version":"1.0.0","pillar":"log_analysis","display_name":"T","description_short":"Asks.","entry_point":"tool.py","class_name":"Asker","requires_llm":true}`,
		"tool.py", `
from framework.plugins.protocol import QueryHints, ToolResult, ValidationResult

class Asker:
    def metadata(self):
        return {"tool_name": "asker", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok=True)
    def execute(self, payload, context):
        q = context.llm_query
        answers = [
            q.query_text(prompt="the private prompt", system_context="be brief", max_tokens=64, grounding_data=["some data"]),
            q.query_text(prompt="structured JSON", max_tokens=64, hints=QueryHints(tier="light", needs_structured_output=True)),
            q.query_text(prompt="too dear", max_tokens=16384, hints=QueryHints(max_budget_cents=0.001)),
            q.query_multimodal(prompt="look", image_data=b"p" * 400000, image_format="png", max_tokens=64),
            q.query_with_document(prompt="read", artifact=context.artifacts[0], max_tokens=64),
            q.query_with_document(prompt="read", artifact=context.artifacts[1], max_tokens=64),
        ]
        return ToolResult(ok=True, result={
            "answers": [[a.ok, a.text, (a.error or "").split(":")[0], a.model_used, a.transport_path] for a in answers],
            "usage": answers[0].token_usage, "pdf": q.supports_native_document("application/pdf"), "html": q.supports_native_document("text/html"),
        })
    def summarize_for_llm(self, result):
        return "asked"
`)
	return filepath.Dir(filepath.Dir(dir))
}

// A tool asks a model in all ways of the contract: what it reads, what the
// server saw, what the ledger has and what was spent agree, and the key is in
// none of them.
func TestAToolAsksAModel(t *testing.T) {
	t.Parallel()
	needPython(t)
	server := newChat(t)
	home := modelHome(t, server.URL, "")
	a := open(t, home)
	if report, err := a.Registry.Register(t.Context(), asker(t), registry.RegisterOptions{Enable: true}); err != nil || len(report.Registered) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []struct{ name, text string }{{"report.pdf", "%PDF-1.7 the report"}, {"page.html", "<html>the page</html>"}} {
		if _, err := a.Sessions.Add(t.Context(), "local", s.ID, strings.NewReader(file.text), session.Add{Name: file.name}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := callIn(t, a, s.ID, "asker", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"answers":[[true,"as you say","","small","text"],[true,"as you say","","small","text"],[false,null,"budget_exceeded",null,null],` +
		`[true,"as you say","","small","inline_bytes"],[true,"as you say","","small","inline_bytes"],[false,null,"capability_gap",null,"text_fallback"]],` +
		`"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100},"pdf":true,"html":false}`
	if got := string(res.Data); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := res.Metrics; m["tokens_in"] != 4000 || m["tokens_out"] != 400 || m["provider"] != "openai" || m["cost_total"] != 0.0048 {
		t.Errorf("the metrics are %v", m)
	}
	if strings.Join(res.Labels, ",") != "untrusted" {
		t.Errorf("the labels are %v", res.Labels)
	}
	asked := server.asked()
	if len(asked) != 4 {
		t.Fatalf("the server saw %d requests", len(asked))
	}
	for i, text := range []string{"some data", `"response_format":{"type":"json_object"}`, "data:image/png;base64,cHBw", "data:application/pdf;base64,JVBERi0xLjc"} {
		if !strings.Contains(asked[i], text) {
			t.Errorf("request %d has no %s: %.300s", i, text, asked[i])
		}
	}
	spent, limit, err := a.Models.Spent(t.Context(), "local")
	if err != nil || spent != llm.Dollar*48/10_000 || limit != 10*llm.Dollar {
		t.Errorf("spent %d of %d, %v", spent, limit, err)
	}

	entries, err := a.Ledger.List(t.Context(), ledger.Filter{Tenant: "local", Kind: string(plugin.EntryModelCalled)})
	if err != nil || len(entries) != 5 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	first := entries[4]
	var rec plugin.ModelRecord
	if err := json.Unmarshal(first.Body, &rec); err != nil {
		t.Fatal(err)
	}
	if first.Subject != res.CallID || first.Principal != "local:owner" || rec.Session != s.ID || rec.Model != "small" || rec.Answered != "m-1" || rec.Outcome != "ok" || rec.Cost != 120_000 || !rec.Kept {
		t.Errorf("the entry is %+v %s", first, first.Body)
	}
	for hash, text := range map[string]string{rec.PromptHash: "the private prompt", rec.AnswerHash: "as you say"} {
		if body, err := a.Store.Body(t.Context(), "local", hash); err != nil || !strings.Contains(string(body), text) {
			t.Errorf("%s is %q, %v", hash, body, err)
		}
	}
	for _, e := range entries {
		if strings.Contains(string(e.Body), "private prompt") {
			t.Errorf("the prompt is in the entry: %s", e.Body)
		}
	}
	nowhere(t, home, modelKey)
}

// nowhere fails where a text is in a file of a data directory but its own.
func nowhere(t *testing.T, home, text string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == filepath.Join(home, "key") {
			return nil // what goes away meanwhile
		}
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), text) {
			t.Errorf("%s has it", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A budget is of the tenant and not of one host: what one spends another has
// no more.
func TestABudgetIsSharedByHosts(t *testing.T) {
	t.Parallel()
	server := newChat(t)
	home := modelHome(t, server.URL, "  budget: {day: 0.004}\n") // three queries of $0.0012 and what one more can cost
	one, other := open(t, home), open(t, home)
	by := plugin.Principal{Type: "user", ID: "local:owner"}
	fine := 0
	for i := range 6 {
		a := []*app.App{one, other}[i%2]
		res, err := a.As(by).Models().Test(t.Context(), "small")
		if err != nil {
			t.Fatal(err)
		}
		if res.OK {
			fine++
		} else if !strings.HasPrefix(res.Error, "budget_exceeded: ") {
			t.Errorf("got %+v", res)
		}
	}
	spent, _, err := other.Models.Spent(t.Context(), "local")
	if fine != 3 || len(server.asked()) != 3 || err != nil || spent != llm.Dollar*36/10_000 {
		t.Errorf("%d answers, %d requests, spent %d, %v", fine, len(server.asked()), spent, err)
	}
	if states, err := one.As(one.Principal).Models().List(t.Context()); err != nil || states.Spent != 0.0036 || len(states.Models) != 1 || states.Models[0].KeyProblem != "" {
		t.Errorf("%+v, %v", states, err)
	}
}

// Without a model the tool that needs one is told so before it runs.
func TestNoModelIsToldBeforeTheToolRuns(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	register(t, a, asker(t), true)
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = callIn(t, a, s.ID, "asker", `{}`)
	if e := plugin.AsError(err); e == nil || e.PluginCode != "LLM_UNAVAILABLE" {
		t.Errorf("got %v", err)
	}
}
