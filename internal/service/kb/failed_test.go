package kb_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
)

// TestWhatCannotBeReadIsNotReadAgainUntilItChanges: this holds for each kind of
// failure that is the file's own, and only for callers that look up by hash.
func TestWhatCannotBeReadIsNotReadAgainUntilItChanges(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	b := kb.New(kb.Options{Store: st, Files: files(t)})
	create := func() {
		if _, err := b.Create(t.Context(), "t", kb.Base{ID: "notes", CreatedBy: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	create()
	file := func(id, mime, content string) kb.Source {
		return kb.Source{KB: "notes", ID: id, ByHash: true, File: &extract.File{Data: []byte(content), MIME: mime, Name: id}, By: kb.By{Plugin: "p", Principal: "ada"}}
	}
	expect := func(step, want string, s kb.Source) {
		t.Helper()
		if got := ingest(t, b, s); !got.Skipped || got.SkipReason != want || got.ObjectID == "" {
			t.Errorf("%s: %+v", step, got)
		}
	}
	for name, s := range map[string]kb.Source{
		"no format that is read": file("a.bin", "application/octet-stream", "\x00\x01\x02\xff"),
		"no PDF":                 file("a.pdf", "application/pdf", "not one"),
		"nothing in it":          file("a.txt", "text/plain", " \n"),
		"no text":                {KB: "notes", ID: "text", ByHash: true, Text: " ", By: kb.By{Plugin: "p", Principal: "ada"}},
	} {
		first := ingest(t, b, s)
		if !first.Skipped || first.SkipReason == kb.HashMatchErrorState {
			t.Fatalf("%s: %+v", name, first)
		}
		again := kb.New(kb.Options{Store: st}) // which reads no files at all: another process, later
		if got := ingest(t, again, s); got.SkipReason != kb.HashMatchErrorState || got.ObjectID != first.ObjectID {
			t.Errorf("%s, once more: %+v", name, got)
		}
		forced := s
		forced.Attributes = map[string]any{"force_reingest": true}
		expect(name+", asked for", first.SkipReason, forced)
		plain := s
		plain.ByHash = false
		expect(name+", by a person", first.SkipReason, plain)
	}
	// By the hash that its plugin gives of it, where it gave one before too.
	s := file("b.bin", "application/octet-stream", "\x00\x01")
	s.Attributes = map[string]any{"source_hash": "1"}
	expect("with a hash", extract.Unsupported, s)
	s.File.Data = []byte("\x00\x02")
	expect("of the same hash", kb.HashMatchErrorState, s)
	s.Attributes = map[string]any{"source_hash": "2"}
	expect("of another", extract.Unsupported, s)
	s.File = &extract.File{Data: []byte("now it is text"), MIME: "text/plain", Name: "b.txt"}
	s.Attributes = map[string]any{"source_hash": "3"}
	if got := ingest(t, b, s); got.Skipped || !got.Created {
		t.Errorf("what can be read by now: %+v", got)
	}
	// What this host lacks may be there the next time.
	picture := file("c.png", "image/png", "\x89PNG\r\n\x1a\n")
	picture.OCR = extract.Never
	expect("a picture where none is read", extract.Empty, picture)
	expect("a picture where none is read, again", kb.HashMatchErrorState, picture)
	if r := (&extract.Refusal{Code: "timeout"}); r.Final() {
		t.Error("a timeout is the file's own fault")
	}
	if r := (&extract.Refusal{Code: "invalid_input", Passing: true}); r.Final() {
		t.Error("so is a program that is not installed")
	}
	// A base that is made again knows nothing of the last.
	if err := b.Delete(t.Context(), "t", "notes", "ada"); err != nil {
		t.Fatal(err)
	}
	create()
	expect("in a new base", extract.Unsupported, file("a.bin", "application/octet-stream", "\x00\x01\x02\xff"))
}
