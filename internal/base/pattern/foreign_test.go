package pattern_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// matchers are the ways to hold a text against the pattern of a stranger. Each takes steps.
var matchers = map[string]func(t *testing.T, work *budget.Steps, pattern, text string) bool{
	"Match": func(t *testing.T, work *budget.Steps, text, in string) bool {
		return compiled(t, text).Match(work, in)
	},
	"Submatch": func(t *testing.T, work *budget.Steps, text, in string) bool {
		return compiled(t, text).Submatch(work, in) != nil
	},
	"Like": func(_ *testing.T, work *budget.Steps, text, in string) bool { return pattern.Like(work, text, in) },
	"Path": func(_ *testing.T, work *budget.Steps, text, in string) bool {
		return pattern.Path(work, strings.Split(text, "/"), strings.Split(in, "/"))
	},
}

func compiled(t *testing.T, text string) *pattern.Foreign {
	t.Helper()
	re, err := pattern.Compile(text)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	return re
}

// hard are patterns and texts on which a matcher does the most, or on which one that tries
// every way would not end.
var hard = []struct{ name, matcher, pattern, text string }{
	{"a text of one letter", "Like", strings.Repeat("a", 2000) + "_b", strings.Repeat("a", 1<<20)},
	{"many stars", "Like", strings.Repeat("a%", 1000) + "b_", strings.Repeat("a", 1<<20)},
	{"any characters", "Like", strings.Repeat("_", 4000) + "b", strings.Repeat("é", 1<<19)},
	{"nested repetition", "Match", `(x+x+)+y`, strings.Repeat("x", 1<<20)},
	{"a thousand of any", "Match", `.{500}[ab].{499}c`, strings.Repeat("a", 1<<20)},
	{"alternatives", "Match", `(a|aa|aaa|b.{900})*c`, strings.Repeat("a", 1<<20)},
	{"groups", "Submatch", `([^/]+)([^/]+)([^/]+)/`, strings.Repeat("x", 1<<20)},
	{"ten double stars", "Path", strings.Repeat("**/", 10) + "x", strings.Repeat("a/", 20_000) + "b"},
	{"double stars and globs", "Path", strings.Repeat("**/*a*/", 10) + "x", strings.Repeat("aaaaaaaa/", 1000) + "b"},
}

// No matcher does more than it has steps for, and one that stops says why.
func TestMatchersStopWithoutSteps(t *testing.T) {
	t.Parallel()
	for _, c := range hard {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			work := budget.NewSteps(t.Context(), 1000)
			if matchers[c.matcher](t, work, c.pattern, c.text) || !errors.Is(work.Err(), budget.ErrSpent) {
				t.Errorf("with 1000 steps: %v, want ErrSpent", work.Err())
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			work = budget.NewSteps(ctx, math.MaxInt)
			if matchers[c.matcher](t, work, c.pattern, c.text) || !errors.Is(work.Err(), context.Canceled) {
				t.Errorf("under a context that has ended: %v, want context.Canceled", work.Err())
			}
		})
	}
}

// The stars of a pattern multiply nothing: the work is bounded by the product of pattern and
// text.
func TestStarsDoNotMultiply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, matcher, pattern, text string }{
		{"LIKE", "Like", strings.Repeat("a%", 50) + "_b", strings.Repeat("a", 200)},
		{"paths", "Path", strings.Repeat("**/", 30) + "x", strings.Repeat("a/", 100) + "b"},
		{"paths with globs", "Path", strings.Repeat("**/*a*/", 30) + "x", strings.Repeat("a/", 100) + "b"},
	} {
		most := (len(c.pattern) + 2) * (len(c.text) + 1)
		work := budget.NewSteps(t.Context(), most)
		if matchers[c.matcher](t, work, c.pattern, c.text) || work.Err() != nil {
			t.Errorf("%s: %v after %d steps, want an answer", c.name, work.Err(), most)
		}
	}
}

func TestRegularExpressionsAreBoundedBeforeTheyAreCompiled(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		strings.Repeat("a", pattern.MaxText+1), strings.Repeat("(a{1000})", 100), "((a{10}){10}){10}" + strings.Repeat("b{900}", 60),
		strings.Repeat("(?:a|[bc]{500})", 200), "(", "a{1001}",
	} {
		if _, err := pattern.Compile(bad); err == nil {
			t.Errorf("%.40q of %d bytes was compiled", bad, len(bad))
		}
	}
	if _, err := pattern.Compile(strings.Repeat(`[a-z]{1,64}\.`, 20)); err != nil {
		t.Errorf("an ordinary expression was refused: %v", err)
	}
}

// Within the bounds a matcher says what package regexp, package path or a search that tries
// every way says.
func TestMatchersAgreeWithTheirReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	text := func(n int, of ...string) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString(of[r.IntN(len(of))])
		}
		return b.String()
	}
	for range 4000 {
		work := budget.NewSteps(t.Context(), math.MaxInt)
		like, in := text(8, "a", "b", "%", "_", "é", "é"), text(10, "a", "b", "é")
		if got, want := pattern.Like(work, like, in), contains(like, in); got != want {
			t.Fatalf("Like(%q, %q) = %t, want %t", like, in, got, want)
		}
		parts, steps := strings.Split(text(6, "a/", "*/", "**/", "b?/")+"a", "/"), strings.Split(text(7, "a/", "bb/", "c/")+text(2, "a", "b"), "/")
		if got, want := pattern.Path(work, parts, steps), everyWay(parts, steps); got != want {
			t.Fatalf("Path(%q, %q) = %t, want %t", parts, steps, got, want)
		}
		expression := text(7, "a", "b", ".", "*", "+", "(a|b)", "[^a]", "é", "^", "$", "a{2,5}", `\b`)
		re, err := regexp.Compile(expression)
		if err != nil {
			continue
		}
		in = strings.Repeat(text(8, "a", "b", "é", "\xff", " "), 1+1000*r.IntN(2))
		own := compiled(t, expression)
		if got, want := own.Match(work, in), re.MatchString(in); got != want || own.MatchString(in) != want {
			t.Fatalf("Match(%q, %.40q) = %t, want %t", expression, in, got, want)
		}
		left := math.MaxInt
		if got, told := own.Within(&left, []byte(in)); !told || got != re.MatchString(in) {
			t.Fatalf("Within(%q, %.40q) = %t, %t", expression, in, got, told)
		}
		if left == math.MaxInt {
			t.Fatal("Within took nothing")
		}
	}
}

// contains is Like by trying every way.
func contains(like, text string) bool {
	quoted := regexp.QuoteMeta(like)
	quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, "%", ".*"), "_", ".")
	return regexp.MustCompile("(?s)" + quoted).MatchString(text)
}

// everyWay is Path by trying every way.
func everyWay(parts, steps []string) bool {
	switch {
	case len(parts) == 0:
		return len(steps) == 0
	case parts[0] == "**":
		return everyWay(parts[1:], steps) || len(steps) > 0 && everyWay(parts, steps[1:])
	case len(steps) == 0:
		return false
	}
	matched, _ := path.Match(parts[0], steps[0])
	return matched && everyWay(parts[1:], steps[1:])
}

func TestGlobs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", pattern.MaxGlob+1)
	for _, c := range []struct {
		glob, name string
		fits, none bool
	}{
		{"mail/*", "mail/send", true, false}, {"mail/*", "mail/a/b", false, false}, {"[", "[", false, true},
		{long, long, false, true}, {"*", long, false, false}, {"*", long[1:], true, false},
	} {
		if got, err := pattern.Glob(c.glob, c.name), pattern.CheckGlob(c.glob); got != c.fits || (err != nil) != c.none {
			t.Errorf("%.20q, %.20q: %t, %v", c.glob, c.name, got, err)
		}
	}
}
