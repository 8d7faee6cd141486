// Package report writes what an investigation found, each statement with what proves it, and
// holds such a report against the artifacts and the ledger that it cites.
//
// A report is data and two ways to read it, Markdown and HTML. The data is in its last lines,
// so that what it says can be worked out again. Names, results and lines of logs are hostile
// text: none of them can become markup.
package report

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/service/timeline"
	"github.com/mortise-dev/mortise/plugin"
)

// What a report has at most. What is beyond is said in its notes.
const (
	MaxArtifacts = 1000
	MaxCalls     = 1000
	MaxEntries   = 10_000   // of the newest about calls, among which those of the session are looked for
	MaxFindings  = 1000     // of all results together
	MaxOfResult  = 50       // of one result
	MaxPlaces    = 5        // of one finding
	MaxEvents    = 500      // of the timeline
	MaxBytes     = 32 << 20 // of a report that is read
	maxResult    = 16 << 20 // bytes of a result in one piece
	maxText      = 600      // bytes of a statement
	maxQuote     = 300      // bytes of a line that is quoted
	form         = 2        // of the data; another one is another form of citing
	deepest      = 12       // levels of a result that are looked into
	maxProblems  = 100      // that are told one by one
	maxChains    = 1000     // of the ledger, whose newest entries are named
)

// A Report is what a session found at a moment, as it is cited. All that is in it can be worked out
// again from the session and the ledger: who made it, when and with which program cannot, and is not in it.
type Report struct {
	Form      int              `json:"form"`
	At        time.Time        `json:"at"`    // of the newest thing in it, by the clocks of hosts
	Until     Until            `json:"until"` // which moment that is
	Session   Session          `json:"session"`
	Artifacts []Artifact       `json:"artifacts"`
	Calls     []Call           `json:"calls"` // in the order in which they ended
	Findings  []Finding        `json:"findings"`
	Events    []timeline.Event `json:"events"`
	Notes     []string         `json:"notes"` // what was left out
}

// An Until is a moment of a session: what came later is no part of a report of that moment.
type Until struct {
	Entries  []Entry `json:"entries"`  // the newest that are about calls, one of each chain
	Artifact string  `json:"artifact"` // the newest; "" where there is none
}

// A Session is the investigation that a report is about.
type Session struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Pillar string   `json:"pillar"`
	Owner  string   `json:"owner"`
	Labels []string `json:"labels"`
}

// An Artifact is a file that a report cites.
type Artifact struct {
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	Name   string   `json:"name"`
	SHA256 string   `json:"sha256"`
	Size   int64    `json:"size"`
	Tool   string   `json:"tool"` // "" for a person's file
	Call   string   `json:"call"`
	Labels []string `json:"labels"`
}

// A Call is a run of an operation, as its entry in the ledger tells it.
type Call struct {
	ID         string    `json:"id"`
	Operation  string    `json:"operation"`
	Version    string    `json:"version"`
	Package    string    `json:"package"` // the digest of its files
	At         time.Time `json:"at"`      // of the entry
	Principal  string    `json:"principal"`
	By         string    `json:"by"` // who acted on behalf of the principal
	Origin     string    `json:"origin"`
	Kind       string    `json:"kind"` // of the entry: how the call ended
	Code       string    `json:"code"` // "" where it did not fail
	Message    string    `json:"message"`
	InputHash  string    `json:"input_hash"`
	ResultHash string    `json:"result_hash"`
	Labels     []string  `json:"labels"`
	Artifacts  []string  `json:"artifacts"`
	Entry      Entry     `json:"entry"`
}

// An Entry is a place in the ledger. Where there is none, its Seq is 0.
type Entry struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
}

// A Finding is one statement of a result.
type Finding struct {
	Result string   `json:"result"` // the artifact that says it
	SHA256 string   `json:"sha256"` // and its hash
	At     string   `json:"at"`     // where in it: a JSON pointer, after the number of its line in a table
	Text   string   `json:"text"`
	Places []Place  `json:"places"` // what it cites; empty where it cites nothing
	Call   string   `json:"call"`   // that made the result
	Entry  Entry    `json:"entry"`
	Labels []string `json:"labels"`
}

// A Place is what a finding rests on.
type Place struct {
	Artifact string `json:"artifact"`
	Name     string `json:"name"`
	SHA256   string `json:"sha256"`
	Line     int64  `json:"line"`    // from 1; 0 where the place is none
	Frame    int64  `json:"frame"`   // likewise
	Offset   int64  `json:"offset"`  // in bytes; -1 where there is none
	Quote    string `json:"quote"`   // the line, or how it begins
	Missing  bool   `json:"missing"` // the artifact has no such line or byte
}

// A Source is a host as a report asks it, as one principal may use it.
type Source struct {
	Session   session.Session
	Artifacts []session.Artifact // of the session
	Open      timeline.Open      // the bytes of one of them, held against its hash at their end
	// Newest are the newest entries about calls, the newest last, MaxEntries at most; of one chain, with a
	// seq of at most until, where that is not the zero Entry.
	Newest func(ctx context.Context, until Entry) ([]plugin.Entry, error)
	// Find are the entries that the id of a call, or CHAIN/SEQ, means.
	Find func(ctx context.Context, id string) ([]plugin.Entry, error)
}

// Of makes the report of a session as it is now. Errors: those of the source.
func Of(ctx context.Context, s Source) (Report, error) {
	entries, err := s.Newest(ctx, Entry{})
	if err != nil {
		return Report{}, err
	}
	until := Until{Entries: heads(entries)}
	if n := len(s.Artifacts); n > 0 {
		until.Artifact = s.Artifacts[n-1].ID
	}
	return of(ctx, s, until, entries)
}

// of makes the report of a moment, of which the source has the artifacts and entries are the newest.
func of(ctx context.Context, s Source, until Until, entries []plugin.Entry) (Report, error) {
	r := Report{Form: form, Until: until, Session: sessionOf(s.Session, s.Artifacts), Notes: []string{}, Artifacts: []Artifact{}}
	for _, a := range s.Artifacts {
		r.At = latest(r.At, a.CreatedAt)
	}
	if len(s.Artifacts) > MaxArtifacts {
		r.note("the session has %d artifacts; the first %d are here", len(s.Artifacts), MaxArtifacts)
		s.Artifacts = s.Artifacts[:MaxArtifacts]
	}
	for _, a := range s.Artifacts {
		r.Artifacts = append(r.Artifacts, artifactOf(a))
	}
	var err error
	if r.Calls, err = r.calls(ctx, s, entries); err != nil {
		return Report{}, err
	}
	for _, c := range r.Calls {
		r.At = latest(r.At, c.At)
	}
	return r, r.gather(ctx, s)
}

// heads are the newest of some entries, one of each chain.
func heads(entries []plugin.Entry) []Entry {
	newest := map[int64]Entry{}
	for _, e := range entries {
		if e.Seq > newest[e.Chain].Seq {
			newest[e.Chain] = Entry{e.Chain, e.Seq, e.Hash}
		}
	}
	all := []Entry{}
	for _, chain := range slices.Sorted(maps.Keys(newest)) {
		all = append(all, newest[chain])
	}
	return all
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}

// gather works out the findings and the timeline, from the artifacts of the source and the calls
// that are there.
func (r *Report) gather(ctx context.Context, s Source) (err error) {
	if err := r.findings(ctx, s); err != nil {
		return err
	}
	if err := r.quote(ctx, s); err != nil {
		return err
	}
	events, notes, err := timeline.Of(ctx, s.Artifacts, s.Open, timeline.Filter{})
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, notes...)
	if len(events) > MaxEvents {
		r.note("the timeline has %d events; those that tools tell of come first, and %d are here", len(events), MaxEvents)
		events = told(events)
	}
	r.Events = append([]timeline.Event{}, events...)
	return nil
}

// told are MaxEvents of more events, in their order: those that a tool tells of before others.
func told(events []timeline.Event) []timeline.Event {
	room := MaxEvents
	keep := make([]bool, len(events))
	for _, tools := range []bool{true, false} {
		for i, e := range events {
			if room > 0 && len(e.Tools) > 0 == tools {
				keep[i], room = true, room-1
			}
		}
	}
	var out []timeline.Event
	for i, e := range events {
		if keep[i] {
			out = append(out, e)
		}
	}
	return out
}

// sessionOf is a session with the labels of some of its artifacts.
func sessionOf(s session.Session, artifacts []session.Artifact) Session {
	labels := []string{}
	for _, a := range artifacts {
		labels = append(labels, a.Labels...)
	}
	slices.Sort(labels)
	return Session{s.ID, s.Name, s.Pillar, s.Owner, slices.Compact(labels)}
}

func artifactOf(a session.Artifact) Artifact {
	return Artifact{a.ID, a.Type, a.Name, a.SHA256, a.Size, a.SourceTool, a.SourceCall, append([]string{}, a.Labels...)}
}

// clipped is text of at most n bytes, in valid UTF-8.
func clipped(text string, n int) string {
	if len(text) <= n {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// read is all that r holds, up to n bytes; it reports whether there is more.
func read(r io.Reader, n int64) (raw []byte, more bool, err error) {
	raw, err = io.ReadAll(io.LimitReader(r, n+1))
	return raw, int64(len(raw)) > n, err
}
