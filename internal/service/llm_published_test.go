package service

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/llm"
)

// TestADocumentIsTheFileThatThePluginHas in its scratch directory, of whatever
// type it says, and nothing outside.
func TestADocumentIsTheFileThatThePluginHas(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	services := s.services()
	services.(*grant).Attach(fstest.MapFS{"made/r.pdf": {Data: []byte("%PDF-made")}}, "/scratch")
	got := s.query(services, llmDocument, `{"prompt":"p","document":{"$file":"made/r.pdf"}}`)
	if part := m.last().Parts[0]; got["ok"] != true || got["transport_path"] != "inline_bytes" || part.MIME != "application/pdf" || string(part.Data) != "%PDF-made" {
		t.Errorf("got %v, asked about %+v", got, part)
	}
	asked := len(m.asked)
	got = s.query(services, llmDocument, `{"prompt":"p","document":{"$file":"made/r.pdf"},"mime_type":"text/html"}`)
	if got["ok"] != false || got["transport_path"] != "text_fallback" || got["fallback_reason"] == nil || len(m.asked) != asked {
		t.Errorf("of a type that no model reads: %v", got)
	}
	for _, args := range []string{`{"prompt":"p","document":{"$file":"../r.pdf"}}`, `{"prompt":"p","document":{"$file":"/etc/passwd"}}`, `{"prompt":"p","document":{"$file":""}}`,
		`{"prompt":"p","document":{"$file":"made/r.pdf"},"artifact_id":"art_1"}`} {
		if err := s.fail(llmDocument, args); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}

// TestUsageThatNoProviderToldIsToldToNoPlugin: it is told to no plugin, though budgets are charged with it.
func TestUsageThatNoProviderToldIsToldToNoPlugin(t *testing.T) {
	t.Parallel()
	s, m := withModel(t, nil)
	m.usage = &llm.Usage{}
	services := s.services()
	if got := s.query(services, llmText, `{"prompt":"p"}`); got["ok"] != true || got["token_usage"] != nil {
		t.Errorf("got %v", got)
	}
	if metrics := services.(*grant).Metrics(); metrics["tokens_in"] == nil {
		t.Errorf("nothing was charged: %v", metrics)
	}
}

// TestSessionOpenTellsWhatTheAdministratorSet: context.config, and whether a
// tool that asks for a model runs without; and no pillar but the session's.
func TestSessionOpenTellsWhatTheAdministratorSet(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.target.Manifest.Pillar = "network_forensics"
	var got map[string]any
	open := func() {
		t.Helper()
		raw, err := s.services().Serve(t.Context(), "session.open", []byte("{}"))
		if err == nil {
			got = nil
			err = json.Unmarshal(raw, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open()
	if !reflect.DeepEqual(got["config"], map[string]any{}) || got["pillar"] != "" || got["llm_required"] != nil {
		t.Errorf("got %v", got)
	}
	s.broker.Settings = map[string]map[string]any{s.target.Manifest.Name: {"condition_orange": true}, "another": {"x": 1}}
	s.broker.RefuseWithoutModel = true
	open()
	if !reflect.DeepEqual(got["config"], map[string]any{"condition_orange": true}) || got["llm_required"] != "refuse" {
		t.Errorf("got %v", got)
	}
}

// TestAPersonsFileHasItsNameInTheMetadata, and a tool's what the tool said.
func TestAPersonsFileHasItsNameInTheMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    Artifact
		want string
	}{
		{Artifact{Name: `a "log".1`}, `{"original_filename":"a \"log\".1"}`},
		{Artifact{Name: "a", Metadata: []byte(`{"original_filename":"b"}`)}, `{"original_filename":"b"}`},
		{Artifact{Name: "a", SourceTool: "t"}, `{}`},
		{Artifact{Name: "a", SourceTool: "t", Metadata: []byte(`{"n":1}`)}, `{"n":1}`},
	} {
		if got := refOf(&c.a); string(got.Metadata) != c.want || strings.Contains(string(got.Metadata), "\n") {
			t.Errorf("%+v: %s", c.a, got.Metadata)
		}
	}
}
