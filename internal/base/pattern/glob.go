package pattern

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// MaxGlob is how many bytes a glob and a name that is held against it may have. The work of a
// match grows with their product.
const MaxGlob = 1024

// CheckGlob refuses what is no glob of [path.Match], or is longer than the bound.
func CheckGlob(glob string) error {
	if len(glob) > MaxGlob {
		return fmt.Errorf("the pattern has %d bytes; at most %d are accepted", len(glob), MaxGlob)
	}
	_, err := path.Match(glob, "")
	return err
}

// Glob reports whether a name fits a glob of [path.Match]: * stands for characters other than
// a slash. Nothing fits a glob that [CheckGlob] refuses, and no longer name fits any.
func Glob(glob, name string) bool {
	if len(glob) > MaxGlob || len(name) > MaxGlob {
		return false
	}
	fits, err := path.Match(glob, name)
	return err == nil && fits
}

// starred is a pattern with stars, each of which stands for any number of pieces, and the
// pieces that are held against it. Pieces are counted from 0; at names one of either.
type starred interface {
	star(at int) bool
	fits(at, piece int) (next int) // the piece behind, or -1
	skip(piece int) (next int)
}

// match holds pieces against a pattern, which has so many parts. If the rest does not fit, it
// goes back to the last star alone: what stood before it has fitted already, in the earliest
// place. So the work is bounded by the product of both, however many stars there are.
func match[P starred](work *budget.Steps, p P, parts, pieces int) bool {
	at, piece, last, mark := 0, 0, -1, 0
	for n := 0; piece < pieces; n++ {
		if n%perStep == 0 && !work.Take(1) {
			return false
		}
		if at < parts && p.star(at) {
			last, mark, at = at, piece, at+1
			if at == parts {
				return true
			}
			continue
		}
		if at < parts {
			if next := p.fits(at, piece); next >= 0 {
				at, piece = at+1, next
				continue
			}
		}
		if last < 0 {
			return false
		}
		mark = p.skip(mark)
		at, piece = last+1, mark
	}
	for at < parts && p.star(at) {
		at++
	}
	return at == parts
}

// Like reports whether a text contains a pattern of SQL's LIKE: % stands for any characters
// and _ for one. Without a step left it reports false, and work has the reason.
func Like(work *budget.Steps, pattern, text string) bool {
	if !strings.ContainsAny(pattern, "%_") {
		return work.Take(1+(len(text)+len(pattern))/perStep) && strings.Contains(text, pattern)
	}
	pattern = "%" + pattern + "%"
	return match(work, &like{pattern, text}, len(pattern), len(text))
}

// like is a pattern of LIKE and a text, by their bytes.
type like struct{ pattern, text string }

func (l *like) star(at int) bool { return l.pattern[at] == '%' }

func (l *like) fits(at, piece int) int {
	switch l.pattern[at] {
	case '_':
		return l.skip(piece)
	case l.text[piece]:
		return piece + 1
	}
	return -1
}

func (l *like) skip(piece int) int {
	_, size := utf8.DecodeRuneInString(l.text[piece:])
	return piece + size
}

// Path reports whether the steps of a path fit the parts of a pattern: ** stands for any
// steps, and any other part is a glob of one. Without a step left it reports false, and work
// has the reason.
func Path(work *budget.Steps, parts, steps []string) bool {
	return match(work, &paths{parts, steps, work}, len(parts), len(steps))
}

// paths is a pattern of paths and the steps of one.
type paths struct {
	parts, steps []string
	work         *budget.Steps
}

func (p *paths) star(at int) bool { return p.parts[at] == "**" }

func (p *paths) fits(at, piece int) int {
	glob, name := p.parts[at], p.steps[piece]
	if p.work.Take(len(glob)*len(name)/perStep) && Glob(glob, name) {
		return piece + 1
	}
	return -1
}

func (p *paths) skip(piece int) int { return piece + 1 }
