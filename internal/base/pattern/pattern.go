// Package pattern holds regular expressions that are compiled when they are first used.
//
// A program has well over a hundred of them, and a command uses few. Compiling all of them
// before main would take longer than many a command does.
package pattern

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression. Its methods are those of [regexp.Regexp], and it is safe
// for concurrent use.
type Pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New returns a pattern. Its text must be a regular expression: the first use panics otherwise. A
// test compiles every text that stands in a call of New.
func New(text string) *Pattern { return &Pattern{text: text} }

// Regexp returns the compiled expression.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) })
	return p.re
}

// String returns the text.
func (p *Pattern) String() string { return p.text }

// Match reports whether b has a match.
func (p *Pattern) Match(b []byte) bool { return p.Regexp().Match(b) }

// MatchString reports whether s has a match.
func (p *Pattern) MatchString(s string) bool { return p.Regexp().MatchString(s) }

// FindString returns the first match in s, "" where there is none.
func (p *Pattern) FindString(s string) string { return p.Regexp().FindString(s) }

// FindStringIndex returns where the first match in s begins and ends, nil where there is none.
func (p *Pattern) FindStringIndex(s string) []int { return p.Regexp().FindStringIndex(s) }

// FindStringSubmatch returns the first match in s and its groups, nil where there is none.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.Regexp().FindStringSubmatch(s) }

// FindAllString returns the first n matches in s, all where n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.Regexp().FindAllString(s, n) }

// FindAllSubmatch is FindAllStringSubmatch for bytes.
func (p *Pattern) FindAllSubmatch(b []byte, n int) [][][]byte {
	return p.Regexp().FindAllSubmatch(b, n)
}

// FindAllStringSubmatch returns the first n matches in s with their groups, all where n is negative.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.Regexp().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where these begin and end.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.Regexp().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with each match replaced; $1 in with is the first group.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.Regexp().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc returns s with each match replaced by what with returns for it.
func (p *Pattern) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.Regexp().ReplaceAllStringFunc(s, with)
}
