package contract

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
)

// The methods here read what is not to be refused: where something else stands
// than belongs here, they leave a note and return what can be made of it.

// LooseText returns the text here, without what does not print.
func (v Value) LooseText() string {
	if !v.There {
		return ""
	}
	text, isText := v.Is.(string)
	if !isText {
		v.Note("text belongs here, not %s", v.Kind())
		return ""
	}
	if strings.TrimSpace(text) == "" {
		v.Note("it is empty")
		return ""
	}
	if r, hidden := Unprintable(text); hidden {
		v.Note("it holds the character %U, which does not print and is left out", r)
		text = strings.Map(func(r rune) rune {
			if _, hidden := Unprintable(string(r)); hidden {
				return -1
			}
			return r
		}, text)
	}
	return text
}

// LooseItems returns the items of the list here that are words, each once.
func (v Value) LooseItems() []Value {
	if !v.There {
		return nil
	}
	if _, isList := v.Is.([]any); !isList {
		v.Note("a list belongs here, not %s", v.Kind())
		return nil
	}
	var items []Value
	for _, item := range v.List() {
		text, isText := item.Is.(string)
		_, hidden := Unprintable(text)
		switch reason := BadWord(text); {
		case !isText:
			item.Note("text belongs here, not %s", item.Kind())
		case reason != "":
			item.Note("%s", reason)
		case hidden:
			item.Note("it holds characters that do not print")
		case slices.ContainsFunc(items, func(other Value) bool { return other.Is == item.Is }):
			item.Note("%q stands here twice", Clip(text))
		default:
			items = append(items, item)
		}
	}
	return items
}

// Texts returns what stands at places where text stands.
func Texts(items []Value) []string {
	var words []string
	for _, item := range items {
		words = append(words, item.Is.(string))
	}
	return words
}

// LooseWords returns the different words of the list here.
func (v Value) LooseWords() []string { return Texts(v.LooseItems()) }

// LooseTruth returns the true or false here, false for anything else.
func (v Value) LooseTruth() bool {
	truth, ok := v.Is.(bool)
	if v.There && !ok {
		v.Note("true or false belongs here, not %s: it is taken for false", v.Kind())
	}
	return truth
}

// LooseVersion returns the semantic version here, filled up where it is short.
func (v Value) LooseVersion() string {
	text, isText := v.Is.(string)
	switch {
	case !v.There: // the problem is noted
		return ""
	case !isText:
		v.Wrong("text")
		return ""
	}
	if _, err := semver.StrictNewVersion(text); err == nil {
		return text
	}
	whole, err := semver.NewVersion(text)
	if err != nil {
		v.Problem("%q is no semantic version, such as 1.2.0", Clip(text))
		return ""
	}
	v.Note("%q is no semantic version: it is taken for %s", Clip(text), whole)
	return whole.String()
}

// Schema returns the JSON Schema in a file.
func (f Files) Schema(name string) (json.RawMessage, error) {
	data, err := f.Read(name, schema.MaxBytes)
	if err != nil {
		return nil, err
	}
	if err := canon.Check(data, MaxDepth); err != nil {
		return nil, PlainSyntax(err)
	}
	if _, err := schema.Compile(data); err != nil {
		return nil, err
	}
	return Compact(data), nil
}
