//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"math"
	"strings"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// A value is a JavaScript value. Strings and objects are reference-counted: the owner
// of one from the engine releases it or passes it on.
type value = lib.TJSValue

var (
	undefined = value{Ftag: lib.EJS_TAG_UNDEFINED}
	null      = value{Ftag: lib.EJS_TAG_NULL}
	exception = value{Ftag: lib.EJS_TAG_EXCEPTION}
	absent    = value{Ftag: lib.EJS_TAG_UNINITIALIZED} // never seen by code
)

func word(tag int64, bits uint64) value {
	return value{Fu: lib.TJSValueUnion{Fuint641: bits}, Ftag: tag}
}

func integer(n int32) value  { return word(lib.EJS_TAG_INT, uint64(uint32(n))) }
func number(f float64) value { return word(lib.EJS_TAG_FLOAT64, math.Float64bits(f)) }
func boolean(b bool) value {
	if b {
		return word(lib.EJS_TAG_BOOL, 1)
	}
	return word(lib.EJS_TAG_BOOL, 0)
}

func isException(v value) bool { return v.Ftag == lib.EJS_TAG_EXCEPTION }
func isObject(v value) bool    { return v.Ftag == lib.EJS_TAG_OBJECT }
func isText(v value) bool {
	return v.Ftag == lib.EJS_TAG_STRING || v.Ftag == lib.EJS_TAG_STRING_ROPE
}
func isTrue(v value) bool             { return v.Ftag == lib.EJS_TAG_BOOL && v.Fu.Fuint641&1 != 0 }
func isBoolean(v value) bool          { return v.Ftag == lib.EJS_TAG_BOOL }
func isNothing(v value) bool          { return v.Ftag == lib.EJS_TAG_UNDEFINED || v.Ftag == lib.EJS_TAG_NULL }
func address(v value) uintptr         { return uintptr(v.Fu.Fuint641) }
func objectOf(v value) *lib.TJSObject { return at[lib.TJSObject](address(v)) }

// references returns where the engine counts the references to a value.
func references(v value) *int32 {
	return &at[lib.TJSMallocBlockHeader](address(v) - unsafe.Sizeof(lib.TJSMallocBlockHeader{})).Fref_count
}

func (m *machine) release(v value) {
	if v.Ftag >= 0 {
		return
	}
	if n := references(v); *n > 1 {
		*n--
		return
	}
	lib.XFreeValue(m.tls, m.ctx, v)
}

func (m *machine) share(v value) value {
	if v.Ftag < 0 {
		*references(v)++
	}
	return v
}

// newText copies text into the arena, ended by a zero; 0 if there is no room.
func (m *machine) newText(text string) uintptr {
	p := m.arena.head.allocate(uintptr(len(text)) + 1)
	if p != 0 {
		b := bytesAt(p, uintptr(len(text))+1)
		copy(b, text)
		b[len(text)] = 0
	}
	return p
}

// newString makes a string. It goes by way of the arena: the engine computes with
// addresses, and those of Go's own memory are not for that.
func (m *machine) newString(text string) value {
	if len(text) <= scratchSize {
		copy(bytesAt(m.scratch, scratchSize), text)
		return lib.XJS_NewStringLen(m.tls, m.ctx, m.scratch, lib.Tsize_t(len(text)))
	}
	p := m.newText(text)
	if p == 0 {
		return lib.XJS_ThrowOutOfMemory(m.tls, m.ctx)
	}
	v := lib.XJS_NewStringLen(m.tls, m.ctx, p, lib.Tsize_t(len(text)))
	m.arena.head.free(p)
	return v
}

// parsed makes a value of JSON that is known to be valid.
func (m *machine) parsed(json string) value {
	p := m.newText(json) // the engine wants the zero
	if p == 0 {
		return lib.XJS_ThrowOutOfMemory(m.tls, m.ctx)
	}
	v := lib.XJS_ParseJSON(m.tls, m.ctx, p, lib.Tsize_t(len(json)), p)
	m.arena.head.free(p)
	return v
}

// read calls f with the bytes of v as a string, and reports whether v could be
// made one. The bytes are the engine's.
func (m *machine) read(v value, f func(text []byte)) bool {
	p := lib.XJS_ToCStringLen2(m.tls, m.ctx, m.length, v, 0)
	if p == 0 {
		m.forget()
		return false
	}
	f(bytesAt(p, uintptr(*at[lib.Tsize_t](m.length))))
	lib.XJS_FreeCString(m.tls, m.ctx, p)
	return true
}

// bounded returns v as a string of at most limit bytes, in valid UTF-8, and how
// long it would be.
func (m *machine) bounded(v value, limit int) (text string, size int, ok bool) {
	ok = m.read(v, func(b []byte) {
		size = len(b)
		text = strings.ToValidUTF8(string(b[:min(len(b), limit)]), "\uFFFD")
	})
	return text, size, ok
}

// shown returns a value that is no object, for a message.
func (m *machine) shown(v value) string {
	if v.Ftag == lib.EJS_TAG_SYMBOL {
		return "a symbol"
	}
	text, _, _ := m.bounded(v, maxMessage)
	return text
}

// stringified returns an object as JSON, for a message, "" if it is none.
func (m *machine) stringified(v value) string {
	s := lib.XJS_JSONStringify(m.tls, m.ctx, v, undefined, undefined)
	defer m.release(s)
	if !isText(s) {
		m.forget()
		return ""
	}
	return m.shown(s)
}

// text returns a property that is a string, "" otherwise.
func (m *machine) text(object value, name string) string {
	v := m.property(object, name)
	defer m.release(v)
	if !isText(v) {
		return ""
	}
	return m.shown(v)
}

// property returns a property, undefined if reading it throws.
func (m *machine) property(object value, name string) value {
	v := lib.XJS_GetPropertyStr(m.tls, m.ctx, object, m.named(name))
	if isException(v) {
		m.forget()
		return undefined
	}
	return v
}

// named puts a short name, ended by a zero, into the scratch.
func (m *machine) named(name string) uintptr {
	b := bytesAt(m.scratch, scratchSize)
	b[copy(b, name)] = 0
	return m.scratch
}

// forget drops what was thrown.
func (m *machine) forget() { m.release(lib.XJS_GetException(m.tls, m.ctx)) }

// throw throws an Error.
func (m *machine) throw(message string) value {
	e := lib.XJS_NewError(m.tls, m.ctx)
	if isException(e) {
		return e
	}
	if p := m.newText("message"); p != 0 {
		lib.XJS_DefinePropertyValueStr(m.tls, m.ctx, e, p, m.newString(message), lib.MJS_PROP_CONFIGURABLE|lib.MJS_PROP_WRITABLE)
		m.arena.head.free(p)
	}
	return lib.XJS_Throw(m.tls, m.ctx, e)
}

// throwType throws a TypeError. The message must have no percent sign.
func (m *machine) throwType(message string) {
	if p := m.newText(message); p != 0 {
		lib.XJS_ThrowTypeError(m.tls, m.ctx, p, 0)
		m.arena.head.free(p)
	}
}
