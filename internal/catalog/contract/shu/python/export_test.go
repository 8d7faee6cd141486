package python

import "unicode/utf8"

// Literal returns the value of a source that is one literal.
func Literal(code []byte) (any, error) {
	if !utf8.Valid(code) {
		return nil, &Error{1, 1, "it is not UTF-8 text"}
	}
	s, err := tokens(code)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, left: maxValues}
	r.lines()
	value, err := r.value(0)
	if err != nil {
		return nil, err
	}
	r.lines()
	if r.here().kind != end {
		return nil, r.unexpected()
	}
	return value, nil
}
