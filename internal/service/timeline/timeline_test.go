package timeline_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/service/timeline"
)

var registered = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// held is a session's artifacts with their bytes.
type held struct {
	all   []session.Artifact
	bytes map[string]string
}

func (h *held) add(kind, name, tool, text string, parents ...string) string {
	id := fmt.Sprintf("art_%08d", len(h.all)+1)
	h.all = append(h.all, session.Artifact{ID: id, Type: kind, Name: name, SourceTool: tool, Parents: parents, SHA256: strings.Repeat("ab", 32), CreatedAt: registered})
	if h.bytes == nil {
		h.bytes = map[string]string{}
	}
	h.bytes[id] = text
	return id
}

func (h *held) of(t *testing.T, f timeline.Filter) ([]timeline.Event, []string) {
	t.Helper()
	events, notes, err := timeline.Of(t.Context(), h.all, func(_ context.Context, id string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(h.bytes[id])), nil
	}, f)
	if err != nil {
		t.Fatal(err)
	}
	return events, notes
}

// lines are events in short.
func lines(events []timeline.Event) string {
	out := ""
	for _, e := range events {
		out += fmt.Sprintf("%s %s %s %s:%d:%d:%d %s %s\n", e.Time.Format("2006-01-02T15:04:05"), e.Zone, e.Year, e.Name, e.Line, e.Frame, e.Offset, strings.Join(e.Tools, "+"), e.Text)
	}
	return out
}

// TestEventsOfAllArtifactsAreInOrder: each is where it stands, in its zone, and once, and each is told once.
func TestEventsOfAllArtifactsAreInOrder(t *testing.T) {
	t.Parallel()
	h := &held{}
	syslog := h.add("log_stream", "auth.log", "", "Mar  5 09:20:41 gw sshd: Failed password\n  continued\nMar  5 09:23:48 gw sshd: Accepted password\nFeb 30 00:00:00 no day\n")
	h.add("log_stream", "web.log", "", "192.0.2.1 - - [05/Mar/2026:10:21:00 +0100] \"GET / HTTP/1.1\" 200 5\n2026-03-05T09:22:00,5+02:00 app: \xff late\n")
	capture := h.add("pcap", "a.pcap", "", "\xd4\xc3\xb2\xa1")
	h.add("text", "note.txt", "", "2026-03-05T00:00:00Z a text is no log\n")
	h.add("json_events", "r.json", "enriched", `{"artifact":{"artifact_id":"`+syslog+`"},"findings":[{"why":"guessed","begin":"03-05T09:20:41","first_line":1},{"why":"got in","begin":"03-05T09:23:48","first_line":3}],
		"series":{"points":[{"time":"03-05T09:20:00","lines":2}]}}`, syslog, capture)
	h.add("json_events", "flows.jsonl", "flows", `{"begin":"2026-03-05T09:24:00.5Z","protocol":"tcp","source":"10.0.0.1","destination":"10.0.0.2","first_frame":7,"first_offset":240}`+"\nnot JSON\n", capture)
	events, notes := h.of(t, timeline.Filter{})
	want := `2026-03-05T07:22:00 +02:00 said web.log:2:0:-1  2026-03-05T09:22:00,5+02:00 app: ` + "\uFFFD" + ` late
2026-03-05T09:20:41 not said assumed auth.log:1:0:-1 enriched Mar  5 09:20:41 gw sshd: Failed password
2026-03-05T09:21:00 +01:00 said web.log:1:0:-1  192.0.2.1 - - [05/Mar/2026:10:21:00 +0100] "GET / HTTP/1.1" 200 5
2026-03-05T09:23:48 not said assumed auth.log:3:0:-1 enriched Mar  5 09:23:48 gw sshd: Accepted password
2026-03-05T09:24:00 UTC said a.pcap:0:7:240 flows tcp, source 10.0.0.1, destination 10.0.0.2
`
	if got := lines(events); got != want || len(notes) != 0 {
		t.Errorf("the timeline is\n%s%q; it should be\n%s", got, notes, want)
	}
	for _, c := range []struct {
		filter timeline.Filter
		want   int
	}{
		{timeline.Filter{Source: "enriched"}, 2}, {timeline.Filter{Source: "web.log"}, 2}, {timeline.Filter{Source: syslog}, 2}, {timeline.Filter{Source: "none"}, 0},
		{timeline.Filter{Contains: "PASSWORD"}, 2}, {timeline.Filter{From: events[1].Time, To: events[3].Time}, 2}, {timeline.Filter{Year: 2020, To: events[0].Time}, 2},
	} {
		if got, _ := h.of(t, c.filter); len(got) != c.want {
			t.Errorf("%+v: %d events\n%s", c.filter, len(got), lines(got))
		}
	}
}

// TestALargeLogIsBounded: the bound is one of events that are wanted, and is told.
func TestALargeLogIsBounded(t *testing.T) {
	t.Parallel()
	h, b := &held{}, strings.Builder{}
	for i := range timeline.MaxOfOne + 10 {
		fmt.Fprintf(&b, "%s line %d\n", registered.Add(time.Duration(i)*time.Second).Format(time.RFC3339), i)
	}
	b.WriteString(strings.Repeat("x", 3<<20) + "\n") // longer than is looked at
	b.WriteString("2030-01-01T00:00:00Z the last\n")
	h.add("log_stream", "a.log", "", b.String())
	events, notes := h.of(t, timeline.Filter{})
	if len(events) != timeline.MaxOfOne || len(notes) != 1 || !strings.Contains(notes[0], "a.log") {
		t.Errorf("%d events, %q", len(events), notes)
	}
	events, notes = h.of(t, timeline.Filter{From: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)})
	if len(events) != 1 || events[0].Line != int64(timeline.MaxOfOne+12) || len(notes) != 0 {
		t.Errorf("%+v, %q", events, notes)
	}
}

// TestWhatIsNoResultHarmsNothing: JSON of any form, deep, wrong or empty.
func TestWhatIsNoResultHarmsNothing(t *testing.T) {
	t.Parallel()
	h := &held{}
	for i, text := range []string{"", "[", "null", "[1,2]", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `{"a":{"time":7,"line":1}}`, `{"a":{"time":"2026-13-45T00:00:00Z","line":1}}`,
		`{"artifact":{"artifact_id":"art_none"},"a":{"time":"2026-03-05T00:00:00Z","line":-1}}`} {
		h.add("json_events", fmt.Sprintf("%d.json", i), "tool", text)
	}
	if events, notes := h.of(t, timeline.Filter{}); len(events) != 0 || len(notes) != 2 {
		t.Errorf("%s%q", lines(events), notes)
	}
}

// TestTimesThatSomeYearsLackAreKept: a leap second is the second after it, and a 29 February
// without a year is the last one up to the year that is assumed or given.
func TestTimesThatSomeYearsLackAreKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, want string // want is "" for a line that has no time
		year       int    // of the filter
	}{
		{"2016-12-31T23:59:60Z x", "2017-01-01T00:00:00 UTC said", 0},
		{"2016-12-31T23:59:60.250Z x", "2017-01-01T00:00:00 UTC said", 0},
		{"2017-01-01T08:59:60+09:00 x", "2017-01-01T00:00:00 +09:00 said", 0},
		{`192.0.2.1 - - [31/Dec/2016:23:59:60 +0000] "GET /"`, "2017-01-01T00:00:00 +00:00 said", 0},
		{"Jun 30 23:59:60 gw x", "2026-07-01T00:00:00 not said assumed", 0},
		{"Dec 31 23:59:60 gw x", "2016-01-01T00:00:00 not said given", 2015},
		{"2016-12-31T23:59:61Z x", "", 0},
		{"2016-12-31T23:60:00Z x", "", 0},
		{"Feb 29 10:00:00 gw x", "2024-02-29T10:00:00 not said assumed", 0},
		{"<34>Feb 29 10:00:00 gw x", "2024-02-29T10:00:00 not said assumed", 0},
		{"Feb 29 10:00:00 gw x", "2020-02-29T10:00:00 not said given", 2020},
		{"Feb 29 10:00:00 gw x", "2020-02-29T10:00:00 not said assumed", 2023},
		{"Feb 29 10:00:00 gw x", "1896-02-29T10:00:00 not said assumed", 1900},
		{"Feb 29 23:59:60 gw x", "2024-03-01T00:00:00 not said assumed", 0},
		{"2024-02-29T10:00:00Z x", "2024-02-29T10:00:00 UTC said", 0},
		{"2025-02-29T10:00:00Z x", "", 0}, // no year is missing, so there is nothing to assume
		{"Feb 30 10:00:00 gw x", "", 0},
	} {
		h := &held{}
		h.add("log_stream", "a.log", "", c.line+"\n")
		events, _ := h.of(t, timeline.Filter{Year: c.year})
		got := ""
		if len(events) > 0 {
			got = fmt.Sprintf("%s %s %s", events[0].Time.Format("2006-01-02T15:04:05"), events[0].Zone, events[0].Year)
		}
		if got != c.want {
			t.Errorf("%q in %d is at %q, want %q", c.line, c.year, got, c.want)
		}
	}
	h := &held{}
	log := h.add("log_stream", "a.log", "", "")
	h.add("json_events", "r.json", "tool", `{"artifact":{"artifact_id":"`+log+`"},"findings":[{"why":"x","begin":"02-29T10:00:00","first_line":1}]}`, log)
	if events, _ := h.of(t, timeline.Filter{}); len(events) != 1 || events[0].Time.Year() != 2024 || events[0].Year != "assumed" {
		t.Errorf("a result of 29 February is %s", lines(events))
	}
}
