//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// A copy is what {...payload} makes: an object that has all members of a view
// without having been given any of them. It remembers the view and what was set
// since, so that reading it as a result means reading what differs. To code it is
// an object like any other; where that takes more than a copy can do, and at the
// end of the event if code has kept it, it becomes one.
type copied struct {
	object value // held, so that it is there at the end of the event
	number int   // of its view
	sets   []set // what differs; nil once it is an object like any other
	plain  bool
}

// A set is a member of a copy that is not as in its view.
type set struct {
	atom  lib.TJSAtom // held
	place int         // in the view, -1 for a new member
	value value       // held
}

const (
	maxCopies = 64 // during one event; others are made by the engine
	maxSets   = 8  // in a copy; with more it becomes a plain object
)

// Bits of the first byte of an object's flags.
const (
	flagExtensible = 1 << 1
	flagExotic     = 1 << 3
)

// startCopy makes a copy of the object that the engine is about to fill with the
// members of a view. It reports false if it is not doing that, or not where it
// can be told for sure which object that is.
func (m *machine) startCopy(view value, number int) bool {
	if len(m.copies) >= maxCopies {
		return false
	}
	// A proxy without a trap for that asks its target for the names too: what is
	// spread then is the proxy, and its other traps are still to be sprung.
	if what := m.atSpread(); !isObject(what) || address(what) != address(view) {
		return false
	}
	for _, one := range m.views.list[number].members() {
		if one.name != "" && one.name[0] <= '9' { // numbers go first in an object
			return false
		}
	}
	// The object was made right before the view was loaded, so it is the youngest.
	youngest := at[lib.TJSRuntime](m.rt).Fgc_obj_list.Fprev
	o := at[lib.TJSObject](youngest)
	header := at[lib.TJSMallocBlockHeader](youngest - unsafe.Sizeof(lib.TJSMallocBlockHeader{}))
	if header.F__ccgo3&0x7f != lib.EJS_GC_OBJ_TYPE_JS_OBJECT || o.Fclass_id != lib.EJS_CLASS_OBJECT {
		return false
	}
	shape := at[lib.TJSShape](o.Fshape)
	if header.Fref_count != 1 || o.F__ccgo16&(flagExotic|flagExtensible) != flagExtensible || shape.Fprop_count != 0 || shape.Fproto != address(m.proto) {
		return false
	}
	n := len(m.copies)
	if n < cap(m.copies) { // with the slice that it had
		m.copies = m.copies[:n+1]
	} else {
		m.copies = append(m.copies, copied{})
	}
	object := word(lib.EJS_TAG_OBJECT, uint64(youngest))
	m.copies[n] = copied{object: m.share(object), number: number, sets: m.copies[n].sets[:0]}
	o.Fclass_id = uint16(copyClass.id)
	o.F__ccgo16 |= flagExotic
	o.Fu.Fopaque = uintptr(n)
	return true
}

// copyOf returns the copy that an object is, nil if it is none.
func (m *machine) copyOf(object value) *copied {
	if !isObject(object) || lib.TJSClassID(objectOf(object).Fclass_id) != copyClass.id {
		return nil
	}
	return &m.copies[objectOf(object).Fu.Fopaque]
}

// makePlain makes a copy an object like any other. It reports false if something
// was thrown.
func (m *machine) makePlain(object value) bool {
	n := objectOf(object).Fu.Fopaque
	number := m.copies[n].number
	for place := range m.views.list[number].members() { // so that nothing is changed if this fails
		v := m.member(number, place)
		if isException(v) {
			return false
		}
		m.release(v)
	}
	sets := m.copies[n].sets
	m.copies[n].sets, m.copies[n].plain = nil, true
	o := objectOf(object)
	o.Fclass_id = lib.EJS_CLASS_OBJECT
	o.F__ccgo16 &^= flagExotic
	o.Fu.Fopaque = 0
	ok := true
	put := func(atom lib.TJSAtom, v value) {
		ok = lib.XJS_DefinePropertyValue(m.tls, m.ctx, object, atom, v, lib.MJS_PROP_C_W_E) >= 0 && ok
	}
	for place, one := range m.views.list[number].members() {
		if atom := m.atom(one.name); atom != 0 {
			v := m.views.list[number].made[place]
			if i := slices.IndexFunc(sets, func(s set) bool { return s.place == place }); i >= 0 {
				v = sets[i].value
			}
			put(atom, m.share(v))
			lib.XJS_FreeAtom(m.tls, m.ctx, atom)
		} else {
			ok = false
		}
	}
	for _, one := range sets {
		if one.place < 0 {
			put(one.atom, m.share(one.value))
		}
	}
	m.drop(sets)
	return ok
}

// drop gives up what sets hold.
func (m *machine) drop(sets []set) {
	for _, one := range sets {
		lib.XJS_FreeAtom(m.tls, m.ctx, one.atom)
		m.release(one.value)
	}
}

// endCopies has those that code keeps become plain objects. It reports false if
// that failed.
func (m *machine) endCopies() bool {
	ok := true
	for n := range m.copies {
		c := &m.copies[n]
		if kept := *references(c.object) > 1; kept && !c.plain {
			ok = m.makePlain(c.object) && ok
		}
		m.drop(m.copies[n].sets)
		m.release(m.copies[n].object)
		m.copies[n] = copied{sets: m.copies[n].sets[:0]}
	}
	m.copies = m.copies[:0]
	return ok
}

// inCopy returns the value of a member, for the caller to release; absent if there
// is none.
func (m *machine) inCopy(object value, atom lib.TJSAtom) value {
	c := m.copyOf(object)
	for i := range c.sets {
		if c.sets[i].atom == atom {
			return m.share(c.sets[i].value)
		}
	}
	if name, is := m.name(atom); is {
		if place := m.views.list[c.number].place(name); place >= 0 {
			return m.member(c.number, place)
		}
	}
	return absent
}

func copyGet(tls *libc.TLS, ctx uintptr, object value, atom lib.TJSAtom, receiver value) value {
	m := machineOf(ctx)
	if v := m.inCopy(object, atom); v != absent {
		return v
	}
	proto := at[lib.TJSShape](objectOf(object).Fshape).Fproto
	if proto == 0 {
		return undefined
	}
	return lib.XJS_GetPropertyInternal(tls, ctx, word(lib.EJS_TAG_OBJECT, uint64(proto)), atom, receiver, 0)
}

func copyDescribe(_ *libc.TLS, ctx, descriptor uintptr, object value, atom lib.TJSAtom) int32 {
	m := machineOf(ctx)
	v := m.inCopy(object, atom)
	switch {
	case isException(v):
		return -1
	case v == absent:
		return 0
	case descriptor == 0:
		m.release(v)
		return 1
	}
	*at[lib.TJSPropertyDescriptor](descriptor) = lib.TJSPropertyDescriptor{
		Fflags: lib.MJS_PROP_C_W_E, Fvalue: v, Fgetter: undefined, Fsetter: undefined,
	}
	return 1
}

// copyNames must not make the object a plain one: the engine has looked at its
// own properties already.
func copyNames(_ *libc.TLS, ctx, table, length uintptr, object value) int32 {
	m := machineOf(ctx)
	c := m.copyOf(object)
	var room [maxSets]lib.TJSAtom
	more := room[:0]
	for i := range c.sets {
		if c.sets[i].place < 0 {
			more = append(more, c.sets[i].atom)
		}
	}
	return m.list(table, length, m.views.list[c.number].members(), more)
}

func copyDefine(tls *libc.TLS, ctx uintptr, object value, atom lib.TJSAtom, v, getter, setter value, flags int32) int32 {
	m := machineOf(ctx)
	if m.setInCopy(object, atom, v, flags) {
		return 1
	}
	if !m.makePlain(object) {
		return -1
	}
	return lib.XJS_DefineProperty(tls, ctx, object, atom, v, getter, setter, flags)
}

// setInCopy notes an ordinary member. It reports false for anything else.
func (m *machine) setInCopy(object value, atom lib.TJSAtom, v value, flags int32) bool {
	c := m.copyOf(object)
	has := flags >> 8 & lib.MJS_PROP_C_W_E // which of the attributes are said
	if flags&lib.MJS_PROP_HAS_VALUE == 0 || flags&(lib.MJS_PROP_HAS_GET|lib.MJS_PROP_HAS_SET) != 0 || flags&has != has {
		return false
	}
	for i := range c.sets {
		if c.sets[i].atom == atom {
			before := c.sets[i].value
			c.sets[i].value = m.share(v)
			m.release(before)
			return true
		}
	}
	name, is := m.name(atom)
	if !is || name == "" || name[0] <= '9' || len(c.sets) >= maxSets {
		return false
	}
	place := m.views.list[c.number].place(name)
	if place < 0 && has != lib.MJS_PROP_C_W_E {
		return false
	}
	c.sets = append(c.sets, set{lib.XJS_DupAtom(m.tls, m.ctx, atom), place, m.share(v)})
	return true
}

func copyDelete(tls *libc.TLS, ctx uintptr, object value, atom lib.TJSAtom) int32 {
	if !machineOf(ctx).makePlain(object) {
		return -1
	}
	return lib.XJS_DeleteProperty(tls, ctx, object, atom, 0)
}

func copyFreeze(tls *libc.TLS, ctx uintptr, object value) int32 {
	if !machineOf(ctx).makePlain(object) {
		return -1
	}
	return lib.XJS_PreventExtensions(tls, ctx, object)
}

// opcodes tells how long the engine's instructions are.
//
//go:linkname opcodes modernc.org/libquickjs._opcode_info
var opcodes [263]lib.TJSOpCode

// markSpreads notes where code has {...x} with a plain variable x and nothing
// before it: there, the youngest object is the one that is filled.
func (m *machine) markSpreads(code value) {
	if code.Ftag != lib.EJS_TAG_FUNCTION_BYTECODE {
		return
	}
	f := at[lib.TJSFunctionBytecode](address(code))
	text := bytesAt(f.Fbyte_code_buf, uintptr(f.Fbyte_code_len))
	made, loaded, null := -1, -1, -1 // where the steps so far end
	for pc := 0; pc < len(text); {
		begin, op := pc, int(text[pc])
		long := op
		if op >= lib.EOP_TEMP_START {
			long += lib.EOP_TEMP_END - lib.EOP_TEMP_START
		}
		pc += max(int(opcodes[long].Fsize), 1)
		switch {
		case op == lib.EOP_object:
			made = pc
		case made == begin && loads(op):
			loaded = pc
		case op == lib.EOP_null && loaded == begin:
			null = pc
		case op == lib.EOP_copy_data_properties && null == begin && text[begin+1] == 2|1<<2:
			m.spreads[f.Fbyte_code_buf+uintptr(pc)] = spread{address(code), text[made:loaded]}
		}
	}
	for i := range f.Fcpool_count {
		m.markSpreads(*at[value](f.Fcpool + uintptr(i)*unsafe.Sizeof(value{})))
	}
}

// loads reports whether an instruction loads a variable and does nothing else.
func loads(op int) bool {
	return op >= lib.EOP_get_loc0 && op <= lib.EOP_get_loc3 || op >= lib.EOP_get_arg0 && op <= lib.EOP_get_arg3 ||
		op >= lib.EOP_get_var_ref0 && op <= lib.EOP_get_var_ref3 || op == lib.EOP_get_loc8 || op == lib.EOP_get_loc || op == lib.EOP_get_arg ||
		op == lib.EOP_get_var_ref || op == lib.EOP_get_loc_check || op == lib.EOP_get_var_ref_check
}

// A spread is where code has {...x}: in which function, and the instruction that
// loads x.
type spread struct {
	code uintptr
	load []byte
}

// atSpread returns what is being spread, where the engine is at a place that was
// marked; else undefined.
func (m *machine) atSpread() value {
	frame := at[lib.TJSRuntime](m.rt).Fcurrent_stack_frame
	if frame == 0 {
		return undefined
	}
	f := at[lib.TJSStackFrame](frame)
	marked, found := m.spreads[f.Fcur_pc]
	if !found || !isObject(f.Fcur_func) {
		return undefined
	}
	of := objectOf(f.Fcur_func)
	if of.Fclass_id != lib.EJS_CLASS_BYTECODE_FUNCTION && of.Fclass_id != lib.EJS_CLASS_ASYNC_FUNCTION || of.Fu.Fopaque != marked.code {
		return undefined
	}
	kind, n := marked.variable()
	const size = unsafe.Sizeof(value{})
	switch kind {
	case lib.EOP_get_loc:
		return *at[value](f.Fvar_buf + uintptr(n)*size)
	case lib.EOP_get_arg:
		return *at[value](f.Farg_buf + uintptr(n)*size)
	}
	type function struct{ _, references uintptr } // of TJSObject.Fu
	references := at[function](uintptr(unsafe.Pointer(&of.Fu))).references
	reference := *at[uintptr](references + uintptr(n)*unsafe.Sizeof(uintptr(0)))
	return *at[value](at[lib.TJSVarRef](reference).Fpvalue)
}

// variable returns which variable is loaded: the instruction of its kind, and its number.
func (s spread) variable() (kind, n int) {
	op := int(s.load[0])
	for _, short := range [][2]int{{lib.EOP_get_loc0, lib.EOP_get_loc}, {lib.EOP_get_arg0, lib.EOP_get_arg}, {lib.EOP_get_var_ref0, lib.EOP_get_var_ref}} {
		if op >= short[0] && op < short[0]+4 {
			return short[1], op - short[0]
		}
	}
	switch op {
	case lib.EOP_get_loc8:
		return lib.EOP_get_loc, int(s.load[1])
	case lib.EOP_get_loc_check:
		op = lib.EOP_get_loc
	case lib.EOP_get_var_ref_check:
		op = lib.EOP_get_var_ref
	}
	return op, int(binary.LittleEndian.Uint16(s.load[1:]))
}
