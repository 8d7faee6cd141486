package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// A schema is a JSON Schema, its members as they are written.
type schema map[string]json.RawMessage

// inputSchema returns the schema of a tool's input as all providers take it: of
// an object, without what they refuse at its top. It then allows more than the
// tool's own, against which the input is checked anyhow.
func inputSchema(raw json.RawMessage) schema {
	var s schema
	if json.Unmarshal(raw, &s) != nil || s == nil {
		s = schema{}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"} {
		delete(s, keyword)
	}
	s["type"] = json.RawMessage(`"object"`)
	if s["properties"] == nil {
		s["properties"] = json.RawMessage(`{}`)
	}
	return s
}

// geminiKeywords are those that Gemini knows. It refuses most others.
var geminiKeywords = []string{
	"$defs", "$ref", "anyOf", "description", "enum", "format", "items", "maxItems", "maximum", "minItems", "minimum",
	"oneOf", "prefixItems", "properties", "required", "title", "type",
}

// geminiFormats are those that it knows of strings and numbers.
var geminiFormats = []string{`"date-time"`, `"date"`, `"time"`, `"duration"`, `"int32"`, `"int64"`, `"float"`, `"double"`, `"enum"`}

// definitions is where older schemas have what they refer to.
var definitions = strings.NewReplacer("#/definitions/", "#/$defs/")

// forGemini returns a schema without what Gemini refuses. Only members in the
// place of a keyword are taken for one: a property may be called as it likes.
func forGemini(s schema) schema {
	kept := schema{}
	if value, ok := s["const"]; ok && s["enum"] == nil {
		kept["enum"] = slices.Concat(json.RawMessage("["), value, json.RawMessage("]"))
	}
	for keyword, value := range s {
		switch {
		case keyword == "definitions":
			keyword = "$defs"
		case keyword == "format" && !slices.Contains(geminiFormats, string(value)):
			continue
		case !slices.Contains(geminiKeywords, keyword):
			continue
		}
		switch keyword {
		case "items":
			value = cleanSchema(value)
		case "$ref":
			value = json.RawMessage(definitions.Replace(string(value)))
		case "properties", "$defs":
			value = cleanEach(value)
		case "anyOf", "oneOf", "prefixItems":
			value = cleanList(value)
		}
		kept[keyword] = value
	}
	return kept
}

func cleanSchema(raw json.RawMessage) json.RawMessage {
	var s schema
	if json.Unmarshal(raw, &s) != nil { // true and false are schemas too, of everything and nothing
		return json.RawMessage("{}")
	}
	return marshal(forGemini(s))
}

func cleanEach(raw json.RawMessage) json.RawMessage {
	named := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &named)
	for name, s := range named {
		named[name] = cleanSchema(s)
	}
	return marshal(named)
}

func cleanList(raw json.RawMessage) json.RawMessage {
	list := []json.RawMessage{}
	_ = json.Unmarshal(raw, &list)
	for i, s := range list {
		list[i] = cleanSchema(s)
	}
	return marshal(list)
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // it was read from valid JSON
		return json.RawMessage("{}")
	}
	return raw
}
