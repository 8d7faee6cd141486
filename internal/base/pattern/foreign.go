package pattern

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// Bounds of a regular expression that a caller or a plugin wrote.
const (
	MaxText = 16 << 10 // bytes of its text
	MaxSize = 50_000   // instructions that it compiles to: a{1000} is a thousand
)

const (
	perStep = 16      // instructions or comparisons that a step pays for
	direct  = 1 << 16 // instructions up to which a match is not interrupted
	alone   = 1 << 24 // steps of [Foreign.MatchString], which gets none
)

// A Foreign is a regular expression that a caller or a plugin wrote. A match visits each of
// its instructions once for each character at most, and takes steps for that before it does it.
// Foreign is safe for concurrent use.
type Foreign struct {
	re   *regexp.Regexp
	size int
}

// Compile returns the regular expression of a text, with the syntax of package regexp. It
// refuses one that is longer or compiles to more than the bounds, before it compiles it.
func Compile(text string) (*Foreign, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the regular expression has %d bytes; at most %d are accepted", len(text), MaxText)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := sizeOf(tree)
	if size > MaxSize {
		return nil, fmt.Errorf("the regular expression repeats too much: it compiles to more than %d instructions", MaxSize)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &Foreign{re, size + 2}, nil
}

// sizeOf returns an upper bound of the instructions that an expression compiles to; beyond
// MaxSize it is not exact.
func sizeOf(tree *syntax.Regexp) int {
	size := 0
	for _, part := range tree.Sub {
		size += sizeOf(part)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		size = len(tree.Rune)
	case syntax.OpConcat:
	case syntax.OpAlternate:
		size += len(tree.Sub)
	case syntax.OpRepeat: // a copy for each time, and a branch past it
		size = (size+1)*max(tree.Min, tree.Max, 1) + 2
	default: // a group, a loop, or what has one instruction
		size += 2
	}
	return min(size, 2*MaxSize)
}

// String returns the text.
func (f *Foreign) String() string { return f.re.String() }

// Size returns an upper bound of the instructions that it compiles to.
func (f *Foreign) Size() int { return f.size }

// cost returns how many instructions a match in n bytes visits at most.
func (f *Foreign) cost(n int) int { return f.size * (n + 1) }

// Match reports whether text has a match. Without a step left it reports false, and work has
// the reason.
func (f *Foreign) Match(work *budget.Steps, text string) bool {
	if cost := f.cost(len(text)); cost <= direct {
		return work.Take(1+cost/perStep) && f.re.MatchString(text)
	}
	found := f.re.MatchReader(&reader{text: text, work: work, each: 1 + f.size/perStep})
	return found && work.Err() == nil
}

// MatchString is Match with steps of its own, for those who have none to give. It reports
// false if it does not get to an end with them.
func (f *Foreign) MatchString(text string) bool {
	return f.Match(budget.NewSteps(context.Background(), alone), text)
}

// Within reports whether b has a match, if finding out takes no more than left instructions,
// and takes them from left. It does not allocate.
func (f *Foreign) Within(left *int, b []byte) (found, told bool) {
	if *left -= f.cost(len(b)); *left < 0 {
		return false, false
	}
	return f.re.Match(b), true
}

// Submatch returns the first match in text and its groups, nil if there is none or no step is
// left for it.
func (f *Foreign) Submatch(work *budget.Steps, text string) []string {
	if !work.Take(1 + f.cost(len(text))/perStep*(1+f.re.NumSubexp())) {
		return nil
	}
	return f.re.FindStringSubmatch(text)
}

// A reader gives a text to a match, character by character, while there are steps for it.
type reader struct {
	text string
	work *budget.Steps
	each int // steps for each character
}

// ReadRune implements [io.RuneReader].
func (r *reader) ReadRune() (char rune, size int, err error) {
	if r.text == "" || !r.work.Take(r.each) {
		return 0, 0, io.EOF
	}
	char, size = utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return char, size, nil
}
