package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

func (e *evaluation) object(f *frame, object map[string]any) {
	s := f.schema
	if s.MinProperties != nil && len(object) < *s.MinProperties {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MinProperties{Got: len(object), Want: *s.MinProperties} })
	}
	if s.MaxProperties != nil && len(object) > *s.MaxProperties {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MaxProperties{Got: len(object), Want: *s.MaxProperties} })
	}
	if missing := e.missing(object, s.Required); missing != nil {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Required{Missing: missing} })
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if _, there := object[name]; !there {
			continue
		}
		switch needs := s.Dependencies[name].(type) {
		case []string:
			if missing := e.missing(object, needs); missing != nil {
				e.fail(f, func() jsonschema.ErrorKind { return &kind.Dependency{Prop: name, Missing: missing} })
			}
		case *jsonschema.Schema:
			e.part(f, needs)
		}
	}
	if !e.over(f) {
		e.members(f, object)
	}
	if s.PropertyNames != nil {
		for _, name := range e.names(f, object) {
			inner := frame{schema: s.PropertyNames, value: name, fresh: true, depth: f.depth, at: f.at, tells: f.tells}
			if !e.over(f) && !e.evaluate(&inner) {
				f.fails = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		if _, there := object[name]; there {
			e.part(f, s.DependentSchemas[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		if _, there := object[name]; !there || e.over(f) {
			continue
		}
		if missing := e.missing(object, s.DependentRequired[name]); missing != nil {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.DependentRequired{Prop: name, Missing: missing} })
		}
	}
}

// names returns the names of an object's members, sorted if they may be told.
func (e *evaluation) names(f *frame, object map[string]any) []string {
	if !e.work.Take(len(object)) {
		return nil
	}
	names := slices.Collect(maps.Keys(object))
	if f.tells {
		slices.Sort(names)
	}
	return names
}

// members holds the members of an object against the schemas for them.
func (e *evaluation) members(f *frame, object map[string]any) {
	s := f.schema
	if s.Properties == nil && s.PatternProperties == nil && s.AdditionalProperties == nil {
		return
	}
	var additional []string
	for _, name := range e.names(f, object) {
		if e.over(f) {
			return
		}
		schema, described := s.Properties[name]
		if described {
			e.member(f, schema, object[name], name)
		}
		for expression, schema := range s.PatternProperties {
			if e.matches(expression, name) {
				described = true
				e.member(f, schema, object[name], name)
			}
		}
		if !described && s.AdditionalProperties != nil {
			described = true
			switch allowed := s.AdditionalProperties.(type) {
			case bool:
				if !allowed {
					if f.fails = true; len(additional) < maxNames {
						additional = append(additional, name)
					}
				}
			case *jsonschema.Schema:
				e.member(f, allowed, object[name], name)
			}
		}
		if described {
			delete(f.left.members, name)
		}
	}
	if len(additional) > 0 {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.AdditionalProperties{Properties: additional} })
	}
}

// missing returns which of the members that an object has to have it has not.
func (e *evaluation) missing(object map[string]any, required []string) (missing []string) {
	if !e.work.Take(len(required)) {
		return nil
	}
	for _, name := range required {
		if _, there := object[name]; !there {
			if missing = append(missing, name); len(missing) == maxNames {
				return missing
			}
		}
	}
	return missing
}

func (e *evaluation) array(f *frame, array []any) {
	s := f.schema
	if s.MinItems != nil && len(array) < *s.MinItems {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MinItems{Got: len(array), Want: *s.MinItems} })
	}
	if s.MaxItems != nil && len(array) > *s.MaxItems {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MaxItems{Got: len(array), Want: *s.MaxItems} })
	}
	if s.UniqueItems && !e.over(f) {
		if i, j, found := e.duplicates(array); found {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.UniqueItems{Duplicates: [2]int{i, j}} })
		}
	}
	prefix, others := itemsOf(s)
	for i := range min(len(prefix), len(array)) {
		e.items(f, prefix[i], i, array[i:i+1])
	}
	beyond := array[min(len(prefix), len(array)):]
	switch others := others.(type) {
	case bool:
		if !others && len(beyond) > 0 {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.AdditionalItems{Count: len(beyond)} })
		}
	case *jsonschema.Schema:
		e.items(f, others, len(array)-len(beyond), beyond)
	}
	if s.Contains != nil && !e.over(f) {
		e.contains(f, array)
	}
}

// itemsOf returns the schemas of an array's first items, and that of the others: a schema, a
// boolean or nil.
func itemsOf(s *jsonschema.Schema) (prefix []*jsonschema.Schema, others any) {
	if s.DraftVersion >= 2020 {
		if s.Items2020 == nil {
			return s.PrefixItems, nil
		}
		return s.PrefixItems, s.Items2020
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return nil, items // beside it additionalItems does not count
	case []*jsonschema.Schema:
		return items, s.AdditionalItems
	}
	return nil, s.AdditionalItems
}

func (e *evaluation) contains(f *frame, array []any) {
	s := f.schema
	var found, others []int
	for i, item := range array {
		if e.work.Err() != nil {
			return
		}
		if !e.inner(f, s.Contains, item, "", i, false) {
			others = append(others, i)
			continue
		}
		found = append(found, i)
		if s.DraftVersion >= 2020 {
			delete(f.left.items, i)
		}
	}
	if few := s.MinContains == nil && len(found) == 0 || s.MinContains != nil && len(found) < *s.MinContains; few {
		if len(others) == 0 {
			e.fail(f, func() jsonschema.ErrorKind {
				if s.MinContains == nil {
					return &kind.Contains{}
				}
				return &kind.MinContains{Got: found, Want: *s.MinContains}
			})
		}
		f.fails = true
		for _, i := range others { // each has its reasons
			if e.over(f) {
				return
			}
			e.inner(f, s.Contains, array[i], "", i, f.tells)
		}
	}
	if s.MaxContains != nil && len(found) > *s.MaxContains {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MaxContains{Got: found, Want: *s.MaxContains} })
	}
}
