//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// What a handler gets as its payload is a view: an object without properties of
// its own, which finds them in the text of the payload when they are asked for.
// Objects inside are views too; arrays are real ones, made when they are first
// read. All are frozen, and of use until the handler has ended.
type views struct {
	list       []view  // of the present payload, by number; 0 is the payload
	generation uint32  // tells views of the present payload from older ones
	root       value   // the payload
	spare      []value // views without references, to be used again
}

type view struct {
	object *outline
	inside *contents // of the object, once a member was asked for
	made   []value   // the values of the members, absent until read
}

const (
	maxViewDepth = 200     // arrays inside one another
	maxViews     = 1 << 24 // in one payload
	keptViews    = 256     // between payloads
	maxSpare     = 16      // objects, too
)

// An exotic class is one whose objects find their properties by functions of
// ours. Its tables are made once, in memory that C code may see.
type exoticClass struct {
	once       sync.Once
	id         lib.TJSClassID
	definition uintptr
}

var viewClass, copyClass exoticClass

// start teaches the engine the class.
func (c *exoticClass) start(m *machine, called string, methods lib.TJSClassExoticMethods) error {
	c.once.Do(func() {
		exotic := libc.Xcalloc(m.tls, 1, libc.Tsize_t(unsafe.Sizeof(methods)))
		*at[lib.TJSClassExoticMethods](exotic) = methods
		c.definition = libc.Xcalloc(m.tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.TJSClassDef{})))
		name := libc.Xcalloc(m.tls, 1, 16)
		copy(bytesAt(name, 16), called)
		*at[lib.TJSClassDef](c.definition) = lib.TJSClassDef{Fclass_name: name, Fexotic: exotic}
		lib.XJS_NewClassID(m.tls, uintptr(unsafe.Pointer(&c.id)))
	})
	if lib.XJS_NewClass(m.tls, m.rt, c.id, c.definition) < 0 {
		return errMemory
	}
	return nil
}

// startViews teaches the engine the classes of views and of their copies.
func (m *machine) startViews() error {
	if err := viewClass.start(m, "Payload", lib.TJSClassExoticMethods{
		Fget_property:           function(viewGet),
		Fget_own_property:       function(viewDescribe),
		Fget_own_property_names: function(viewNames),
		Fdelete_property:        function(viewDelete),
	}); err != nil {
		return err
	}
	if err := copyClass.start(m, "Object", lib.TJSClassExoticMethods{
		Fget_property:           function(copyGet),
		Fget_own_property:       function(copyDescribe),
		Fget_own_property_names: function(copyNames),
		Fdefine_own_property:    function(copyDefine),
		Fdelete_property:        function(copyDelete),
		Fprevent_extensions:     function(copyFreeze),
	}); err != nil {
		return err
	}
	plain := lib.XJS_NewObject(m.tls, m.ctx)
	if isException(plain) {
		return errMemory
	}
	m.proto = lib.XJS_GetPrototype(m.tls, m.ctx, plain)
	m.release(plain)
	lib.XJS_SetClassProto(m.tls, m.ctx, viewClass.id, m.share(m.proto))
	return nil
}

// open makes the view of a payload; the views of the one before are over.
func (m *machine) open(p *event.Payload) value {
	m.views.generation++
	m.views.root = m.view(outlineOf(p))
	return m.share(m.views.root)
}

// shut ends the views of the present payload. It reports false if that failed.
func (m *machine) shut() bool {
	ok := m.endCopies()
	m.views.generation++
	m.spare(m.views.root)
	m.views.root = undefined
	for i := range m.views.list {
		v := &m.views.list[i]
		for _, made := range v.made {
			if made.Ftag < 0 {
				m.spare(made)
			}
		}
		*v = view{made: v.made[:0]} // the texts are not to be kept
	}
	if m.views.list = m.views.list[:0]; cap(m.views.list) > keptViews {
		m.views.list = nil
	}
	return ok
}

// view makes a view of an object.
func (m *machine) view(of *outline) value {
	number := len(m.views.list)
	if number >= maxViews {
		return m.throw("the payload has too many objects")
	}
	if number < cap(m.views.list) { // with the slices that it had
		m.views.list = m.views.list[:number+1]
	} else {
		m.views.list = append(m.views.list, view{})
	}
	v := &m.views.list[number]
	v.object, v.inside, v.made = of, nil, v.made[:0]
	var object value
	if n := len(m.views.spare); n > 0 {
		object, m.views.spare = m.views.spare[n-1], m.views.spare[:n-1]
	} else {
		object = lib.XJS_NewObjectClass(m.tls, m.ctx, int32(viewClass.id))
		if isException(object) {
			return object
		}
		objectOf(object).F__ccgo16 &^= flagExtensible
	}
	objectOf(object).Fu.Fopaque = uintptr(m.views.generation)<<24 | uintptr(number)
	return object
}

// spare gives up a value. A view that code has not kept is used again: as it is
// frozen, and has no private members either, it is as good as new.
func (m *machine) spare(v value) {
	if isObject(v) && len(m.views.spare) < maxSpare {
		if o := objectOf(v); lib.TJSClassID(o.Fclass_id) == viewClass.id && *references(v) == 1 &&
			o.Fweakref_count == 0 && at[lib.TJSShape](o.Fshape).Fprop_count == 0 {
			m.views.spare = append(m.views.spare, v)
			return
		}
	}
	m.release(v)
}

// numberOf returns the number of a view of the present payload.
func (m *machine) numberOf(object value) (int, bool) {
	if !isObject(object) || lib.TJSClassID(objectOf(object).Fclass_id) != viewClass.id {
		return 0, false
	}
	opaque := objectOf(object).Fu.Fopaque
	return int(opaque & (1<<24 - 1)), uint32(opaque>>24) == m.views.generation
}

// members makes sure that the members are known and returns them.
func (v *view) members() []member {
	if v.inside == nil {
		v.inside = v.object.look()
		v.made = slices.Grow(v.made[:0], len(v.inside.members))[:len(v.inside.members)]
		for i := range v.made {
			v.made[i] = absent
		}
	}
	return v.inside.members
}

// place returns the number of a member, -1 if there is none. Objects are small.
func (v *view) place(name string) int {
	members := v.members()
	for i := range members {
		if members[i].name == name {
			return i
		}
	}
	return -1
}

// find returns where a property is. It throws and reports false for a view whose
// time is over.
func (m *machine) find(object value, atom lib.TJSAtom) (number, place int, ok bool) {
	number, ok = m.numberOf(object)
	if !ok {
		m.throwType("this payload is of an event that is over: copy what is needed later")
		return 0, -1, false
	}
	return number, m.placeOf(&m.views.list[number], atom), true
}

// placeOf returns the number of a member, -1 if there is none. The members of
// most objects come in the same order each time.
func (m *machine) placeOf(v *view, atom lib.TJSAtom) int {
	if int(atom) < len(m.names.byAtom) && m.names.byAtom[atom].is {
		known := &m.names.byAtom[atom]
		if members := v.members(); known.place < len(members) && members[known.place].name == known.text {
			return known.place
		}
		place := v.place(known.text)
		known.place = max(place, 0)
		return place
	}
	if name, is := m.name(atom); is {
		return v.place(name)
	}
	return -1
}

// member returns the value of a member, for the caller to release.
func (m *machine) member(number, place int) value {
	if made := m.views.list[number].made[place]; made != absent {
		return m.share(made)
	}
	one := &m.views.list[number].inside.members[place]
	var made value
	if one.object != nil {
		made = m.view(one.object)
	} else {
		made = m.value(one.raw, 0)
	}
	if isException(made) {
		return made
	}
	m.views.list[number].made[place] = made // the list may have moved
	return m.share(made)
}

// value makes the value that a text of the payload stands for.
func (m *machine) value(raw string, depth int) value {
	switch raw[0] {
	case '"':
		if strings.IndexByte(raw, '\\') >= 0 {
			return m.newString(unquote(raw))
		}
		return m.newString(raw[1 : len(raw)-1])
	case '{':
		return m.view(&outline{text: raw})
	case '[':
		return m.array(raw, depth)
	case 't':
		return boolean(true)
	case 'f':
		return boolean(false)
	case 'n':
		return null
	}
	if n, err := strconv.ParseInt(raw, 10, 32); err == nil && (n != 0 || raw == "0") {
		return integer(int32(n))
	}
	f, _ := strconv.ParseFloat(raw, 64) // out of range is infinite, as it is for JSON.parse
	return number(f)
}

// array makes a frozen array.
func (m *machine) array(raw string, depth int) value {
	if depth >= maxViewDepth {
		return m.throw("the payload has arrays nested too deep")
	}
	list := lib.XJS_NewArray(m.tls, m.ctx)
	if isException(list) {
		return list
	}
	n := uint32(0)
	if !elements(raw, func(element string) bool {
		v := m.value(element, depth+1)
		if isException(v) || lib.XJS_DefinePropertyValueUint32(m.tls, m.ctx, list, n, v, lib.MJS_PROP_ENUMERABLE) < 0 {
			return false
		}
		n++
		return !m.run.stopping() || m.throwsStopped()
	}) {
		m.release(list)
		return exception
	}
	lib.XJS_DefineProperty(m.tls, m.ctx, list, lib.EJS_ATOM_length, undefined, undefined, undefined, lib.MJS_PROP_HAS_WRITABLE)
	lib.XJS_PreventExtensions(m.tls, m.ctx, list)
	return list
}

// throwsStopped throws what nothing catches for long: the run is over.
func (m *machine) throwsStopped() bool {
	m.throw("stopped")
	return false
}

func viewGet(tls *libc.TLS, ctx uintptr, object value, atom lib.TJSAtom, receiver value) value {
	m := machineOf(ctx)
	number, place, ok := m.find(object, atom)
	switch {
	case !ok:
		return exception
	case place < 0:
		return lib.XJS_GetPropertyInternal(tls, ctx, m.proto, atom, receiver, 0)
	}
	return m.member(number, place)
}

func viewDescribe(_ *libc.TLS, ctx, descriptor uintptr, object value, atom lib.TJSAtom) int32 {
	m := machineOf(ctx)
	number, place, ok := m.find(object, atom)
	switch {
	case !ok:
		return -1
	case place < 0:
		return 0
	case descriptor == 0:
		return 1
	}
	v := m.member(number, place)
	if isException(v) {
		return -1
	}
	*at[lib.TJSPropertyDescriptor](descriptor) = lib.TJSPropertyDescriptor{
		Fflags: lib.MJS_PROP_ENUMERABLE, Fvalue: v, Fgetter: undefined, Fsetter: undefined,
	}
	return 1
}

func viewNames(_ *libc.TLS, ctx, table, length uintptr, object value) int32 {
	m := machineOf(ctx)
	number, ok := m.numberOf(object)
	if !ok {
		m.throwType("this payload is of an event that is over: copy what is needed later")
		return -1
	}
	if m.startCopy(object, number) { // and leaves nothing to be copied by the engine
		*at[uintptr](table), *at[uint32](length) = 0, 0
		return 0
	}
	return m.list(table, length, m.views.list[number].members(), nil)
}

// list writes the names of members, and more, as the engine wants them.
func (m *machine) list(table, length uintptr, members []member, more []lib.TJSAtom) int32 {
	const size = unsafe.Sizeof(lib.TJSPropertyEnum{})
	n := len(members) + len(more)
	list := lib.Xjs_malloc(m.tls, m.ctx, lib.Tsize_t(size*uintptr(max(n, 1))))
	if list == 0 {
		return -1
	}
	for i := range n {
		var atom lib.TJSAtom
		if i < len(members) {
			atom = m.atom(members[i].name)
		} else {
			atom = lib.XJS_DupAtom(m.tls, m.ctx, more[i-len(members)])
		}
		if atom == 0 {
			lib.XJS_FreePropertyEnum(m.tls, m.ctx, list, uint32(i))
			return -1
		}
		*at[lib.TJSPropertyEnum](list + uintptr(i)*size) = lib.TJSPropertyEnum{Fis_enumerable: 1, Fatom: atom}
	}
	*at[uintptr](table), *at[uint32](length) = list, uint32(n)
	return 0
}

func viewDelete(_ *libc.TLS, ctx uintptr, object value, atom lib.TJSAtom) int32 {
	m := machineOf(ctx)
	_, place, ok := m.find(object, atom)
	if ok && place < 0 {
		return 1
	}
	if ok {
		m.throwType(frozenPayload)
	}
	return -1
}
