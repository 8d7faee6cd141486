package pack

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// IgnoreFile is the name of the file that says what of a directory is no part of its
// package. It is none itself.
const IgnoreFile = ".mortiseignore"

// maxRules bounds a file of rules.
const maxRules = 1000

// Ignored are the rules of an ignore file, one on a line, as Git has them: # begins a
// comment, a slash at the end means a directory, a slash elsewhere binds the rule to the
// top, ** stands for any directories, ! takes back, and the last rule that fits counts.
type Ignored []rule

type rule struct {
	parts    []string
	anywhere bool // at any depth
	dir      bool // directories only
	keep     bool
}

// ParseIgnored reads rules. One that cannot be read is invalid_input with its line.
func ParseIgnored(text string) (Ignored, error) {
	var rules Ignored
	lines := strings.Split(text, "\n")
	if len(lines) > maxRules {
		return nil, refused("%s has more than %d lines", IgnoreFile, maxRules)
	}
	for n, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		r := rule{}
		if line, r.keep = strings.CutPrefix(line, "!"); line == "" {
			return nil, refused("%s, line %d: a rule is a pattern", IgnoreFile, n+1)
		}
		line, r.dir = strings.CutSuffix(line, "/")
		r.anywhere = !strings.Contains(line, "/")
		r.parts = strings.Split(strings.TrimPrefix(line, "/"), "/")
		for _, part := range r.parts {
			if err := pattern.CheckGlob(part); err != nil || part == "" {
				return nil, refused("%s, line %d: %q is no pattern", IgnoreFile, n+1, line)
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Has reports whether a file is left out: by itself, or with a directory above it, whose
// files no rule takes back. Without a step left the answer does not count, and work has the
// reason.
func (i Ignored) Has(work *budget.Steps, name string) bool {
	if name == IgnoreFile {
		return true
	}
	steps := strings.Split(name, "/")
	for n := 1; n <= len(steps); n++ {
		if i.last(work, steps[:n], n < len(steps)) {
			return true
		}
	}
	return false
}

func (i Ignored) last(work *budget.Steps, steps []string, dir bool) bool {
	for _, r := range slices.Backward(i) {
		if (dir || !r.dir) && r.fits(work, steps) {
			return !r.keep
		}
	}
	return false
}

func (r rule) fits(work *budget.Steps, steps []string) bool {
	if r.anywhere {
		steps = steps[len(steps)-1:]
	}
	return pattern.Path(work, r.parts, steps)
}
