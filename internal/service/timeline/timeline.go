// Package timeline tells when things happened, from what a session holds: the times in the
// results of its tools and at the beginnings of the lines of its logs.
//
// Each event says where it stands, so that it can be looked up: the artifact with its hash, and
// the line, frame or byte offset. What is read is bounded, and notes say what was left out.
package timeline

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// What is read of a session at most.
const (
	MaxEvents  = 100_000  // of all artifacts together
	MaxOfOne   = 20_000   // of one artifact
	maxLine    = 1 << 20  // bytes of a line that is looked at
	maxResult  = 16 << 20 // bytes of a result in one piece
	maxBytes   = 2 << 30  // of one artifact
	maxText    = 300      // bytes of an event's text
	unsaidZone = "not said"
)

// An Event is one thing that happened at a time.
type Event struct {
	Time     time.Time `json:"time"`         // in UTC; a time without a zone is taken as UTC
	Zone     string    `json:"zone"`         // UTC, +02:00, or "not said"
	Year     string    `json:"year"`         // said; given, by the filter; or assumed: that in which the artifact was registered
	Artifact string    `json:"artifact"`     // the id of the one that the place is in
	Name     string    `json:"name"`         // its name
	SHA256   string    `json:"sha256"`       // and its hash
	Line     int64     `json:"line"`         // from 1; 0 where the place is none
	Frame    int64     `json:"frame"`        // of a capture, likewise
	Offset   int64     `json:"offset"`       // in bytes; -1 where there is none
	Tools    []string  `json:"source_tools"` // those whose results tell of it; empty for a line that none does
	Text     string    `json:"text"`
}

// A Filter says which events are wanted; what is empty asks for nothing.
type Filter struct {
	From, To time.Time // the first that is wanted, and the first that is not any more
	Contains string    // in the text, in letters of any case
	Source   string    // the id or name of an artifact, or the name of a tool
	Year     int       // of times that have none
}

// Open opens the bytes of an artifact.
type Open func(ctx context.Context, id string) (io.ReadCloser, error)

// Of returns the events that artifacts of one session tell of, in the order of their times, and
// notes about what was left out. Error: that of opening or reading an artifact.
func Of(ctx context.Context, artifacts []session.Artifact, open Open, f Filter) (events []Event, notes []string, err error) {
	g := &gathering{filter: f, byID: map[string]session.Artifact{}, lines: map[place]int{}}
	for _, a := range artifacts {
		g.byID[a.ID] = a
	}
	for _, results := range []bool{false, true} { // lines first: results tell of them
		for _, a := range artifacts {
			if IsResult(a) != results || !results && a.Type != "log_stream" {
				continue
			}
			if err := g.read(ctx, a, open); err != nil {
				return nil, nil, err
			}
		}
	}
	found := slices.DeleteFunc(g.events, func(e Event) bool { return !f.wants(e) })
	slices.SortStableFunc(found, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return found, g.notes, nil
}

// IsResult reports whether an artifact is what a tool found: its result, or a table that it wrote.
func IsResult(a session.Artifact) bool { return a.Type == "json_events" && a.SourceTool != "" }

func (f Filter) wants(e Event) bool {
	switch {
	case !f.From.IsZero() && e.Time.Before(f.From), !f.To.IsZero() && !e.Time.Before(f.To):
		return false
	case f.Contains != "" && !strings.Contains(strings.ToLower(e.Text), strings.ToLower(f.Contains)):
		return false
	}
	return f.Source == "" || f.Source == e.Artifact || f.Source == e.Name || slices.Contains(e.Tools, f.Source)
}

// A place is where an event stands.
type place struct {
	artifact    string
	line, frame int64
}

// A gathering is the events found so far.
type gathering struct {
	filter Filter
	byID   map[string]session.Artifact
	lines  map[place]int // index of an event by its place
	events []Event
	notes  []string
}

func (g *gathering) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// read takes the events of one artifact.
func (g *gathering) read(ctx context.Context, a session.Artifact, open Open) error {
	r, err := open(ctx, a.ID)
	if err != nil {
		return err
	}
	defer r.Close()
	if !IsResult(a) {
		return g.readLog(a, r)
	}
	if strings.HasSuffix(a.Name, ".jsonl") {
		return g.readTable(a, r)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxResult+1))
	if err != nil {
		return err
	}
	if len(raw) > maxResult {
		g.note("%s (%s) has more than %d bytes in one piece; it was left out", a.ID, a.Name, maxResult)
		return nil
	}
	g.readResult(a, raw)
	return nil
}

// eachLine calls do with each line and its number, until do has enough.
func (g *gathering) eachLine(a session.Artifact, r io.Reader, do func(n int64, line []byte) (more bool)) error {
	lines := bufio.NewReaderSize(io.LimitReader(r, maxBytes), 64<<10)
	for n := int64(1); ; n++ {
		line, err := lines.ReadSlice('\n')
		kept := bytes.Clone(line)
		for err == bufio.ErrBufferFull { // a long one: as much as is looked at
			line, err = lines.ReadSlice('\n')
			if len(kept)+len(line) <= maxLine {
				kept = append(kept, line...)
			}
		}
		if len(kept) > 0 && !do(n, bytes.TrimRight(kept, "\r\n")) {
			g.note("%s (%s): no more than its first %d events are here, to line %d", a.ID, a.Name, MaxOfOne, n)
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return plugin.Errorf(plugin.CodeUnavailable, "reading %s (%s): %w", a.ID, a.Name, err)
		}
	}
}

// readLog takes the lines that begin with a time. Of one that continues another there is none.
func (g *gathering) readLog(a session.Artifact, r io.Reader) error {
	count := 0
	return g.eachLine(a, r, func(n int64, line []byte) bool {
		at, ok := g.timeOf(a, string(line[:min(len(line), 200)]))
		if !ok {
			return true
		}
		e := g.event(a, at, string(line))
		e.Line = n
		if !g.filter.mayWant(e, a) {
			return true
		}
		if count++; count > MaxOfOne {
			return false
		}
		return g.add(e)
	})
}

// mayWant leaves out early what the filter refuses by its time, so that a bound of events is one of
// those that are wanted. Tools may still tell of a line, so that neither text nor source counts.
func (f Filter) mayWant(e Event, a session.Artifact) bool {
	return Filter{From: f.From, To: f.To}.wants(e)
}

// event makes an event of an artifact, without its place.
func (g *gathering) event(a session.Artifact, at moment, text string) Event {
	return Event{Time: at.Time, Zone: at.zone, Year: at.year, Artifact: a.ID, Name: a.Name, SHA256: a.SHA256, Offset: -1, Tools: []string{}, Text: clipped(text)}
}

// add keeps an event, or adds its tools to the one of the same line or frame that is there. It
// reports whether there is room for more.
func (g *gathering) add(e Event) bool {
	at := place{e.Artifact, e.Line, e.Frame}
	if i, there := g.lines[at]; there && at.line+at.frame > 0 {
		for _, tool := range e.Tools {
			if !slices.Contains(g.events[i].Tools, tool) {
				g.events[i].Tools = append(g.events[i].Tools, tool)
			}
		}
		return true
	}
	if len(g.events) == MaxEvents {
		if !slices.Contains(g.notes, tooMany) {
			g.notes = append(g.notes, tooMany)
		}
		return false
	}
	g.lines[at] = len(g.events)
	g.events = append(g.events, e)
	return true
}

var tooMany = fmt.Sprintf("there are more than %d events; --from, --to and --source ask for fewer", MaxEvents)

// clipped is text of at most maxText bytes, in valid UTF-8.
func clipped(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}
