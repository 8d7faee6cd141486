package report_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/mortise-dev/mortise/internal/service/report"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

var registered = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// held is a session with bytes of artifacts and the entries of its calls.
type held struct {
	session session.Session
	all     []session.Artifact
	bytes   map[string]string
	entries []plugin.Entry
}

func newHeld(name string) *held {
	return &held{session: session.Session{ID: "sess_0123456789ab", Name: name, Owner: "user::ana"}, bytes: map[string]string{}}
}

func (h *held) add(kind, name, tool, call, text string, labels ...string) string {
	id := fmt.Sprintf("art_%08d", len(h.all)+1)
	sum := sha256.Sum256([]byte(text))
	a := session.Artifact{ID: id, Session: h.session.ID, Type: kind, Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text)), SourceTool: tool, SourceCall: call, Labels: labels, CreatedAt: registered}
	if tool != "" {
		a.Parents = []string{h.all[0].ID}
	}
	h.all = append(h.all, a)
	h.bytes[id] = text
	return id
}

func (h *held) ran(t *testing.T, id, operation, in, message string) {
	t.Helper()
	rec := plugin.CallRecord{CallID: id, Operation: operation, Version: "1.0.0", Session: in, InputHash: "sha256:1", Origin: "cli"}
	kind := plugin.EntryCallSucceeded
	if message != "" {
		kind, rec.Error = plugin.EntryCallFailed, &plugin.ErrorRecord{Code: plugin.CodePluginError, Message: message}
	}
	body, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	e := plugin.Entry{Chain: 1, Seq: int64(len(h.entries) + 1), At: registered.Add(time.Duration(len(h.entries)) * time.Second), Kind: kind, Subject: id, Principal: "user::ana", Body: body}
	e.Hash = chain.Hash(&e)
	h.entries = append(h.entries, e)
}

func (h *held) source() report.Source {
	return report.Source{
		Session: h.session, Artifacts: h.all,
		Open: func(_ context.Context, id string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(h.bytes[id])), nil
		},
		Newest: func(_ context.Context, until report.Entry) (newest []plugin.Entry, _ error) {
			for _, e := range h.entries {
				if strings.HasPrefix(string(e.Kind), "call.") && (until.Seq == 0 || e.Chain == until.Chain && e.Seq <= until.Seq) {
					newest = append(newest, e)
				}
			}
			return newest[max(0, len(newest)-report.MaxEntries):], nil
		},
		Find: func(_ context.Context, id string) (found []plugin.Entry, _ error) {
			for _, e := range h.entries {
				if id == e.Subject || id == fmt.Sprintf("%d/%d", e.Chain, e.Seq) {
					found = append(found, e)
				}
			}
			return found, nil
		},
	}
}

func (h *held) report(t *testing.T) report.Report {
	t.Helper()
	r, err := report.Of(t.Context(), h.source())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, r report.Report, format string) []byte {
	t.Helper()
	text, err := r.Write(format)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// problems are what a report does not hold, in one text; "" where it holds.
func (h *held) problems(t *testing.T, file []byte) string {
	t.Helper()
	c, err := report.Verify(t.Context(), h.source(), file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(c.Problems, "\n")
}

func investigated(t *testing.T) *held {
	t.Helper()
	h := newHeld("case")
	log := h.add("log_stream", "auth.log", "", "", "2026-03-05T09:20:41Z one\n2026-03-05T09:20:42Z two\n")
	h.ran(t, "call-1", "search/search", h.session.ID, "")
	h.ran(t, "call-2", "other/other", "sess_of_another0", "")
	h.ran(t, "call-3", "search/search", h.session.ID, "it failed")
	h.add("json_events", "found.json", "search", "call-1", `{"artifact":{"artifact_id":"`+log+`"},"findings":[{"title":"a","first_line":2},{"title":"b","line":99},{"title":"c","offset":4}],
		"timeline":[{"text":"not twice","line":1,"time":"2026-03-05T09:20:41Z"}]}`, "untrusted")
	return h
}

// TestEachStatementIsCited: by its artifact, its place and the entry of its call, and calls of other sessions are not there.
func TestEachStatementIsCited(t *testing.T) {
	t.Parallel()
	h := investigated(t)
	r := h.report(t)
	if len(r.Calls) != 2 || r.Calls[0].ID != "call-1" || r.Calls[1].Code != "plugin_error" || len(r.Events) != 2 || len(r.Findings) != 3 || len(r.Notes) != 0 {
		t.Fatalf("the report has %d events and %+v and %+v, notes %q", len(r.Events), r.Calls, r.Findings, r.Notes)
	}
	f := r.Findings[0]
	if f.Entry.Hash != h.entries[0].Hash || f.Entry.Seq != 1 || f.SHA256 != h.all[1].SHA256 || f.At != "/findings/0" || f.Labels[0] != "untrusted" {
		t.Errorf("the first finding is %+v", f)
	}
	if p := f.Places[0]; p.Artifact != h.all[0].ID || p.SHA256 != h.all[0].SHA256 || p.Line != 2 || p.Quote != "2026-03-05T09:20:42Z two" || p.Missing {
		t.Errorf("it stands at %+v", p)
	}
	if !r.Findings[1].Places[0].Missing || r.Findings[2].Places[0].Missing || r.Findings[2].Places[0].Offset != 4 {
		t.Errorf("line 99 is there, or byte 4 is not: %+v", r.Findings[1:])
	}
	for _, format := range report.Formats {
		if got := h.problems(t, written(t, r, format)); got != "" {
			t.Errorf("as %s it does not hold: %s", format, got)
		}
	}
	h.add("text", "later.txt", "", "", "what came later is no part of it")
	if got := h.problems(t, written(t, r, "md")); got != "" {
		t.Errorf("with another artifact in the session it does not hold: %s", got)
	}
}

// TestWhatWasChangedIsFound: a word, the data, an artifact's bytes, its row, or an entry.
func TestWhatWasChangedIsFound(t *testing.T) {
	t.Parallel()
	rewrite := func(change func(r *report.Report)) func(t *testing.T, h *held, r report.Report, file []byte) []byte {
		return func(t *testing.T, _ *held, r report.Report, _ []byte) []byte { change(&r); return written(t, r, "md") }
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, h *held, r report.Report, file []byte) []byte
		want   string
	}{
		"a word": {func(_ *testing.T, _ *held, _ report.Report, file []byte) []byte {
			return bytes.Replace(file, []byte("title: a"), []byte("title: z"), 1)
		}, "is not what its data says"},
		"a line more": {func(_ *testing.T, _ *held, _ report.Report, file []byte) []byte { return append(file, "more\n"...) }, "is not what its data says"},
		"a statement": {rewrite(func(r *report.Report) { r.Findings[0].Text = "title: z" }), "finding 1 (art_00000002 at /findings/0): what it cites says otherwise"},
		"a line":      {rewrite(func(r *report.Report) { r.Findings[0].Places[0].Line = 1 }), "finding 1 "},
		"a quote":     {rewrite(func(r *report.Report) { r.Findings[0].Places[0].Quote = "three" }), "finding 1 "},
		"an invented statement": {rewrite(func(r *report.Report) {
			f := r.Findings[0]
			f.At = "/findings/7"
			r.Findings = append(r.Findings, f)
		}), "finding 4 (art_00000002 at /findings/7): what it cites does not say this"},
		"a statement left out": {rewrite(func(r *report.Report) { r.Findings = r.Findings[1:] }), "the report lacks a finding: art_00000002 at /findings/0"},
		"an event":             {rewrite(func(r *report.Report) { r.Events[0].Text = "three" }), "event 1 "},
		"who called":           {rewrite(func(r *report.Report) { r.Calls[0].Principal = "user::eve" }), "call call-1: entry 1/1 of the ledger tells of it otherwise"},
		"an entry's hash":      {rewrite(func(r *report.Report) { r.Calls[0].Entry.Hash = "00" }), "call call-1: entry 1/1 of the ledger has the hash"},
		"an entry's place":     {rewrite(func(r *report.Report) { r.Calls[0].Entry.Seq = 9 }), "call call-1: the ledger has no entry 1/9"},
		"another's entry": {rewrite(func(r *report.Report) {
			r.Calls[0].Entry.Seq, r.Calls[0].Entry.Hash = 2, "x"
		}), "call call-1: entry 1/2 of the ledger has the hash"},
		"an artifact's hash": {rewrite(func(r *report.Report) { r.Artifacts[0].SHA256 = "00" }), "artifact art_00000001 (auth.log): the report has sha256 00"},
		"the bytes": {func(_ *testing.T, h *held, _ report.Report, file []byte) []byte {
			h.bytes[h.all[0].ID] = "2026-03-05T09:20:41Z one\n2026-03-05T09:20:42Z too\n"
			return file
		}, "artifact art_00000001 (auth.log): its bytes have sha256"},
		"an artifact": {func(_ *testing.T, h *held, _ report.Report, file []byte) []byte { h.all = h.all[:1]; return file }, "artifact art_00000002 (found.json): the session has none"},
		"an entry": {func(_ *testing.T, h *held, _ report.Report, file []byte) []byte {
			h.entries[0].Body = bytes.Replace(h.entries[0].Body, []byte("1.0.0"), []byte("1.0.1"), 1)
			return file
		}, "call call-1: entry 1/1 of the ledger is not what its hash is of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := investigated(t)
			r := h.report(t)
			if got := h.problems(t, c.change(t, h, r, written(t, r, "md"))); !strings.Contains(got, c.want) {
				t.Errorf("it says %q, and not %q", got, c.want)
			}
		})
	}
	for _, file := range []string{"", "text", `{"form":`, `{"form":1}`, `{"form":2,"more":true}`, strings.Repeat("x", report.MaxBytes+1)} {
		if _, err := report.Verify(t.Context(), newHeld("").source(), []byte(file)); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.20q: %v", file, err)
		}
	}
}

// TestNoTextBecomesMarkup: names, results, messages and lines are shown, and nothing more.
func TestNoTextBecomesMarkup(t *testing.T) {
	t.Parallel()
	evil := "</pre></li><script>alert(1)</script><img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](http://evil.example/b.png) `c` **d** " +
		"http://evil.example www.evil.example a@evil.example <http://evil.example> &lt; $x$ ~~e~~ |f| {\"form\":2} \u202e\u200b\x1b[31m\x00\u2028"
	lines := "\n# heading\n```json\n{\"form\":2}\n```\n- item\n1. one\n> quote\n---\n===\n<b>"
	h := newHeld(evil + lines)
	h.session.Owner, h.session.Labels = evil, []string{evil}
	log := h.add("log_stream", evil+lines, "", "", "2026-03-05T09:20:41Z "+evil+lines, evil)
	h.ran(t, "call-1", evil+lines, h.session.ID, evil+lines)
	result, err := json.Marshal(map[string]any{"artifact": map[string]any{"artifact_id": log}, evil + lines: []any{map[string]any{"title": evil + lines, "line": 1}, map[string]any{"title": "1. " + lines, "line": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	h.add("json_events", "r.json", evil+lines, "call-1", string(result), evil)
	r := h.report(t)
	if len(r.Findings) != 2 || len(r.Calls) != 1 || len(r.Events) != 1 {
		t.Fatalf("%d findings, %d calls, %d events", len(r.Findings), len(r.Calls), len(r.Events))
	}
	for _, format := range report.Formats {
		text := written(t, r, format)
		if bytes.ContainsAny(text, "\u202e\u200b\x1b\x00\u2028") {
			t.Errorf("%s has characters that steer or hide", format)
		}
		if got := h.problems(t, text); got != "" {
			t.Errorf("%s does not hold: %s", format, got)
		}
	}
	page, err := html.Parse(bytes.NewReader(written(t, r, "html")))
	if err != nil {
		t.Fatal(err)
	}
	elements(t, page)
	fences := 0
	for line := range strings.Lines(string(written(t, r, "md"))) {
		switch {
		case strings.HasPrefix(line, "```"):
			fences++
			continue
		case strings.HasPrefix(line, `{"form":2,`):
			if strings.ContainsAny(line, "<>`") {
				t.Error("the data has marks")
			}
			continue
		}
		bare := line
		for _, mark := range []string{`\`, "`", "<", ">", "[", "]", "*", "_", "!", "@", "|", "~", "&", "$", "://", "www."} {
			bare = strings.ReplaceAll(bare, `\`+mark, "")
		}
		if strings.ContainsAny(bare, "`<>[]*_!@|~&$\\") && !strings.Contains(bare, `\#`) && !strings.Contains(bare, `\{`) || strings.Contains(bare, "://") || strings.Contains(bare, "www.") {
			t.Errorf("a mark is left in %q", line)
		}
	}
	if fences != 2 {
		t.Errorf("%d fences instead of the two of the data", fences)
	}
}

// elements holds a page against the few elements that a report has.
func elements(t *testing.T, n *html.Node) {
	t.Helper()
	if n.Type == html.ElementNode {
		switch n.Data {
		case "html", "head", "meta", "title", "style", "body":
		case "h1", "h2", "h3", "p", "ul", "li", "pre":
			if len(n.Attr) > 0 {
				t.Errorf("%s has %v", n.Data, n.Attr)
			}
		default:
			t.Errorf("the page has an element %s", n.Data)
		}
	}
	for c := range n.ChildNodes() {
		elements(t, c)
	}
}

// TestAReportIsBounded: what there is no room for is said.
func TestAReportIsBounded(t *testing.T) {
	t.Parallel()
	h := newHeld("large")
	h.add("log_stream", "a.log", "", "", strings.Repeat("2026-03-05T09:20:41Z "+strings.Repeat("é", 500)+"\n", report.MaxEvents+7))
	var rows strings.Builder
	for i := range report.MaxOfResult + 5 {
		fmt.Fprintf(&rows, "{\"title\":\"%d\",\"line\":%d}\n", i, i+1)
	}
	h.add("json_events", "rows.jsonl", "tool", "", rows.String())
	h.add("json_events", "r.json", "tool", "", "["+strings.TrimSuffix(strings.ReplaceAll(rows.String(), "\n", ","), ",")+"]")
	h.add("json_events", "none.json", "tool", "", "{")
	r := h.report(t)
	if len(r.Findings) != 2*report.MaxOfResult || len(r.Events) != report.MaxEvents {
		t.Errorf("%d findings, %d events", len(r.Findings), len(r.Events))
	}
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"no more than its first 50 statements are here, to line 51", "has 5 statements more than the 50 that are here", "none.json) is no JSON", "the timeline has 507 events"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q: %s", want, notes)
		}
	}
	if got := h.problems(t, written(t, r, "html")); got != "" {
		t.Error(got)
	}
}

// change replaces the record of an entry.
func (h *held) change(t *testing.T, i int, rec plugin.CallRecord) {
	t.Helper()
	body, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	h.entries[i].Body = body
	h.entries[i].Hash = chain.Hash(&h.entries[i])
}

// noted adds an entry about the session.
func (h *held) noted(t *testing.T, kind plugin.EntryKind, body any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	e := plugin.Entry{Chain: 1, Seq: int64(len(h.entries) + 1), At: registered, Kind: kind, Subject: h.session.ID, Principal: "user::ana", Body: raw}
	e.Hash = chain.Hash(&e)
	h.entries = append(h.entries, e)
}
