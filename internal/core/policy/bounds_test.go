package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

// TestNoPolicyTakesLongToLoad has what the parser and the validator would take
// exponential time for, which would not end, or most of the stack.
func TestNoPolicyTakesLongToLoad(t *testing.T) {
	t.Parallel()
	for _, condition := range map[string]string{
		"if in if":           strings.Repeat("if ", 60) + "context.depth == 1" + strings.Repeat(" then context.depth == 1 else true", 60),
		"if in then":         strings.Repeat("if context.depth == 1 then ", 60) + "true" + strings.Repeat(" else context.depth == 2", 60),
		"not":                strings.Repeat("!", 9000) + "true",
		"minus":              "1 == " + strings.Repeat("-", 9000) + "context.depth",
		"brackets":           strings.Repeat("(", 60) + "true" + strings.Repeat(")", 60),
		"too many brackets":  strings.Repeat("[", 10_000),
		"and":                "true" + strings.Repeat(" && context.depth == 1", 1600),
		"plus":               "1 == 1" + strings.Repeat(" + context.depth", 2400),
		"has":                "context.input has a" + strings.Repeat(".a", 4900),
		"unguarded access":   "context.input.a" + strings.Repeat(".a", 9) + " == 1",
		"unguarded and long": "context.input.a" + strings.Repeat(".a", 4900) + " == 1",
		"sets":               strings.Repeat("[", 60) + "1" + strings.Repeat("]", 60) + " == 1",
		"a long set":         "[1" + strings.Repeat(", 1", 4900) + "].contains(context.depth)",
		"by name":            "context.input" + strings.Repeat(`["a"]`, 2500) + " == 1",
		"records":            strings.Repeat("{a: ", 30) + "1" + strings.Repeat("}", 30) + strings.Repeat(".a", 30) + " == 1",
	} {
		_, _ = policy.Check([]policy.Document{{Name: "a.cedar", Text: []byte("permit (principal, action, resource) when { " + condition + " };")}})
	}
}
