package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/service/timeline"
)

var (
	// What a statement is made of, in this order.
	said = []string{
		"severity", "kind", "type", "subject", "title", "name", "value", "indicator", "address", "source", "destination", "protocol", "state",
		"why", "detail", "reason", "text", "template", "example", "score", "count",
	}
	// Lists whose items are statements even where they cite nothing.
	statements = []string{"findings", "indicators", "threats", "paths", "alerts", "matches"}
	// What is no statement: the appendix has it, or it is about the input as a whole.
	passed = []string{"timeline", "series", "artifact"}
)

// findings takes the statements of the results among the artifacts, in the order of these.
func (r *Report) findings(ctx context.Context, s Source) error {
	byID := map[string]session.Artifact{}
	for _, a := range s.Artifacts {
		byID[a.ID] = a
	}
	r.Findings = []Finding{}
	for _, a := range s.Artifacts {
		if !timeline.IsResult(a) {
			continue
		}
		l := &looking{a: a, about: a, byID: byID, into: r, entry: r.entryOf(a.SourceCall)}
		if err := l.look(ctx, s.Open); err != nil {
			return err
		}
		if l.more > 0 {
			r.note("%s (%s) has %d statements more than the %d that are here", a.ID, a.Name, l.more, l.count)
		}
	}
	return nil
}

// A looking is the search of one result.
type looking struct {
	a, about session.Artifact
	byID     map[string]session.Artifact
	into     *Report
	entry    Entry
	count    int
	more     int // statements that there was no room for
}

func (l *looking) look(ctx context.Context, open timeline.Open) error {
	file, err := open(ctx, l.a.ID)
	if err != nil {
		return err
	}
	defer file.Close()
	if strings.HasSuffix(l.a.Name, ".jsonl") {
		return l.table(file)
	}
	raw, more, err := read(file, maxResult)
	var root any
	switch {
	case err != nil:
		return err
	case more:
		l.into.note("%s (%s) has more than %d bytes in one piece; what it says is not here", l.a.ID, l.a.Name, maxResult)
		return nil
	case json.Unmarshal(raw, &root) != nil:
		l.into.note("%s (%s) is no JSON; what it says is not here", l.a.ID, l.a.Name)
		return nil
	}
	object, _ := root.(map[string]any)
	if inner, wrapped := object["result"].(map[string]any); wrapped {
		object = inner
	}
	l.about = timeline.About(l.byID, l.a, object)
	l.walk(root, "", false, 0)
	return nil
}

// table takes the rows of a table: a JSON object a line. Rows beyond those that there is room for
// are not counted.
func (l *looking) table(file io.Reader) error {
	l.about = timeline.About(l.byID, l.a, nil)
	lines := bufio.NewScanner(io.LimitReader(file, maxResult))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var row map[string]any
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &row) != nil {
			continue
		}
		if l.walk(row, fmt.Sprintf("line %d", n), true, 1); l.more > 0 {
			l.into.note("%s (%s): no more than its first %d statements are here, to line %d", l.a.ID, l.a.Name, l.count, n)
			l.more = 0
			return nil
		}
	}
	if lines.Err() == bufio.ErrTooLong {
		l.into.note("%s (%s) has a line of more than %d bytes; what follows is not here", l.a.ID, l.a.Name, 1<<20)
		return nil
	}
	return lines.Err()
}

// walk looks for statements in a value and all that it holds, in an order that is always the same.
func (l *looking) walk(value any, at string, listed bool, depth int) {
	if depth > deepest {
		return
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			l.walk(item, at+"/"+strconv.Itoa(i), listed, depth+1)
		}
	case map[string]any:
		if depth > 0 && l.take(v, at, listed) {
			return
		}
		for _, name := range inOrder(v) {
			l.walk(v[name], at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), slices.Contains(statements, name), depth+1)
		}
	}
}

// inOrder are the names of members: those of statements first.
func inOrder(v map[string]any) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool { return slices.Contains(passed, name) })
	slices.SortStableFunc(names, func(a, b string) int {
		first := func(name string) int {
			return (slices.Index(statements, name) + len(statements) + 1) % (len(statements) + 1)
		}
		return first(a) - first(b)
	})
	return names
}

// take takes an object for a statement, if it is one: it says something, and cites a place or is
// among those that make statements.
func (l *looking) take(v map[string]any, at string, listed bool) bool {
	text := textOf(v)
	there := l.places(nil, v, 0)
	if text == "" || len(there) == 0 && !listed {
		return false
	}
	if l.count >= MaxOfResult || len(l.into.Findings) >= MaxFindings {
		l.more++
		return true
	}
	l.count++
	l.into.Findings = append(l.into.Findings, Finding{
		Result: l.a.ID, SHA256: l.a.SHA256, At: clipped(at, maxQuote), Text: text, Places: append([]Place{}, there...), Call: l.a.SourceCall, Entry: l.entry,
		Labels: append([]string{}, l.a.Labels...),
	})
	return true
}

// textOf is what an object says, in one line.
func textOf(v map[string]any) string {
	var words []string
	for _, name := range said {
		switch value := v[name].(type) {
		case string:
			if value != "" {
				words = append(words, name+": "+clipped(value, maxQuote))
			}
		case float64:
			words = append(words, name+": "+strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	if list, is := v["techniques"].([]any); is {
		for _, item := range list[:min(len(list), 10)] {
			if one, is := item.(map[string]any); is {
				if id, is := one["id"].(string); is {
					words = append(words, "technique: "+clipped(id, 20))
				}
			}
		}
	}
	return clipped(strings.Join(words, "; "), maxText)
}

// places are those that an object and what it holds cite, MaxPlaces at most.
func (l *looking) places(found []Place, value any, depth int) []Place {
	if depth > 3 || len(found) >= MaxPlaces {
		return found
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			found = l.places(found, item, depth+1)
		}
	case map[string]any:
		line, frame, offset := timeline.Where(v)
		p := Place{Artifact: l.about.ID, Name: l.about.Name, SHA256: l.about.SHA256, Line: line, Frame: frame, Offset: offset}
		if line+frame > 0 || offset >= 0 {
			if !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = l.places(found, v[name], depth+1)
		}
	}
	return found[:min(len(found), MaxPlaces)]
}
