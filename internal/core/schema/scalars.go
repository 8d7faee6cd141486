package schema

import (
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

func (e *evaluation) text(f *frame, text string) {
	s := f.schema
	if s.MinLength != nil || s.MaxLength != nil {
		if !e.work.Take(1 + len(text)/64) {
			return
		}
		length := utf8.RuneCountInString(text)
		if s.MinLength != nil && length < *s.MinLength {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.MinLength{Got: length, Want: *s.MinLength} })
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.MaxLength{Got: length, Want: *s.MaxLength} })
		}
	}
	if s.Pattern != nil && !e.over(f) && !e.matches(s.Pattern, text) && e.work.Err() == nil {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Pattern{Got: cut(text), Want: s.Pattern.String()} })
	}
}

// matches reports whether a text matches a regular expression of the schema.
func (e *evaluation) matches(expression jsonschema.Regexp, text string) bool {
	own, ok := expression.(*pattern.Foreign)
	return ok && own.Match(e.work, text)
}

func (e *evaluation) number(f *frame, v any) {
	s := f.schema
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	n := e.exact(v)
	if n == nil {
		return
	}
	if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Minimum{Got: n, Want: s.Minimum} })
	}
	if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Maximum{Got: n, Want: s.Maximum} })
	}
	if s.ExclusiveMinimum != nil && n.Cmp(s.ExclusiveMinimum) <= 0 {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.ExclusiveMinimum{Got: n, Want: s.ExclusiveMinimum} })
	}
	if s.ExclusiveMaximum != nil && n.Cmp(s.ExclusiveMaximum) >= 0 {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.ExclusiveMaximum{Got: n, Want: s.ExclusiveMaximum} })
	}
	if s.MultipleOf != nil && !divides(s.MultipleOf, n) {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.MultipleOf{Got: n, Want: s.MultipleOf} })
	}
}
