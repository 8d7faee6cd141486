//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	lib "modernc.org/libquickjs"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// maxSplices is how many members are spliced into a payload one by one. With more
// changes the whole text is rewritten.
const maxSplices = 4

// handle calls the handler of a subscription and takes its answer apart. A draft is an object
// of its own that the handler may change, for a transform alone: what it made of it is the
// answer where it returns nothing.
func (m *machine) handle(handler int, shape event.Shape, p *event.Payload, draft bool, limit time.Duration) (a answer, err error) {
	err = m.guard(limit, func() error {
		argument := m.open(p)
		if draft && !isException(argument) {
			m.release(argument)
			argument = m.parsed(p.Text())
		}
		if isException(argument) {
			return m.thrown()
		}
		own := undefined
		if draft {
			own = m.share(argument)
		}
		defer m.release(own)
		result, err := m.settle(m.apply(m.functions[handler], argument))
		if err == nil && draft && isNothing(result) {
			m.release(result)
			result = m.share(own)
		}
		if err == nil {
			a, err = m.answered(shape, p, result)
			m.release(result)
		}
		if err != nil && m.run.stopping() {
			return errStopped
		}
		if !m.shut() && err == nil {
			err = m.thrown()
		}
		return err
	})
	return a, err
}

// call calls the handler of a tool.
func (m *machine) call(handler int, input string, limit time.Duration) (output string, err error) {
	err = m.guard(limit, func() error {
		argument := m.parsed(input)
		if isException(argument) {
			return m.thrown()
		}
		result, err := m.settle(m.apply(m.tools[handler], argument))
		if err != nil {
			return err
		}
		output, err = m.json(result, "the tool")
		m.release(result)
		return err
	})
	return output, err
}

// answered reads what a handler returned.
func (m *machine) answered(shape event.Shape, p *event.Payload, result value) (answer, error) {
	switch shape {
	case event.Transform:
		if isNothing(result) {
			return answer{}, nil
		}
		changed, err := m.payload(p, result, "a transform handler returns a payload or nothing")
		return answer{payload: changed}, err
	case event.Veto:
		return m.verdict(p, result)
	}
	if !isNothing(result) {
		return answer{dropped: m.kind(result)}, nil
	}
	return answer{}, nil
}

const verdictForm = "a veto handler returns {allow: true}, with a payload or without, or {allow: false, reason}"

// verdict reads what a veto handler returned.
func (m *machine) verdict(p *event.Payload, result value) (a answer, err error) {
	if !isObject(result) {
		return a, misfitf("%s; this one returned %s", verdictForm, m.kind(result))
	}
	if o := objectOf(result); o.Fshape == m.allowing && *at[value](o.Fprop) == boolean(true) {
		return answer{allow: true}, nil // {allow: true}, as most say
	}
	allow, err := m.get(result, m.known.allow)
	if err != nil {
		return a, err
	}
	if !isBoolean(allow) {
		defer m.release(allow)
		return a, misfitf("%s; in this answer allow is %s", verdictForm, m.kind(allow))
	}
	if a.allow = isTrue(allow); !a.allow {
		reason, err := m.get(result, m.known.reason)
		if err != nil {
			return a, err
		}
		defer m.release(reason)
		if isText(reason) {
			a.reason, _, _ = m.bounded(reason, maxReason)
		}
		return a, nil
	}
	changed, err := m.get(result, m.known.payload)
	if err != nil || isNothing(changed) {
		return a, err
	}
	defer m.release(changed)
	a.payload, err = m.payload(p, changed, verdictForm)
	return a, err
}

// get reads a property, which may run code.
func (m *machine) get(object value, atom lib.TJSAtom) (value, error) {
	v := lib.XGetProperty(m.tls, m.ctx, object, atom)
	if isException(v) {
		return undefined, m.thrown()
	}
	return v, nil
}

// payload returns the payload that a handler's object stands for, nil if it is
// the one that it was given. What came from there is not written again.
func (m *machine) payload(p *event.Payload, result value, form string) (*event.Payload, error) {
	if !isObject(result) {
		return nil, misfitf("%s; this one returned %s", form, m.kind(result))
	}
	if number, current := m.numberOf(result); current && number == 0 {
		return nil, nil
	}
	if c := m.copyOf(result); c != nil && c.number == 0 {
		if changed, done, err := m.patched(p, result); done || err != nil {
			return changed, err
		}
	}
	if lib.XJS_IsFunction(m.tls, m.ctx, result) != 0 || lib.XJS_IsArray(m.tls, m.ctx, result) > 0 {
		return nil, misfitf("%s; this one returned an array or a function", form)
	}
	var room [16]member
	all, changed, kept, size := room[:0], 0, 0, 0
	err := m.each(result, func(name string, atom lib.TJSAtom) error {
		v := lib.XGetProperty(m.tls, m.ctx, result, atom)
		if isException(v) {
			return m.thrown()
		}
		defer m.release(v)
		given := &m.views.list[0]
		place := given.place(name)
		if place >= 0 && given.made[place] == v {
			kept++
			all = append(all, given.members()[place])
			return nil
		}
		raw, err := m.written(v, name)
		if err != nil || raw == "" { // undefined, or a function: no member at all
			return err
		}
		if size += len(raw); size > m.limits.Result {
			return m.tooLarge("the handler", size)
		}
		all = append(all, member{name: name, raw: raw})
		if place >= 0 {
			kept++
		}
		if place < 0 || raw != m.views.list[0].members()[place].raw { // the list may have moved
			changed++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if kept == len(m.views.list[0].members()) && changed <= maxSplices {
		return m.spliced(p, all)
	}
	return rewritten(all)
}

// patched returns the payload that a copy of it stands for. It reports false if
// the copy has to be read member by member.
func (m *machine) patched(p *event.Payload, result value) (changed *event.Payload, done bool, err error) {
	size := 0
	for i := 0; ; i++ {
		c := m.copyOf(result) // what is written may run code, which may change it
		if c == nil || len(c.sets) > maxSplices {
			return nil, false, nil
		}
		if i >= len(c.sets) {
			return changed, true, nil
		}
		one, given := c.sets[i], &m.views.list[0]
		if one.place >= 0 && given.made[one.place] == one.value {
			continue
		}
		name, _ := m.name(one.atom)
		raw, err := m.written(one.value, name)
		if err != nil {
			return nil, false, err
		}
		if raw == "" { // undefined, or a function: no member at all
			return nil, false, nil
		}
		if size += len(raw); size > m.limits.Result {
			return nil, false, m.tooLarge("the handler", size)
		}
		if place := one.place; place >= 0 && raw == m.views.list[0].members()[place].raw {
			continue
		}
		if p, err = p.Set(name, raw); err != nil {
			return nil, false, noPayload(err)
		}
		changed = p
	}
}

// spliced puts what differs into the payload; nothing else of it changes.
func (m *machine) spliced(p *event.Payload, all []member) (*event.Payload, error) {
	var changed *event.Payload
	given := &m.views.list[0]
	for _, one := range all {
		if place := given.place(one.name); place >= 0 && given.members()[place].raw == one.raw {
			continue
		}
		next, err := p.Set(one.name, one.raw)
		if err != nil {
			return nil, noPayload(err)
		}
		p, changed = next, next
	}
	return changed, nil
}

// rewritten rewrites the whole of a payload: some members are gone, or many differ.
func rewritten(all []member) (*event.Payload, error) {
	text := []byte{'{'}
	for i, one := range all {
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = jsontext.AppendQuote(text, one.name); err != nil {
			return nil, noPayload(err)
		}
		text = append(append(text, ':'), one.raw...)
	}
	p, err := event.NewPayload(string(append(text, '}')))
	if err != nil {
		return nil, noPayload(err)
	}
	return p, nil
}

func noPayload(err error) error { return misfitf("what the handler returned is no payload: %v", err) }

// each calls f for the enumerable properties of an object that have names.
func (m *machine) each(object value, f func(name string, atom lib.TJSAtom) error) error {
	out := m.given // two words that no call is using now
	if lib.XJS_GetOwnPropertyNames(m.tls, m.ctx, out, out+8, object, lib.MJS_GPN_STRING_MASK|lib.MJS_GPN_ENUM_ONLY) < 0 {
		return m.thrown()
	}
	list, n := *at[uintptr](out), *at[uint32](out + 8)
	defer lib.XJS_FreePropertyEnum(m.tls, m.ctx, list, n)
	for i := range n {
		atom := at[lib.TJSPropertyEnum](list + uintptr(i)*unsafe.Sizeof(lib.TJSPropertyEnum{})).Fatom
		name, _ := m.name(atom)
		if m.run.stopping() {
			return errStopped
		}
		if err := f(name, atom); err != nil {
			return err
		}
	}
	return nil
}

// written returns a value as JSON, "" for one that JSON leaves out.
func (m *machine) written(v value, name string) (string, error) {
	switch {
	case isText(v):
		text, size, ok := m.bounded(v, m.limits.Result)
		if !ok {
			return "", errMemory
		}
		if size > m.limits.Result {
			return "", m.tooLarge("the handler", size)
		}
		quoted, err := jsontext.AppendQuote(make([]byte, 0, len(text)+16), text)
		return string(quoted), err
	case v.Ftag == lib.EJS_TAG_INT:
		return strconv.Itoa(int(int32(v.Fu.Fuint641))), nil
	case isBoolean(v):
		return strconv.FormatBool(isTrue(v)), nil
	case v.Ftag == lib.EJS_TAG_NULL:
		return "null", nil
	case v.Ftag == lib.EJS_TAG_UNDEFINED:
		return "", nil
	}
	if number, current := m.numberOf(v); current {
		return m.views.list[number].object.text, nil
	}
	s := lib.XJS_JSONStringify(m.tls, m.ctx, v, undefined, undefined)
	if isException(s) {
		return "", m.noJSON(fmt.Sprintf("%q", name))
	}
	defer m.release(s)
	if !isText(s) {
		return "", nil
	}
	text, size, ok := m.bounded(s, m.limits.Result)
	switch {
	case !ok:
		return "", errMemory
	case size > m.limits.Result:
		return "", m.tooLarge("the handler", size)
	}
	return text, nil
}

// json returns what a tool returned. Nothing is null.
func (m *machine) json(v value, who string) (string, error) {
	s := lib.XJS_JSONStringify(m.tls, m.ctx, v, undefined, undefined)
	if isException(s) {
		return "", m.noJSON("what " + who + " returned")
	}
	defer m.release(s)
	if !isText(s) {
		if isNothing(v) {
			return "null", nil
		}
		return "", misfitf("%s returned %s, which is no JSON", who, m.kind(v))
	}
	text, size, ok := m.bounded(s, m.limits.Result)
	switch {
	case !ok:
		return "", errMemory
	case size > m.limits.Result:
		return "", m.tooLarge(who, size)
	}
	return text, nil
}

// noJSON says why something could not be written: it is cyclic, has a BigInt, or
// code of its own threw.
func (m *machine) noJSON(what string) error {
	err := m.thrown()
	t, isThrown := err.(*thrown)
	if isThrown && t.name == "TypeError" {
		return misfitf("%s is no JSON: %s", what, t.message)
	}
	return err
}

func (m *machine) tooLarge(who string, size int) error {
	return &misfit{fmt.Sprintf("%s returned %d bytes; at most %d are accepted", who, size, m.limits.Result), true}
}

// kind names a value, for a message.
func (m *machine) kind(v value) string {
	switch {
	case v.Ftag == lib.EJS_TAG_UNDEFINED:
		return "nothing"
	case v.Ftag == lib.EJS_TAG_NULL:
		return "null"
	case isText(v):
		return "a string"
	case isBoolean(v):
		return "a boolean"
	case v.Ftag == lib.EJS_TAG_SYMBOL:
		return "a symbol"
	case !isObject(v):
		return "a number"
	case lib.XJS_IsFunction(m.tls, m.ctx, v) != 0:
		return "a function"
	}
	return "an object"
}
