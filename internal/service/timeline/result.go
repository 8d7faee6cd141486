package timeline

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/session"
)

// Members of results that say when, where and what; the first that is there counts.
var (
	whenMembers   = []string{"time", "begin", "first", "start", "timestamp", "first_seen", "taken"}
	lineMembers   = []string{"line", "first_line"}
	frameMembers  = []string{"frame", "first_frame", "first_packet", "packet"}
	offsetMembers = []string{"offset", "first_offset"}
	whatMembers   = []string{"text", "why", "title", "detail", "kind", "example", "name", "value", "state", "protocol"}
)

const deepest = 12 // levels of a result that are looked into

// readTable takes the events of a table: a JSON object a line.
func (g *gathering) readTable(a session.Artifact, r io.Reader) error {
	about := g.about(a, nil)
	count := 0
	return g.eachLine(a, r, func(n int64, line []byte) bool {
		var row map[string]any
		if json.Unmarshal(line, &row) != nil {
			return true // cut, or none
		}
		e, ok := g.told(a, about, row)
		if !ok {
			return true
		}
		if e.Line == 0 && e.Frame == 0 && about.ID == a.ID {
			e.Line = n // of the table itself
		}
		if count++; count > MaxOfOne {
			return false
		}
		return g.add(e)
	})
}

// readResult takes the events of a result in one piece.
func (g *gathering) readResult(a session.Artifact, raw []byte) {
	var root any
	if json.Unmarshal(raw, &root) != nil {
		g.note("%s (%s) is no JSON; it was left out", a.ID, a.Name)
		return
	}
	if object, is := root.(map[string]any); is {
		if inner, wrapped := object["result"].(map[string]any); wrapped {
			root, object = inner, inner
		}
		g.walk(a, g.about(a, object), root, 0)
		return
	}
	g.walk(a, g.about(a, nil), root, 0)
}

// walk looks for events in a value and all that it holds, in an order that is always the same.
func (g *gathering) walk(a, about session.Artifact, value any, depth int) {
	if depth > deepest {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			g.walk(a, about, item, depth+1)
		}
	case map[string]any:
		if depth > 0 {
			if e, ok := g.told(a, about, v); ok && !g.add(e) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			g.walk(a, about, v[name], depth+1)
		}
	}
}

// told is the event that an object of a result tells of, if it has a time and a place or a text.
func (g *gathering) told(a, about session.Artifact, v map[string]any) (Event, bool) {
	when, there := "", map[string]any(nil)
	for _, name := range whenMembers {
		if text, is := v[name].(string); is {
			when = text
		} else if at, is := v[name].(map[string]any); is { // {"time", "frame", "offset"}
			when, _ = at["time"].(string)
			there = at
		}
		if when != "" {
			break
		}
	}
	at, ok := g.timeOf(about, when)
	if !ok {
		return Event{}, false
	}
	e := g.event(about, at, "")
	e.Tools = []string{a.SourceTool}
	e.Line, e.Frame, e.Offset = Where(v, there)
	var words []string
	for _, name := range whatMembers {
		if text, is := v[name].(string); is && text != "" {
			words = append(words, text)
			break
		}
	}
	for _, name := range []string{"source", "destination", "address"} {
		if text, is := v[name].(string); is && text != "" && !strings.Contains(strings.Join(words, " "), text) {
			words = append(words, name+" "+text)
		}
	}
	e.Text = clipped(strings.Join(words, ", "))
	return e, e.Text != "" || e.Line+e.Frame > 0
}

// Where is the place that objects of a result cite, by the first that has each: a line and a frame
// from 1, 0 where there is none, and an offset in bytes, -1 where there is none.
func Where(objects ...map[string]any) (line, frame, offset int64) {
	if offset = number(offsetMembers, objects...); offset == 0 {
		offset = -1
	}
	return number(lineMembers, objects...), number(frameMembers, objects...), offset
}

// number is the first of those members that is a whole number above 0, of either object.
func number(names []string, objects ...map[string]any) int64 {
	for _, object := range objects {
		for _, name := range names {
			if n, is := object[name].(float64); is && n >= 1 && n <= 1<<53 && n == float64(int64(n)) {
				return int64(n)
			}
		}
	}
	return 0
}

// about is [About] among the artifacts of the session.
func (g *gathering) about(a session.Artifact, result map[string]any) session.Artifact {
	return About(g.byID, a, result)
}

// About is the artifact that a result is about, whose lines and frames it cites: the one that it or
// its metadata name, else its only parent that no tool made, else itself.
func About(byID map[string]session.Artifact, a session.Artifact, result map[string]any) session.Artifact {
	var named struct {
		Source string `json:"source_artifact"`
	}
	_ = json.Unmarshal(a.Metadata, &named)
	if of, is := result["artifact"].(map[string]any); is {
		if id, is := of["artifact_id"].(string); is {
			named.Source = id
		}
	}
	if found, there := byID[named.Source]; there && slices.Contains(a.Parents, named.Source) {
		return found
	}
	files := slices.DeleteFunc(slices.Clone(a.Parents), func(id string) bool { one, there := byID[id]; return !there || one.SourceTool != "" })
	if len(files) == 1 {
		return byID[files[0]]
	}
	return a
}
