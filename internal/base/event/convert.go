package event

import "fmt"

// A view is what a dispatch carries: in the version that was emitted, and, once
// a handler of another version wants it, in others.
type view struct {
	payload *Payload
	forms   []*Payload // by place of the version, of what was the payload
	of      *Payload   // what that was
}

// in returns the payload in the version at a place.
func (v *view) in(slot *slot, place int) (*Payload, error) {
	if place == slot.place {
		return v.payload, nil
	}
	if v.of != v.payload {
		v.of, v.forms = v.payload, make([]*Payload, len(slot.family.versions))
		v.forms[slot.place] = v.payload
	}
	for at := slot.place; at != place; {
		next := toward(at, place)
		if v.forms[next] == nil {
			form, err := step(slot.family, at, next, v.forms[at], nil)
			if err != nil {
				return nil, err
			}
			v.forms[next] = form
		}
		at = next
	}
	return v.forms[place], nil
}

// back returns what a handler of the version at a place answered in the version
// that was emitted. It was asked with what in returned.
func (v *view) back(slot *slot, place int, answer *Payload) (*Payload, error) {
	for at := place; at != slot.place; {
		next := toward(at, slot.place)
		form, err := step(slot.family, at, next, answer, v.forms[next])
		if err != nil {
			return nil, err
		}
		at, answer = next, form
	}
	return answer, nil
}

func toward(at, place int) int {
	if at < place {
		return at + 1
	}
	return at - 1
}

// step converts between neighbouring versions.
func step(f *family, from, to int, p, was *Payload) (*Payload, error) {
	convert := f.versions[max(from, to)].Up
	if to < from {
		convert = f.versions[from].Down
	}
	form, err := convert(p, was)
	if err == nil && form == nil {
		err = fmt.Errorf("nothing came of it")
	}
	if err != nil {
		return nil, fmt.Errorf("making a payload of %s from one of %s: %w", f.versions[to].Name, f.versions[from].Name, err)
	}
	return form, nil
}
