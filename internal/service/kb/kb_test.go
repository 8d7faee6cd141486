package kb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/extract/reader"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// asReader is the first argument of this program where it is the reader of documents.
const asReader = "reader"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asReader {
		os.Exit(reader.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func openStore(t testing.TB) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "data"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// open returns knowledge bases with one, notes.
func open(t testing.TB, change func(*kb.Options)) *kb.Bases {
	t.Helper()
	o := kb.Options{Store: openStore(t)}
	if change != nil {
		change(&o)
	}
	b := kb.New(o)
	if _, err := b.Create(t.Context(), "t", kb.Base{ID: "notes", CreatedBy: "ada"}); err != nil {
		t.Fatal(err)
	}
	return b
}

// files reads files for real.
func files(t testing.TB) *extract.Extractor {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := extract.New(extract.Options{Sandbox: box, Command: []string{program, asReader}, Scratch: t.TempDir(), Tesseract: "no-tesseract-here"})
	t.Cleanup(func() {
		if err := errors.Join(x.Close(), box.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

func text(id, content string) kb.Source {
	return kb.Source{KB: "notes", ID: id, Title: "On " + id, Text: content, By: kb.By{Plugin: "mailer", Principal: "ada", Call: "call-1"}}
}

func ingest(t *testing.T, b *kb.Bases, s kb.Source) kb.Ingested {
	t.Helper()
	got, err := b.Ingest(t.Context(), "t", s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func found(t *testing.T, b *kb.Bases, query string) []string {
	t.Helper()
	hits, err := b.Search(t.Context(), "t", kb.Query{Text: query})
	if err != nil {
		t.Fatal(err)
	}
	sources := []string{}
	for _, hit := range hits {
		sources = append(sources, hit.SourceID)
	}
	return sources
}

// TestTheSameSourceIsReplacedOrSkipped (SH-24): a source has one document; the
// same again is skipped, a changed one replaces document and passages.
func TestTheSameSourceIsReplacedOrSkipped(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	first := ingest(t, b, text("s1", "Apples are kept in the cellar."))
	if first.Skipped || first.Chunks != 1 || first.Words != 6 || first.Characters != 30 || first.Extraction.Method != "text" {
		t.Errorf("the first time: %+v", first)
	}
	again := ingest(t, b, text("s1", "Apples are kept in the cellar."))
	if !again.Skipped || again.SkipReason != kb.HashMatch || again.DocumentID != first.DocumentID || again.Words != 6 || again.Extraction.Method != "text" {
		t.Errorf("the same again: %+v", again)
	}
	changed := ingest(t, b, text("s1", "Pears are kept in the attic. "+strings.Repeat("They last until spring comes. ", 80)))
	if changed.Skipped || changed.DocumentID != first.DocumentID || changed.ObjectID != first.ObjectID || changed.Chunks < 2 {
		t.Errorf("another text: %+v", changed)
	}
	if got := found(t, b, "apples cellar"); len(got) != 0 {
		t.Errorf("what was replaced is found in %q", got)
	}
	if got := found(t, b, "attic"); !reflect.DeepEqual(got, []string{"s1"}) {
		t.Errorf("what replaced it is found in %q", got)
	}
	short := ingest(t, b, text("s1", "Nothing is kept."))
	base, err := b.Get(t.Context(), "t", "notes")
	if err != nil || short.Chunks != 1 || base.Documents != 1 || base.Chunks != 1 {
		t.Errorf("the knowledge base has then %+v, %v", base, err)
	}
}

// TestAFileThatGoesByItsHashAloneIsReadAgainWithoutOne: files of Shu plugins are
// skipped where source_hash says so, and not by what they hold.
func TestAFileThatGoesByItsHashAloneIsReadAgainWithoutOne(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *kb.Options) { o.Files = files(t) })
	file := kb.Source{KB: "notes", ID: "f", File: &extract.File{Data: []byte("Apples."), MIME: "text/plain", Name: "a.txt"}, By: kb.By{Plugin: "mailer"}, ByHash: true}
	for n, c := range []struct {
		hash  any
		skips bool
	}{{nil, false}, {nil, false}, {"1", false}, {"1", true}, {"2", false}, {nil, false}} {
		if file.Attributes = nil; c.hash != nil {
			file.Attributes = map[string]any{"source_hash": c.hash}
		}
		if got := ingest(t, b, file); got.Skipped != c.skips || got.Created != (n == 0) {
			t.Errorf("%d: %+v", n+1, got)
		}
	}
	note := text("s1", "Apples.")
	note.ByHash = true
	if ingest(t, b, note); !ingest(t, b, note).Skipped {
		t.Error("a text is read again")
	}
}

// TestWhatIsKnownChangesWithoutReading: a new URL or attribute of the same text
// is kept although it is skipped.
func TestWhatIsKnownChangesWithoutReading(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	s := text("s1", "Apples.")
	ingest(t, b, s)
	s.URL, s.Attributes, s.Labels = "https://example.com/1", map[string]any{"modified_at": "2026-01-02T03:04:05Z"}, []string{"untrusted"}
	if got := ingest(t, b, s); got.SkipReason != kb.HashMatch {
		t.Errorf("%+v", got)
	}
	d, err := b.Document(t.Context(), "t", "notes", "s1")
	if err != nil || d.URL != s.URL || !strings.Contains(string(d.Attributes), "modified_at") || !reflect.DeepEqual(d.Labels, s.Labels) || d.Text != "Apples." || d.SourceType != "plugin:mailer" {
		t.Errorf("%+v, %v", d, err)
	}
	s.Labels = nil
	ingest(t, b, s)
	if d, _ := b.Document(t.Context(), "t", "notes", "s1"); !reflect.DeepEqual(d.Labels, []string{"untrusted"}) {
		t.Errorf("the labels shrank to %q", d.Labels)
	}
}

// TestObjectIDs: the id is the contract's, the same in every host.
func TestObjectIDs(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	const want = "901c23b473cbf189c262a889e721df58850351abad01c974656161938ee62c05" // sha256 of mailer:ada|s1
	if got := ingest(t, b, text("s1", "x")); got.ObjectID != want {
		t.Errorf("the ko_id is %s, want %s", got.ObjectID, want)
	}
}

// TestTenantsAreApart: a tenant cannot find, read or delete what another has.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ingest(t, b, text("s1", "A secret recipe."))
	if _, err := b.Create(t.Context(), "u", kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	if hits, err := b.Search(t.Context(), "u", kb.Query{Text: "recipe"}); err != nil || len(hits) != 0 {
		t.Errorf("%+v, %v", hits, err)
	}
	if _, err := b.Document(t.Context(), "u", "notes", "s1"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}
	if err := b.Delete(t.Context(), "u", "notes", "ada"); err != nil {
		t.Error(err)
	}
	if got := found(t, b, "recipe"); len(got) != 1 {
		t.Errorf("the other tenant's deletion left %q", got)
	}
}

// TestBadFilesAreSkippedAndLeaveNothing: a file that gives no text is a skip
// with a reason, and what was there of its source stays as it was.
func TestBadFilesAreSkippedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *kb.Options) { o.Files = files(t) })
	file := func(id string, f extract.File) kb.Source {
		return kb.Source{KB: "notes", ID: id, File: &f, OCR: extract.Fallback, By: kb.By{Plugin: "drive", Principal: "ada"}}
	}
	good := ingest(t, b, file("f1", extract.File{Data: []byte("<h1>Harvest</h1><p>in autumn"), MIME: "text/html", Name: "a.html"}))
	if good.Skipped || good.Extraction.Engine != "html-to-markdown" {
		t.Fatalf("%+v", good)
	}
	for _, test := range []struct {
		file   extract.File
		reason string
	}{
		{extract.File{Data: []byte("none"), MIME: "application/pdf", Name: "a.pdf"}, extract.Unsupported},
		{extract.File{Data: []byte("PK\x03\x04 cut off"), Name: "a.docx"}, extract.Unsupported},
		{extract.File{Data: []byte("  "), MIME: "text/plain"}, extract.Empty},
		{extract.File{Data: make([]byte, extract.MaxFile+1)}, extract.TooLarge},
	} {
		for _, id := range []string{"f1", "f2"} {
			got := ingest(t, b, file(id, test.file))
			if !got.Skipped || got.SkipReason != test.reason || got.DocumentID != "" || got.Extraction.Details["message"] == "" {
				t.Errorf("%s: %+v, want a skip for %s", id, got, test.reason)
			}
		}
	}
	if got := found(t, b, "harvest"); !reflect.DeepEqual(got, []string{"f1"}) {
		t.Errorf("after all those %q is found", got)
	}
	if base, err := b.Get(t.Context(), "t", "notes"); err != nil || base.Documents != 1 {
		t.Errorf("%+v, %v", base, err)
	}
}

// TestManyAtOnce: of many who put the same source there at once, one document
// with its own passages is left.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := b.Ingest(context.Background(), "t", text("s1", strings.Repeat(fmt.Sprintf("version %d of it. ", i), 200))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d, err := b.Document(t.Context(), "t", "notes", "s1")
	if err != nil {
		t.Fatal(err)
	}
	hits, err := b.Search(t.Context(), "t", kb.Query{Text: "version", Limit: 100})
	if err != nil || int64(len(hits)) != d.Chunks {
		t.Errorf("%d passages are found of %d, %v", len(hits), d.Chunks, err)
	}
	for _, hit := range hits {
		if !strings.Contains(d.Text, strings.TrimSpace(hit.Text)) {
			t.Errorf("a passage of another version is left: %.60q", hit.Text)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	for _, test := range []struct {
		name string
		do   func() error
		code plugin.Code
	}{
		{"no such base", func() error {
			s := text("s", "x")
			s.KB = "nowhere"
			_, err := b.Ingest(t.Context(), "t", s)
			return err
		}, plugin.CodeNotFound},
		{"no source", func() error { _, err := b.Ingest(t.Context(), "t", text("", "x")); return err }, plugin.CodeInvalidInput},
		{"a long source", func() error { _, err := b.Ingest(t.Context(), "t", text(strings.Repeat("x", 1025), "x")); return err }, plugin.CodeInvalidInput},
		{"much text", func() error {
			_, err := b.Ingest(t.Context(), "t", text("s", strings.Repeat("x", extract.MaxText+1)))
			return err
		}, plugin.CodeInputTooLarge},
		{"many attributes", func() error {
			s := text("s", "x")
			s.Attributes = map[string]any{"a": strings.Repeat("x", 64<<10)}
			_, err := b.Ingest(t.Context(), "t", s)
			return err
		}, plugin.CodeInputTooLarge},
		{"no file reader", func() error {
			s := text("s", "")
			s.File = &extract.File{Data: []byte("x")}
			_, err := b.Ingest(t.Context(), "t", s)
			return err
		}, plugin.CodeUnavailable},
		{"an id", func() error { _, err := b.Create(t.Context(), "t", kb.Base{ID: "No Such"}); return err }, plugin.CodeInvalidInput},
		{"an id twice", func() error { _, err := b.Create(t.Context(), "t", kb.Base{ID: "notes"}); return err }, plugin.CodeInvalidInput},
		{"an empty query", func() error { _, err := b.Search(t.Context(), "t", kb.Query{}); return err }, plugin.CodeInvalidInput},
		{"a limit", func() error { _, err := b.Search(t.Context(), "t", kb.Query{Text: "x", Limit: 101}); return err }, plugin.CodeInvalidInput},
		{"another base", func() error {
			_, err := b.Search(t.Context(), "t", kb.Query{Text: "x", KBs: []string{"nowhere"}})
			return err
		}, plugin.CodeNotFound},
		{"a base to delete", func() error { return b.Delete(t.Context(), "t", "nowhere", "ada") }, plugin.CodeNotFound},
		{"a document", func() error { _, err := b.Remove(t.Context(), "t", "notes", "nowhere", "ada"); return err }, plugin.CodeNotFound},
	} {
		if err := test.do(); plugin.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %s", test.name, err, test.code)
		}
	}
	if base, err := b.Get(t.Context(), "t", "notes"); err != nil || base.Documents != 0 {
		t.Errorf("something was kept: %+v, %v", base, err)
	}
}

// A query is text, not a language: what search engines take for operators finds
// words, or nothing.
func TestQueriesAreWords(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ingest(t, b, text("s1", "Über die Übung: read the foo_bar@example.com manual, section 4.2."))
	ingest(t, b, text("s2", "東京都の天気は晴れ。"))
	for query, want := range map[string][]string{
		"übung":                     {"s1"},
		"EXAMPLE":                   {"s1"},
		"bar":                       {"s1"},
		`manual" OR "`:              {"s1"},
		"'; DROP TABLE kb_chunks--": {},
		"NEAR(manual section)":      {"s1"},
		"* ( ) : ^ - +":             {},
		"天気":                        {"s2"},
		"nothing like it":           {},
	} {
		if got := found(t, b, query); !reflect.DeepEqual(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// compass is a model of embeddings of two dimensions: fruit and weather.
type compass struct{}

func (compass) Space() string { return "compass" }

func (compass) Embed(_ context.Context, _ string, _ kb.By, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v := []float32{0.01, 0.01}
		for _, word := range []string{"apple", "pear", "fruit"} {
			v[0] += float32(strings.Count(strings.ToLower(text), word))
		}
		for _, word := range []string{"rain", "sun", "weather"} {
			v[1] += float32(strings.Count(strings.ToLower(text), word))
		}
		vectors[i] = v
	}
	return vectors, nil
}

// TestMeaningIsSearchedToo: with a model, what shares no word with the query is
// found, and what shares both stands first.
func TestMeaningIsSearchedToo(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *kb.Options) { o.Embedder = compass{} })
	ingest(t, b, text("s1", "Apples and pears."))
	ingest(t, b, text("s2", "Rain, then sun."))
	ingest(t, b, text("s3", "Fruit in the rain."))
	if got := found(t, b, "weather"); !reflect.DeepEqual(got[:1], []string{"s2"}) {
		t.Errorf("weather finds %q", got)
	}
	if got := found(t, b, "fruit"); got[0] != "s3" && got[0] != "s1" || len(got) != 3 {
		t.Errorf("fruit finds %q", got)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	for i := range 120 {
		ingest(t, b, text(fmt.Sprint(i), fmt.Sprintf("document number %d", i)))
	}
	if _, err := b.Remove(t.Context(), "t", "notes", "7", "ada"); err != nil {
		t.Error(err)
	}
	list, err := b.Documents(t.Context(), "t", kb.Listing{KB: "notes", Limit: 1000})
	if err != nil || len(list) != 119 {
		t.Errorf("%d documents, %v", len(list), err)
	}
	rest, err := b.Documents(t.Context(), "t", kb.Listing{KB: "notes", After: list[99].ID, Limit: 100})
	if err != nil || len(rest) != 19 || rest[0].ID != list[100].ID {
		t.Errorf("the second page has %d, %v", len(rest), err)
	}
	if err := b.Delete(t.Context(), "t", "notes", "ada"); err != nil {
		t.Fatal(err)
	}
	if bases, err := b.List(t.Context(), "t"); err != nil || len(bases) != 0 {
		t.Errorf("%+v, %v", bases, err)
	}
	if got := found(t, b, "document"); len(got) != 0 {
		t.Errorf("%q is found", got)
	}
}

func TestEmails(t *testing.T) {
	t.Parallel()
	e := kb.Email{
		Subject: "Plans", Sender: map[string]any{"name": "Ada", "email": "ada@example.com"}, Date: "2026-01-02",
		Recipients: map[string]any{"to": []any{"bob@example.com", map[string]any{"email": "eve@example.com"}}, "cc": "x@example.com"},
		MessageID:  "m1", ThreadID: "th1", BodyHTML: "<p>Meet <b>at</b> noon</p><style>x{}</style>", Labels: []any{"INBOX"},
	}
	s := e.Source("")
	want := "Subject: Plans\nFrom: Ada <ada@example.com>\nTo: bob@example.com, eve@example.com\nCc: x@example.com\nDate: 2026-01-02\n\nMeet at noon"
	if s.ID != "m1" || s.Text != want || s.Details["thread_id"] != "th1" || s.Details["message_id"] != "m1" || s.Details["labels"] == nil {
		t.Errorf("%+v, want %q", s, want)
	}
	if s := e.Source("other"); s.ID != "other" {
		t.Errorf("the external id is %s", s.ID)
	}
	if _, err := kb.Object(map[string]any{"external_id": "x", "content": "y"}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an object without a source: %v", err)
	}
	if s, err := kb.Object(map[string]any{"external_id": "x", "content": "y", "source": "feed"}); err != nil || s.ID != "x" || s.Text != "y" || s.Details["source"] != "feed" {
		t.Errorf("%+v, %v", s, err)
	}
}

// contents are texts of about 1,500 characters, of 5,000 words that are as
// frequent as words are (Zipf): the most frequent is in nearly all of them.
func contents(documents int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 2, 4999)
	texts := make([]string, documents)
	for n := range texts {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, "word%d", zipf.Uint64())
			if i%11 == 10 {
				b.WriteString(". ")
			} else {
				b.WriteByte(' ')
			}
		}
		texts[n] = b.String()
	}
	return texts
}

// BenchmarkTwice ingests documents, the same again, and searches among them:
// run it with -benchtime=1x.
func BenchmarkTwice(b *testing.B) {
	const documents = 10_000
	texts := contents(documents)
	for b.Loop() {
		bases := open(b, nil)
		pass := func() time.Duration {
			began := time.Now()
			next := make(chan int)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for n := range next {
						if _, err := bases.Ingest(b.Context(), "t", text(fmt.Sprint("s", n), texts[n])); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for n := range documents {
				next <- n
			}
			close(next)
			wg.Wait()
			return time.Since(began)
		}
		first, second := pass(), pass()
		took := make([]time.Duration, 0, 100)
		for i := range 100 {
			began := time.Now()
			hits, err := bases.Search(b.Context(), "t", kb.Query{KBs: []string{"notes"}, Text: fmt.Sprintf("word%d word%d", 10+i, 20+37*i)})
			if err != nil || len(hits) == 0 {
				b.Fatalf("%d hits, %v", len(hits), err)
			}
			took = append(took, time.Since(began))
		}
		b.ReportMetric(first.Seconds(), "first-s")
		b.ReportMetric(second.Seconds(), "second-s")
		b.ReportMetric(100*second.Seconds()/first.Seconds(), "second-%")
		b.ReportMetric(float64(median(took).Microseconds())/1000, "search-p50-ms")
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
