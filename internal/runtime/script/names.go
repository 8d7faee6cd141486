//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"strconv"

	lib "modernc.org/libquickjs"
)

// names are those of properties that were met before, by the engine's numbers
// for them, and the reverse. The engine keeps a number as long as it is here.
type names struct {
	byAtom []name // as far as the first maxAtom go
	byName map[string]lib.TJSAtom
	n      int
}

type name struct {
	text  string
	is    bool // it is a string, no symbol
	known bool
	place int // where it was found in an object most recently
}

const (
	maxNames = 1 << 10 // that are kept
	maxAtom  = 1 << 12 // whose names are kept
)

// name returns the name that an atom stands for; false for a symbol.
func (m *machine) name(atom lib.TJSAtom) (string, bool) {
	if int(atom) < len(m.names.byAtom) && m.names.byAtom[atom].known {
		return m.names.byAtom[atom].text, m.names.byAtom[atom].is
	}
	if atom>>31 != 0 {
		return strconv.FormatUint(uint64(atom&(1<<31-1)), 10), true
	}
	v := lib.XJS_AtomToValue(m.tls, m.ctx, atom)
	defer m.release(v)
	var n name
	if n.is = isText(v); n.is {
		if !m.read(v, func(b []byte) { n.text = string(b) }) {
			return "", false
		}
	}
	if m.names.n < maxNames && atom < maxAtom && len(n.text) <= 64 {
		if short := int(atom) + 1 - len(m.names.byAtom); short > 0 {
			m.names.byAtom = append(m.names.byAtom, make([]name, short)...)
		}
		n.known = true
		m.names.byAtom[lib.XJS_DupAtom(m.tls, m.ctx, atom)] = n
		m.names.n++
		if n.is {
			if m.names.byName == nil {
				m.names.byName = map[string]lib.TJSAtom{}
			}
			m.names.byName[n.text] = atom
		}
	}
	return n.text, n.is
}

// atom returns the atom of a name, for the caller to release; 0 if there is no room.
func (m *machine) atom(text string) lib.TJSAtom {
	if known, found := m.names.byName[text]; found {
		return lib.XJS_DupAtom(m.tls, m.ctx, known)
	}
	p := m.newText(text)
	if p == 0 {
		return 0
	}
	atom := lib.XJS_NewAtomLen(m.tls, m.ctx, p, lib.Tsize_t(len(text)))
	m.arena.head.free(p)
	if atom != 0 {
		m.name(atom)
	}
	return atom
}
