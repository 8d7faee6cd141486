package kb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
)

// TestWhatASourceIsKnownBy: by the hash that it was given, where both have one,
// else by what it holds, whether it is a text, mail, a thread, an object or a file.
// What is only known about a text makes it no other.
func TestWhatASourceIsKnownBy(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *kb.Options) { o.Files = files(t) })
	kinds := map[string]func(content string) kb.Source{
		"text": func(content string) kb.Source { return text("text", content) },
		"mail": func(content string) kb.Source {
			mail := kb.Email{Subject: "S", MessageID: "mail", BodyText: content}
			s := mail.Source("")
			s.KB = "notes"
			return s
		},
		"object": func(content string) kb.Source {
			s, err := kb.Object(map[string]any{"external_id": "object", "source": map[string]any{"plugin": "p"}, "content": content, "type": "digest"})
			if err != nil {
				t.Fatal(err)
			}
			s.KB = "notes"
			return s
		},
		"file": func(content string) kb.Source {
			return kb.Source{KB: "notes", ID: "file", Title: "f", File: &extract.File{Data: []byte(content), MIME: "text/plain", Name: "f.txt"}}
		},
	}
	hash := func(h string) map[string]any { return map[string]any{"source_hash": h} }
	for kind, made := range kinds {
		for i, step := range []struct {
			content    string
			attributes map[string]any
			skipped    bool
		}{
			{"one", nil, false},
			{"one", nil, true},                                       // no hash was given, and it is the same
			{"one", hash("1"), true},                                 // only one of them has a hash
			{"two", hash("1"), true},                                 // the source says that it is the same
			{"one", hash("2"), false},                                // and now that it is not
			{"one", map[string]any{"own": 1}, true},                  // it says nothing any more
			{"three", nil, false},                                    //
			{"three", map[string]any{"force_reingest": true}, false}, // asked for
		} {
			s := made(step.content)
			s.Attributes = step.attributes
			if got := ingest(t, b, s); got.Skipped != step.skipped || step.skipped != (got.SkipReason == kb.HashMatch) {
				t.Errorf("%s, step %d: %+v", kind, i+1, got)
			}
		}
		if kind == "file" {
			continue
		}
		s := made("three")
		for n := range 2 {
			if s.Details == nil {
				s.Details = map[string]any{}
			}
			s.Details["fetched"] = fmt.Sprint("run ", n)
			if got := ingest(t, b, s); !got.Skipped || got.Extraction.Details["fetched"] != s.Details["fetched"] {
				t.Errorf("%s, whose metadata is new: %+v", kind, got)
			}
		}
		if d, err := b.Document(t.Context(), "t", "notes", s.ID); err != nil || !strings.Contains(string(d.Extraction), `"run 1"`) {
			t.Errorf("%s: what is known of it is %s, %v", kind, d.Extraction, err)
		}
	}
}
