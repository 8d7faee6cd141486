package check

import (
	"bufio"
	"bytes"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// readmeSections are what every README has, each with the words by which its
// heading is known.
var readmeSections = []struct {
	name  string
	words []string
}{
	{"purpose", []string{"purpose", "overview", "what it does"}},
	{"artifact types", []string{"artifact"}},
	{"LLM status", []string{"llm", "language model"}},
	{"example request", []string{"request"}},
	{"example response", []string{"response"}},
	{"sample summary", []string{"summary"}},
	{"limitations", []string{"limitation", "known issue"}},
	{"safety notes", []string{"safety", "security"}},
	{"dependencies", []string{"dependenc"}},
	{"reference data overrides", []string{"reference data", "override"}},
}

// readme looks for the sections that every README has, and for something in
// each of them.
func (t *mill) readme() []finding {
	raw, err := t.read("README.md")
	if err != nil {
		return []finding{bad("README.md", "%v", err)}
	}
	var found []finding
	sections := sectionsOf(raw)
	for _, want := range readmeSections {
		fits := func(s section) bool {
			return slices.ContainsFunc(want.words, func(word string) bool { return strings.Contains(s.title, word) })
		}
		first := slices.IndexFunc(sections, fits)
		filled := slices.ContainsFunc(sections, func(s section) bool { return fits(s) && s.filled })
		switch {
		case first < 0:
			found = append(found, bad("README.md", "it has no section %q", want.name))
		case !filled:
			found = append(found, bad("README.md", "nothing stands in its section %q", sections[first].title))
		}
	}
	return found
}

// A section is a heading of a README and whether anything stands below it.
type section struct {
	title  string // in lower case
	level  int
	filled bool
}

var (
	heading  = pattern.New(`^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$`)
	boldLine = pattern.New(`^ {0,3}\*\*([^*]+)\*\*:?\s*$`)
)

// maxSections is how many of a text are looked at.
const maxSections = 1000

// boldLevel is the level of a line in bold, which is below all headings.
const boldLevel = 7

// sectionsOf returns the sections of a Markdown text: what headings, or lines
// in bold, are above. What is below a heading of a lower level is in it too.
func sectionsOf(text []byte) []section {
	var sections []section
	fence := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxFile)
	for lines.Scan() && len(sections) < maxSections {
		line := lines.Text()
		bare := strings.TrimSpace(line)
		if mark := fenceOf(bare); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
		}
		title, level := "", 0
		if m := heading.FindStringSubmatch(line); m != nil {
			title, level = m[2], len(m[1])
		} else if m := boldLine.FindStringSubmatch(line); m != nil {
			title, level = m[1], boldLevel
		}
		switch {
		case level > 0 && fence == "":
			sections = append(sections, section{title: strings.ToLower(title), level: level})
		case bare != "" && strings.Trim(bare, "`~-=*_") != "":
			fill(sections)
		}
	}
	return sections
}

// fill marks the last section, and those that it is in.
func fill(sections []section) {
	level := boldLevel + 1
	for i := len(sections) - 1; i >= 0; i-- {
		if sections[i].level < level {
			sections[i].filled = true
			level = sections[i].level
		}
	}
}

// fenceOf returns the fence that a line begins with, or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return strings.Repeat(mark, n)
		}
	}
	return ""
}
