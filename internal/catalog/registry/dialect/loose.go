package dialect

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

// looseText returns the text here, without what does not print.
func (v value) looseText() string {
	if !v.there {
		return ""
	}
	text, isText := v.is.(string)
	if !isText {
		v.note("text belongs here, not %s", v.kind())
		return ""
	}
	if strings.TrimSpace(text) == "" {
		v.note("it is empty")
		return ""
	}
	if r, hidden := unprintable(text); hidden {
		v.note("it holds the character %U, which does not print and is left out", r)
		text = strings.Map(func(r rune) rune {
			if _, hidden := unprintable(string(r)); hidden {
				return -1
			}
			return r
		}, text)
	}
	return text
}

// firstText returns the first of texts that says anything.
func firstText(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// looseItems returns the items of the list here that are words, each once.
func (v value) looseItems() []value {
	if !v.there {
		return nil
	}
	if _, isList := v.is.([]any); !isList {
		v.note("a list belongs here, not %s", v.kind())
		return nil
	}
	var items []value
	for _, item := range v.list() {
		text, isText := item.is.(string)
		_, hidden := unprintable(text)
		switch reason := badWord(text); {
		case !isText:
			item.note("text belongs here, not %s", item.kind())
		case reason != "":
			item.note("%s", reason)
		case hidden:
			item.note("it holds characters that do not print")
		case slices.ContainsFunc(items, func(other value) bool { return other.is == item.is }):
			item.note("%q stands here twice", clip(text))
		default:
			items = append(items, item)
		}
	}
	return items
}

// texts returns what stands at places where text stands.
func texts(items []value) []string {
	var words []string
	for _, item := range items {
		words = append(words, item.is.(string))
	}
	return words
}

// looseWords returns the different words of the list here.
func (v value) looseWords() []string { return texts(v.looseItems()) }

// looseTruth returns the true or false here, false for anything else.
func (v value) looseTruth() bool {
	truth, ok := v.is.(bool)
	if v.there && !ok {
		v.note("true or false belongs here, not %s: it is taken for false", v.kind())
	}
	return truth
}

// looseVersion returns the semantic version here, filled up where it is short.
func (v value) looseVersion() string {
	text, isText := v.is.(string)
	switch {
	case !v.there: // the problem is noted
		return ""
	case !isText:
		v.wrong("text")
		return ""
	}
	if _, err := semver.StrictNewVersion(text); err == nil {
		return text
	}
	whole, err := semver.NewVersion(text)
	if err != nil {
		v.problem("%q is no semantic version, such as 1.2.0", clip(text))
		return ""
	}
	v.note("%q is no semantic version: it is taken for %s", clip(text), whole)
	return whole.String()
}

// toolSchema returns the schema that stands here or in the file that is named
// here, or in the one called usual. One that is not there, or that cannot be
// used, is none: it is advice.
func (v value) toolSchema(usual string) json.RawMessage {
	name, isPath := v.is.(string)
	switch is := v.is.(type) {
	case *mapping:
		raw := toJSON(is)
		if _, err := schema.Compile(raw); err != nil {
			v.note("the schema is left out %v", err)
			return nil
		}
		return compact(raw)
	case nil, string:
	default:
		v.note("a path or a JSON Schema belongs here, not %s", v.kind())
	}
	if !isPath || name == "" {
		name = usual
	}
	raw, err := v.page.files.schema(name)
	if err != nil {
		v.note("%s: %v; nothing is said of what fits", clip(name), err)
		return nil
	}
	return raw
}

// schema returns the JSON Schema in a file.
func (f files) schema(name string) (json.RawMessage, error) {
	data, err := f.read(name, schema.MaxBytes)
	if err != nil {
		return nil, err
	}
	if err := canon.Check(data, maxDepth); err != nil {
		return nil, plainSyntax(err)
	}
	if _, err := schema.Compile(data); err != nil {
		return nil, err
	}
	return compact(data), nil
}

// outOfEnvelope returns the schema of a tool's result alone: the contract's
// describes the ToolResult around it.
func (v value) outOfEnvelope(raw json.RawMessage) json.RawMessage {
	inner, wrapped := unwrap(raw, "result", "ok", "error_code", "output_artifacts")
	if !wrapped {
		return raw
	}
	if _, err := schema.Compile(inner); err != nil {
		v.note("result does not stand for itself in it: %v", err)
		return nil
	}
	return inner
}
