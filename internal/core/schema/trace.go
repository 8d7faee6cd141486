package schema

import (
	"maps"
	"slices"
)

// unevaluated are the members or the items of a value that no schema has looked at yet.
type unevaluated struct {
	members map[string]struct{}
	items   map[int]struct{}
}

// unevaluated returns what a frame has to look at, if that is of interest to the schema
// itself or to the frame above.
func (e *evaluation) unevaluated(f *frame) (u unevaluated) {
	s := f.schema
	switch v := f.value.(type) {
	case map[string]any:
		if s.AdditionalProperties != nil || !f.traces && s.UnevaluatedProperties == nil || !e.work.Take(len(v)) {
			return u
		}
		u.members = make(map[string]struct{}, len(v))
		for name := range v {
			u.members[name] = struct{}{}
		}
	case []any:
		prefix, others := itemsOf(s)
		if others != nil || !f.traces && s.UnevaluatedItems == nil || len(prefix) >= len(v) || !e.work.Take(len(v)) {
			return u
		}
		u.items = make(map[int]struct{}, len(v)-len(prefix))
		for i := len(prefix); i < len(v); i++ {
			u.items[i] = struct{}{}
		}
	}
	return u
}

func (u unevaluated) empty() bool { return len(u.members) == 0 && len(u.items) == 0 }

// keep drops what other has not.
func (u unevaluated) keep(other unevaluated) {
	maps.DeleteFunc(u.members, func(name string, _ struct{}) bool { _, left := other.members[name]; return !left })
	maps.DeleteFunc(u.items, func(i int, _ struct{}) bool { _, left := other.items[i]; return !left })
}

// rest holds what nothing has evaluated against the schemas for that.
func (e *evaluation) rest(f *frame) {
	s := f.schema
	if object, ok := f.value.(map[string]any); ok && s.UnevaluatedProperties != nil {
		for _, name := range slices.Sorted(maps.Keys(f.left.members)) {
			e.member(f, s.UnevaluatedProperties, object[name], name)
		}
		f.left.members = nil
	}
	if array, ok := f.value.([]any); ok && s.UnevaluatedItems != nil {
		for _, i := range slices.Sorted(maps.Keys(f.left.items)) {
			e.items(f, s.UnevaluatedItems, i, array[i:i+1])
		}
		f.left.items = nil
	}
}
