package python

import (
	"maps"
	"strings"
)

// A constant is a name that stands for a literal.
type constant struct {
	value any
	at    int // where it is given its value
	uses  int // by other literals
}

// constant passes over `NAME = literal`, and keeps the name for the literals that follow. It
// reports false, and passes over nothing, where something else stands here.
func (r *reader) constant() bool {
	name, from, left := r.here(), r.at, r.left
	uses := map[string]int{}
	for known, c := range r.constants {
		uses[known] = c.uses
	}
	if r.assigns() {
		value, err := r.value(0)
		next := r.here()
		if err == nil && (next.kind == newline || next.kind == end || next.text == ";") && r.constants[name.text] == nil {
			r.constants[name.text] = &constant{value: value, at: name.at}
			return true
		}
	}
	for known, n := range uses {
		r.constants[known].uses = n
	}
	r.at, r.left = from, left
	return false
}

// named reads a name: a constant, or a call that makes a list or a dictionary of literals.
func (r *reader) named(depth int) (any, *Error) {
	t := r.here()
	if c := r.constants[t.text]; c != nil {
		c.uses++
		r.at++
		return c.value, nil
	}
	next := r.tokens[r.at+1]
	if r.constants == nil || next.kind != op || next.text != "(" {
		return nil, r.unexpected()
	}
	switch t.text {
	case "dict", "OrderedDict":
		r.at += 2
		return r.dict(depth, t)
	case "list", "tuple":
		r.at += 2
		items, _, err := r.items(depth, ")")
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return items, nil
		}
		if inner, is := items[0].([]any); is && len(items) == 1 {
			return inner, nil
		}
		return nil, r.wrong(t.at, "%s is given something else than one list: nothing is run", t.text)
	}
	return nil, r.unexpected()
}

// dict reads what stands in the brackets of dict(...): a dictionary or pairs, and named values.
func (r *reader) dict(depth int, call token) (any, *Error) {
	dict := &Dict{}
	for first := true; ; first = false {
		if r.closes(")") {
			return dict, nil
		}
		if key := r.here(); key.kind == word && r.tokens[r.at+1].text == "=" {
			r.at += 2
			value, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			dict.set(key.text, value)
		} else {
			spread := r.spreads("**")
			value, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if !first && !spread || !dict.add(value) {
				return nil, r.wrong(call.at, "%s is given something else than a dictionary, pairs and named values: nothing is run", call.text)
			}
		}
		switch t := r.here(); {
		case t.kind == op && t.text == ",":
			r.at++
		case t.kind != op || t.text != ")":
			return nil, r.unexpected()
		}
	}
}

// add puts the members of a dictionary, or of a list of pairs, into d.
func (d *Dict) add(value any) bool {
	switch v := value.(type) {
	case *Dict:
		for i, key := range v.Keys {
			d.set(key, v.Values[i])
		}
		return true
	case []any:
		for _, item := range v {
			pair, is := item.([]any)
			if !is || len(pair) != 2 {
				return false
			}
			d.set(pair[0], pair[1])
		}
		return true
	}
	return false
}

// set gives a key its value; a text that is there already keeps its place.
func (d *Dict) set(key, value any) {
	if name, is := key.(string); is {
		for i, there := range d.Keys {
			if there == any(name) {
				d.Values[i] = value
				return
			}
		}
	}
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
}

// spreads passes over stars that spread what follows.
func (r *reader) spreads(stars string) bool {
	at := r.at
	for range len(stars) {
		if t := r.tokens[at]; t.kind != op || t.text != "*" {
			if t.kind == op && t.text == stars {
				r.at = at + 1
				return true
			}
			return false
		}
		at++
	}
	if t := r.tokens[at]; t.kind == op && t.text == "*" {
		return false
	}
	r.at = at
	return true
}

// unchanged refuses constants that stand elsewhere too: what is done to them there is not run.
func (r *reader) unchanged() error {
	seen := map[string]int{}
	for _, t := range r.tokens {
		if t.kind == word {
			seen[t.text]++
		}
		if t.kind == text && t.pieces {
			for name := range r.constants {
				if strings.Contains(t.text, name) {
					seen[name]++
				}
			}
		}
	}
	for name, c := range maps.All(r.constants) {
		if c.uses > 0 && seen[name] != c.uses+1 {
			return r.wrong(c.at, "%s stands elsewhere too, and may change there, and the file is not run: write its value where it is needed", clip(name))
		}
	}
	return nil
}
