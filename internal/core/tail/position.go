package tail

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Place is where a chain was read up to: the entry of that number, and its hash or the
// beginning of it.
type Place struct {
	Seq  int64
	Hash string
}

// A Position is where all chains were read up to. A chain that is not in it was not read.
type Position map[int64]Place

// Bounds of a position as text.
const (
	maxChains = 256
	hashPart  = 8 // characters of a hash, which tell a rewritten history from this one
)

// String returns a position as it can be sent and parsed: for each chain its number, and
// the number and the beginning of the hash of the entry.
func (p Position) String() string {
	if len(p) == 0 {
		return "0"
	}
	var b strings.Builder
	for i, chain := range slices.Sorted(maps.Keys(p)) {
		if i > 0 {
			b.WriteByte('_')
		}
		at := p[chain]
		b.WriteString(strconv.FormatInt(chain, 10))
		b.WriteByte('.')
		b.WriteString(strconv.FormatInt(at.Seq, 10))
		b.WriteByte('.')
		b.WriteString(at.Hash[:min(len(at.Hash), hashPart)])
	}
	return b.String()
}

// Parse reads what [Position.String] returned, and reports whether it is that.
func Parse(text string) (Position, bool) {
	p := Position{}
	if text == "0" {
		return p, true
	}
	parts := strings.Split(text, "_")
	if len(parts) > maxChains {
		return nil, false
	}
	for _, part := range parts {
		fields := strings.Split(part, ".")
		if len(fields) != 3 || len(fields[2]) != hashPart {
			return nil, false
		}
		chain, err1 := strconv.ParseInt(fields[0], 10, 64)
		seq, err2 := strconv.ParseInt(fields[1], 10, 64)
		if cmp.Or(err1, err2) != nil || chain <= 0 || seq <= 0 {
			return nil, false
		}
		p[chain] = Place{seq, fields[2]}
	}
	return p, p.String() == text
}

// before reports whether p was read no further than q, in any chain.
func (p Position) before(q Position) bool {
	for chain, at := range p {
		if at.Seq > q[chain].Seq {
			return false
		}
	}
	return true
}

// behind returns how many entries p is behind q.
func (p Position) behind(q Position) (n int64) {
	for chain, at := range q {
		n += max(0, at.Seq-p[chain].Seq)
	}
	return n
}
