package service

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// A model is a provider in this process, which notes what it is asked.
type model struct {
	mu    sync.Mutex
	asked []llm.Request
	err   error
	usage *llm.Usage // in place of 7 and 3
}

func (m *model) Complete(_ context.Context, r llm.Request) (llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	if m.err != nil {
		return llm.Reply{}, m.err
	}
	usage := llm.Usage{In: 7, Out: 3}
	if m.usage != nil {
		usage = *m.usage
	}
	return llm.Reply{Text: "an answer", Usage: usage}, nil
}

func (m *model) last() llm.Request { return m.asked[len(m.asked)-1] }

// withModel gives a scene one model, which can do everything.
func withModel(t *testing.T, change func(o *llm.Options)) (*scene, *model) {
	s, m := newScene(t), &model{}
	o := llm.Options{Allow: []string{"*"}, Models: []llm.Model{{
		Name: "small", Tier: llm.Light, Provider: "fake", ID: "small-1", Asks: m, Vision: true, Context: 100_000,
		Documents: []string{"application/pdf"}, MaxInline: 1 << 20, Input: llm.Dollars(1), Output: llm.Dollars(1),
	}}}
	if change != nil {
		change(&o)
	}
	s.broker.Models = llm.New(o)
	return s, m
}

// query asks for a method and returns what the plugin reads.
func (s *scene) query(services plugin.Services, method, args string) map[string]any {
	s.t.Helper()
	raw, err := services.Serve(s.t.Context(), method, []byte(args))
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, args, err)
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		s.t.Fatal(err)
	}
	return value
}

func TestAQueryAnswersEveryMember(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	services := s.services()
	got := s.query(services, llmText, `{"prompt":"p","system_context":"s","max_tokens":50,"grounding_data":["d"],"hints":{"tier":"light","max_budget_cents":null}}`)
	want := map[string]any{
		"ok": true, "text": "an answer", "error": nil, "model_used": "small", "transport_path": "text", "fallback_reason": nil,
		"token_usage": map[string]any{"input_tokens": 7.0, "output_tokens": 3.0, "total_tokens": 10.0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if r := m.last(); r.System != "s" || r.MaxTokens != 50 || !strings.HasSuffix(r.Prompt, "\n\np") || !strings.Contains(r.Prompt, "\nd\n") {
		t.Errorf("asked %+v", r)
	}
	w := services.(interface {
		Used() bool
		Unsettled() bool
		Labels() []string
		Metrics() plugin.Metrics
	})
	if !w.Used() || w.Unsettled() || !reflect.DeepEqual(w.Labels(), []string{plugin.Untrusted}) {
		t.Errorf("used %v, unsettled %v, labels %v", w.Used(), w.Unsettled(), w.Labels())
	}
	if want := (plugin.Metrics{"tokens_in": 7, "tokens_out": 3, "provider": "fake", "cost_total": 0.00001}); !reflect.DeepEqual(w.Metrics(), want) {
		t.Errorf("metrics %v", w.Metrics())
	}
	if len(s.uses) != 1 || s.uses[0].Outcome != "ok" || s.uses[0].Method != llmText {
		t.Errorf("uses %+v", s.uses)
	}
}

func TestTheContractsMaxTokens(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	s.call.Session, s.broker.Documents = "sess_1", documents{}
	for method, c := range map[string]struct {
		args string
		want int
	}{
		llmText: {`{"prompt":"p"}`, 4096}, llmMultimodal: {`{"prompt":"p","image":{"$bytes":"eA=="},"image_format":"png"}`, 4096},
		llmDocument: {`{"prompt":"p","artifact_id":"art_1"}`, 8192},
	} {
		if got := s.query(s.services(), method, c.args); got["ok"] != true || m.last().MaxTokens != c.want {
			t.Errorf("%s: %v, asked for %d tokens", method, got, m.last().MaxTokens)
		}
	}
}

func TestAFailingModelIsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		text string
	}{
		{&llm.Error{Kind: llm.BadRequest, Message: "too long"}, "bad_request: too long"},
		{&llm.Error{Kind: llm.Auth, Message: "/etc/keys/one is empty"}, "auth: the provider's key is missing or was not accepted; an administrator sees why with 'mortise models test'"},
		{errors.New("odd"), "internal: asking the model failed"},
	} {
		s, m := withModel(t, nil)
		m.err = c.err
		got := s.query(s.services(), llmText, `{"prompt":"p"}`)
		if got["ok"] != false || got["error"] != c.text || got["text"] != nil {
			t.Errorf("%v: got %v", c.err, got)
		}
	}
	s := newScene(t) // where no model is configured
	if got := s.query(s.services(), llmText, `{"prompt":"p"}`); got["ok"] != false || !strings.HasPrefix(got["error"].(string), "not_configured: ") {
		t.Errorf("no model: %v", got)
	}
	if got := s.query(s.services(), llmSupports, `{"mime_type":"application/pdf"}`); got["supported"] != false {
		t.Errorf("no model: %v", got)
	}
}

func TestABudgetIsAnAnswerAndNothingIsSent(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, func(o *llm.Options) { o.Limits.Call = 1 })
	services := s.services()
	got := s.query(services, llmText, `{"prompt":"p"}`)
	if got["ok"] != false || !strings.HasPrefix(got["error"].(string), "budget_exceeded: ") || len(m.asked) != 0 {
		t.Errorf("got %v, asked %d times", got, len(m.asked))
	}
	if services.(interface{ Used() bool }).Used() {
		t.Error("nothing went outside, and it counts as used")
	}
	s, m = withModel(t, nil)
	got = s.query(s.services(), llmText, `{"prompt":"p","hints":{"max_budget_cents":0.0001}}`)
	if got["ok"] != false || len(m.asked) != 0 {
		t.Errorf("the plugin's own ceiling: %v", got)
	}
}

func TestWhoMayNotAskIsRefusedOnRecord(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, func(o *llm.Options) { o.Allow = []string{"another"} })
	err := s.fail(llmText, `{"prompt":"p"}`)
	if plugin.CodeOf(err) != plugin.CodeServiceDenied || len(m.asked) != 0 || len(s.refusals) != 1 {
		t.Errorf("got %v, %d refusals", err, len(s.refusals))
	}
	s, _ = withModel(t, nil)
	s.target.Manifest.Capabilities = []string{"http"}
	if err := s.fail(llmText, `{"prompt":"p"}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
		t.Errorf("without the capability: %v", err)
	}
}

func TestQueriesThatAreNone(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	many := `"` + strings.Repeat(`x","`, llmGrounding) + `x"`
	long := strings.Repeat("x", llmPrompt/2+1)
	for _, c := range []struct {
		method, args string
		code         plugin.Code
	}{
		{llmText, `{}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":" "}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","model":"gpt"}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","max_tokens":0}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","max_tokens":1000000}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","hints":{"tier":"huge"}}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","hints":{"max_budget_cents":-1}}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"p","grounding_data":[` + many + `]}`, plugin.CodeInvalidInput},
		{llmText, `{"prompt":"` + long + `","grounding_data":["` + long + `"]}`, plugin.CodeInputTooLarge},
		{llmMultimodal, `{"prompt":"p","image_format":"png"}`, plugin.CodeInvalidInput},
		{llmMultimodal, `{"prompt":"p","image":{"$bytes":"eA==","$file":"x"},"image_format":"png"}`, plugin.CodeInvalidInput},
		{llmMultimodal, `{"prompt":"p","image":{"$bytes":"eA=="},"image_format":"svg"}`, plugin.CodeInvalidInput},
		{llmMultimodal, `{"prompt":"p","image":{"$bytes":"?"},"image_format":"png"}`, plugin.CodeInvalidInput},
		{llmMultimodal, `{"prompt":"p","image":{"$bytes":""},"image_format":"png"}`, plugin.CodeInvalidInput},
		{llmMultimodal, `{"prompt":"p","image":{"$bytes":"eA=="},"image_format":"png","hints":{}}`, plugin.CodeInvalidInput},
		{llmDocument, `{"prompt":"p"}`, plugin.CodeInvalidInput},
	} {
		if err := s.fail(c.method, c.args); plugin.CodeOf(err) != c.code {
			t.Errorf("%s %.80s: got %v", c.method, c.args, err)
		}
	}
	if len(m.asked) != 0 {
		t.Errorf("asked %d times", len(m.asked))
	}
}

func TestAnImageComesFromTheScratchDirectoryAndNowhereElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "outside.png"), "secret")
	write(filepath.Join(scratch, "inside.png"), "pixels")
	if err := os.Symlink("../outside.png", filepath.Join(scratch, "link.png")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(scratch, "inside.png"), 6); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(scratch, "large.png"), "")
	if err := os.Truncate(filepath.Join(scratch, "large.png"), llmImage+1); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	s, m := withModel(t, nil)
	services := s.services()
	ask := func(path string) (map[string]any, error) {
		raw, err := services.Serve(t.Context(), llmMultimodal, fmt.Appendf(nil, `{"prompt":"p","image":{"$file":%q},"image_format":"PNG"}`, path))
		var value map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &value)
		}
		return value, err
	}
	if _, err := ask("inside.png"); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("before Attach: %v", err)
	}
	services.(*grant).Attach(root.FS(), "/scratch")
	for _, path := range []string{"inside.png", "/scratch/inside.png"} {
		got, err := ask(path)
		if err != nil || got["ok"] != true || got["transport_path"] != "inline_bytes" {
			t.Errorf("%s: %v, %v", path, got, err)
			continue
		}
		if part := m.last().Parts[0]; part.MIME != "image/png" || string(part.Data) != "pixels" {
			t.Errorf("%s: asked about %+v", path, part)
		}
	}
	asked := len(m.asked)
	for _, path := range []string{"link.png", "../outside.png", "/etc/passwd", "absent.png", ".", "large.png"} {
		if _, err := ask(path); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
	if len(m.asked) != asked {
		t.Error("a model saw one of them")
	}
}

// documents has one, art_1.
type documents struct{}

func (documents) Document(_ context.Context, tenant, session, id string) (llm.Document, error) {
	if tenant != "t" || session != "sess_1" || id != "art_1" {
		return llm.Document{}, plugin.Errorf(plugin.CodeNotFound, "there is no artifact %s", id)
	}
	return llm.Document{Name: "r.pdf", MIME: "application/pdf", Size: 4, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("%PDF")), nil }}, nil
}

func TestADocumentIsAnArtifactOfTheSession(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	s.broker.Documents = documents{}
	got := s.query(s.services(), llmDocument, `{"prompt":"p","artifact_id":"art_1"}`)
	if got["ok"] != false || got["transport_path"] != "text_fallback" || !strings.HasPrefix(got["error"].(string), "capability_gap: ") || len(m.asked) != 0 {
		t.Errorf("outside a session: %v", got)
	}
	s.call.Session = "sess_1"
	if got := s.query(s.services(), llmDocument, `{"prompt":"p","artifact_id":"art_1"}`); got["ok"] != true || got["transport_path"] != "inline_bytes" || string(m.last().Parts[0].Data) != "%PDF" {
		t.Errorf("got %v", got)
	}
	if err := s.fail(llmDocument, `{"prompt":"p","artifact_id":"art_2"}`); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("another: %v", err)
	}
	for mime, want := range map[string]bool{"application/pdf": true, "text/html": false} {
		if got := s.query(s.services(), llmSupports, fmt.Sprintf(`{"mime_type":%q}`, mime)); got["supported"] != want {
			t.Errorf("%s: %v", mime, got)
		}
	}
}

func TestOneCallAsksSoOftenAndNoMore(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	services := s.services()
	services.(*grant).queries.Store(llmQueries)
	if _, err := services.Serve(t.Context(), llmText, []byte(`{"prompt":"p"}`)); plugin.CodeOf(err) != plugin.CodeLimitExceeded || len(m.asked) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestBytesOfAnImageAreDecodedStrictly(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	args := fmt.Sprintf(`{"prompt":"p","image":{"$bytes":%q},"image_format":"image/jpeg"}`, base64.StdEncoding.EncodeToString([]byte("pixels")))
	if got := s.query(s.services(), llmMultimodal, args); got["ok"] != true || m.last().Parts[0].MIME != "image/jpeg" || string(m.last().Parts[0].Data) != "pixels" {
		t.Errorf("got %v, asked %+v", got, m.last())
	}
}
