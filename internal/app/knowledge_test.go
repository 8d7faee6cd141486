package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// thesaurus is a server of embeddings in OpenAI's format that knows of fruit and
// weather. It is off while it is told to be.
func thesaurus(t *testing.T) (url string, off *atomic.Bool) {
	t.Helper()
	off = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json2.UnmarshalRead(r.Body, &in, json2.RejectUnknownMembers(true)); err != nil || r.URL.Path != "/v1/embeddings" || in.Model != "meanings" {
			t.Errorf("%s %+v, %v", r.URL.Path, in, err)
		}
		if off.Load() {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		data := []any{}
		for i, text := range in.Input {
			v := []float64{0.01, 0.01}
			for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
				switch word {
				case "apple", "pear", "fruit":
					v[0]++
				case "rain", "sun", "weather":
					v[1]++
				}
			}
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": "meanings-1", "data": data, "usage": map[string]int{"prompt_tokens": 7, "total_tokens": 7}})
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", off
}

// A host with a model of embeddings finds documents by their meaning, puts each
// request on record, and loses nothing while the model cannot be reached.
func TestAModelOfEmbeddingsIsAsked(t *testing.T) {
	t.Parallel()
	url, off := thesaurus(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", fmt.Sprintf("models:\n  embedding: {provider: openai, model: meanings, base_url: %q, input_price: 2}\n", url))
	a := open(t, home)
	if a.Models.Enabled("any") {
		t.Error("a model of embeddings answers queries")
	}
	if _, err := a.Knowledge.Create(t.Context(), "local", kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	add := func(id, text string) kb.Ingested {
		t.Helper()
		got, err := a.Knowledge.Ingest(t.Context(), "local", kb.Source{KB: "notes", ID: id, Text: text, By: kb.By{Principal: "ada", Operation: "kb add"}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	finds := func(query string) (ids []string) {
		t.Helper()
		hits, err := a.Knowledge.Search(t.Context(), "local", kb.Query{Text: query, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			ids = append(ids, hit.SourceID)
		}
		return ids
	}
	if add("s1", "An apple.").Unembedded || add("s2", "Rain, then sun.").Unembedded {
		t.Error("the model was not asked")
	}
	if got := finds("weather"); !slices.Equal(got, []string{"s2"}) {
		t.Errorf("weather finds %q", got)
	}
	var records []plugin.ModelRecord
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Kind: string(plugin.EntryModelCalled)}) {
		var r plugin.ModelRecord
		if err != nil || json.Unmarshal(e.Body, &r) != nil || e.Principal != "ada" && e.Principal != "" {
			t.Fatalf("%+v, %v", e, err)
		}
		records = append(records, r)
	}
	if len(records) != 3 {
		t.Fatalf("%d requests are on record", len(records))
	}
	for _, r := range records {
		if r.Tier != "embedding" || r.Model != "meanings" || r.Answered != "meanings-1" || r.TokensIn != 7 || r.Cost == 0 || r.Kept || r.Outcome != "ok" {
			t.Errorf("%+v", r)
		}
	}
	if s, err := a.As(a.Principal).Models().List(t.Context()); err != nil || s.Spent <= 0 {
		t.Errorf("%+v, %v", s, err)
	}

	off.Store(true)
	if !add("s3", "A pear.").Unembedded {
		t.Error("it was embedded by a model that is off")
	}
	if got := finds("pear"); !slices.Equal(got, []string{"s3"}) {
		t.Errorf("pear finds %q", got)
	}
	if _, err := a.Knowledge.Embed(t.Context(), "local", "notes", kb.By{}); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("%v", err)
	}
	off.Store(false)
	if got, err := a.Knowledge.Embed(t.Context(), "local", "notes", kb.By{}); err != nil || got.Made != 1 || got.Embedded != 3 || got.Model != "openai/meanings" {
		t.Errorf("%+v, %v", got, err)
	}
}
