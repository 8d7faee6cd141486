package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// constraints are the keywords that decide whether a value fits.
var constraints = []string{
	"$ref", "$dynamicRef", "$recursiveRef", "type", "enum", "const",
	"minLength", "maxLength", "pattern", "format",
	"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf",
	"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
	"dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
	"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems",
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
}

// annotations are the keywords that change nothing for a caller.
var annotations = []string{"title", "description", "examples", "$comment", "deprecated"}

// Keywords by what stands under them: schemas by name, or data. Under all
// others stands a schema, a list of schemas, or a plain value.
var (
	byName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	asData = []string{"enum", "const", "default", "required", "dependentRequired", "type"}
)

// same reports whether two schemas differ in annotations alone.
func same(a, b any) bool { return reflect.DeepEqual(bare(a), bare(b)) }

// bare returns a schema without annotations. true and {} are the same.
func bare(schema any) any {
	switch schema := schema.(type) {
	case bool:
		if schema {
			return map[string]any{}
		}
	case []any: // of schemas
		list := make([]any, len(schema))
		for i, one := range schema {
			list[i] = bare(one)
		}
		return list
	case map[string]any:
		kept := map[string]any{}
		for key, value := range schema {
			switch {
			case slices.Contains(annotations, key):
			case slices.Contains(byName, key):
				kept[key] = bareByName(value)
			case key == "required" || key == "type":
				kept[key] = sorted(value)
			case slices.Contains(asData, key):
				kept[key] = value
			case isSchema(value):
				kept[key] = bare(value)
			default:
				kept[key] = value
			}
		}
		return kept
	}
	return schema
}

// isSchema reports whether a value may be a schema or a list of them. uniqueItems
// is a boolean, and no schema; as true it must not become {}.
func isSchema(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func bareByName(value any) any {
	named, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for name, schema := range named {
		if _, names := schema.([]any); names { // dependencies of draft 07
			kept[name] = schema
			continue
		}
		kept[name] = bare(schema)
	}
	return kept
}

// sorted returns a list of texts in order; it means a set.
func sorted(value any) any {
	if _, list := value.([]any); !list {
		return value
	}
	names := texts(value)
	slices.Sort(names)
	return names
}

// texts returns the texts of a list.
func texts(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, one := range list {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// refers reports whether there is a reference in a schema or a list of them.
func refers(value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, refers)
	case map[string]any:
		for key, inner := range value {
			if strings.HasSuffix(strings.ToLower(key), "ref") || refers(inner) {
				return true
			}
		}
	}
	return false
}

// show writes a value for people, not longer than a line.
func show(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	text := []rune(string(raw))
	if len(text) > 80 {
		return string(text[:80]) + "…"
	}
	return string(text)
}

func one(change Change) []Change { return []Change{change} }

// breaking returns a change that breaks, in the words of the direction.
func (c *comparison) breaking(path []string, keyword, input, output string) Change {
	says := input
	if c.direction == Output {
		says = output
	}
	return Change{place(path, keyword), Breaking, says}
}

// unclear returns a change that cannot be judged.
func (c *comparison) unclear(path []string, keyword, why string) Change {
	return Change{place(path, keyword), Unclear, "cannot be judged: " + why}
}

func place(path []string, keyword string) string {
	if keyword != "" {
		path = append(slices.Clone(path), keyword)
	}
	return Pointer(path)
}
