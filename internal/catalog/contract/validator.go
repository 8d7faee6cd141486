package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// A Validator collects what is wrong with values that Go has typed already: of a
// binding, or of a plugin's own description.
type Validator struct {
	file     string
	problems Problems
}

// NewValidator returns a validator of what stands in a file, or in what is called so.
func NewValidator(file string) *Validator { return &Validator{file: file} }

// Err returns what is wrong as [Problems], nil if nothing is.
func (c *Validator) Err() error { return c.problems.err() }

// Problem notes that the value at a JSON pointer is wrong.
func (c *Validator) Problem(at, format string, args ...any) {
	c.problems = append(c.problems, Problem{File: c.file, Pointer: at, Reason: fmt.Sprintf(format, args...)})
}

// Unsaid notes a problem if code says nothing of itself, and its manifest names
// nothing that it does.
func (c *Validator) Unsaid(m *plugin.Manifest) {
	if len(m.Operations) == 0 && len(m.Hooks) == 0 {
		c.Problem("", "neither the manifest nor the code names an operation")
	}
}

// Words checks a list of words: "empty, whitespace-padded and duplicate values
// are rejected".
func (c *Validator) Words(at string, words []string) []string {
	var seen []string
	for i, word := range words {
		place := at + "/" + strconv.Itoa(i)
		r, hidden := Unprintable(word)
		switch reason := BadWord(word); {
		case reason != "":
			c.Problem(place, "%s", reason)
		case hidden:
			c.Problem(place, "it holds the character %U, which does not print", r)
		case slices.Contains(seen, word):
			c.Problem(place, "%q stands here twice", word)
		default:
			seen = append(seen, word)
		}
	}
	return seen
}

// Text refuses a text with characters that do not print.
func (c *Validator) Text(at, text string) string {
	if r, hidden := Unprintable(text); hidden {
		c.Problem(at, "it holds the character %U, which does not print", r)
	}
	return text
}

// Schema returns a schema in its stored form, nil for none.
func (c *Validator) Schema(at string, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := canon.Check(raw, MaxDepth); err != nil {
		c.Problem(at, "%v", PlainSyntax(err))
		return nil
	}
	if _, err := schema.Compile(raw); err != nil {
		c.Problem(at, "the schema is refused %v", err)
		return nil
	}
	return Compact(raw)
}
