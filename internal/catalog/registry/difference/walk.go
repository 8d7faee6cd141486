package difference

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A walk goes through two trees at once and collects where they differ.
type walk struct {
	found []Change
	err   error
}

// members compares two objects; nil is one without members.
func (w *walk) members(at string, before, after map[string]any) {
	keys := map[string]bool{}
	for key := range before {
		keys[key] = true
	}
	for key := range after {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, was := before[key]
		now, is := after[key]
		w.value(child(at, key), old, now, was, is)
	}
}

// value compares two values at one place, where there are two.
func (w *walk) value(at string, before, after any, was, is bool) {
	if was && is && reflect.DeepEqual(before, after) {
		return
	}
	old, oldObject := before.(map[string]any)
	now, nowObject := after.(map[string]any)
	if opens(at) && (oldObject || !was) && (nowObject || !is) {
		if whole := isOperation(at); whole && !(was && is) {
			w.add(at, nil, nil, was, is)
			if !is {
				return // what it had is gone with it
			}
		}
		w.members(at, old, now)
		return
	}
	if was && is && oldObject && nowObject {
		w.members(at, old, now)
		return
	}
	list, oldList := before.([]any)
	items, nowList := after.([]any)
	if (oldList || !was) && (nowList || !is) {
		if w.list(at, list, items, was && is) {
			return
		}
	}
	w.add(at, before, after, was, is)
}

// list compares two lists and reports whether it could: lists of plain values
// as sets, if they differ as such, and others by place.
func (w *walk) list(at string, before, after []any, both bool) bool {
	if strings.HasSuffix(at, "/command") {
		return false // words of a command mean nothing alone
	}
	if plain(before) && plain(after) {
		gone, come := lacks(before, after), lacks(after, before)
		if len(gone)+len(come) == 0 {
			return false // another order, or a repetition
		}
		for _, item := range gone {
			w.add(at, item, nil, true, false)
		}
		for _, item := range come {
			w.add(at, nil, item, false, true)
		}
		return true
	}
	if !both {
		return false
	}
	for i := range max(len(before), len(after)) {
		var old, now any
		if i < len(before) {
			old = before[i]
		}
		if i < len(after) {
			now = after[i]
		}
		w.value(child(at, strconv.Itoa(i)), old, now, i < len(before), i < len(after))
	}
	return true
}

// plain reports whether a list holds neither objects nor lists.
func plain(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		switch item.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

// lacks returns what is in a and not in b, in the order of a.
func lacks(a, b []any) []any {
	var rest []any
	for _, item := range a {
		if !slices.Contains(b, item) && !slices.Contains(rest, item) {
			rest = append(rest, item)
		}
	}
	return rest
}

func (w *walk) add(at string, before, after any, was, is bool) {
	c := Change{At: at, What: Changed}
	switch {
	case !was:
		c.What = Added
	case !is:
		c.What = Removed
	}
	if before != nil {
		c.Before = w.raw(before)
	}
	if after != nil {
		c.After = w.raw(after)
	}
	w.found = append(w.found, c)
}

func (w *walk) raw(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	w.err = cmp.Or(w.err, err)
	return raw
}

// opens reports whether an object at a place is shown member by member even if
// the other side has none: all of a manifest but its schemas.
func opens(at string) bool { return !inSchema(at) && !isSchema(at) }

func isOperation(at string) bool {
	parts := strings.Split(at, "/")
	return len(parts) == 3 && parts[1] == "operations"
}

// isSchema reports whether a place is the input or output of an operation.
func isSchema(at string) bool {
	parts := strings.Split(at, "/")
	return len(parts) == 4 && schemaPlace(parts)
}

// inSchema reports whether a place is within one.
func inSchema(at string) bool {
	parts := strings.Split(at, "/")
	return len(parts) > 4 && schemaPlace(parts)
}

func schemaPlace(parts []string) bool {
	return parts[1] == "operations" && (parts[3] == "input" || parts[3] == "output")
}

// child returns the pointer to a member.
func child(at, key string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
