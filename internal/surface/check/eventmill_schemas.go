package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

// The schemas and examples of a package.
const (
	inputSchema  = "schemas/input.schema.json"
	outputSchema = "schemas/output.schema.json"
	requestFile  = "examples/request.example.json"
	responseFile = "examples/response.example.json"
)

// draft is what a schema of the contract begins with.
const draft = "https://json-schema.org/draft/2020-12/schema"

// A schemaPair is the two schemas of a tool; one that cannot be used is nil.
type schemaPair struct {
	input, output *schema.Schema
	found         []finding
	invalid       []finding // of those, what keeps a schema from being one
}

// schemas holds the schemas to the contract: JSON Schema 2020-12, with
// described members, and the result around what the tool answers.
func (t *mill) schemas() schemaPair {
	var s schemaPair
	var output map[string]any
	s.input, _ = t.schema(inputSchema, &s)
	s.output, output = t.schema(outputSchema, &s)
	if s.output != nil {
		s.found = append(s.found, envelope(output)...)
	}
	return s
}

func (t *mill) schema(name string, s *schemaPair) (*schema.Schema, map[string]any) {
	give := func(f finding) (*schema.Schema, map[string]any) {
		s.invalid, s.found = append(s.invalid, f), append(s.found, f)
		return nil, nil
	}
	raw, err := t.read(name)
	if err != nil {
		return give(bad(name, "%v", err))
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return give(bad(name, "it is not one JSON object"))
	}
	compiled, err := schema.Compile(raw)
	if err != nil {
		return give(bad(name, "%v", err))
	}
	switch said, there := object["$schema"].(string); {
	case !there:
		s.found = append(s.found, bad(at(name, "/$schema"), "it is missing; the contract has %q", draft))
	case strings.TrimSuffix(said, "#") != draft:
		s.found = append(s.found, bad(at(name, "/$schema"), "it is %q; the contract has %q", said, draft))
	}
	s.found = append(s.found, undescribed(name, "", object, object, 0)...)
	return compiled, object
}

// maxSchemaDepth is how deep a schema is looked into for descriptions.
const maxSchemaDepth = 16

// undescribed returns the required members that have no description, or that
// are missing altogether.
func undescribed(file, pointer string, object, whole map[string]any, depth int) []finding {
	if depth > maxSchemaDepth {
		return nil
	}
	var found []finding
	properties, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	for i, item := range required {
		name, ok := item.(string)
		if !ok {
			continue
		}
		place := pointer + "/properties/" + escape(name)
		property, there := properties[name]
		if !there {
			found = append(found, bad(at(file, fmt.Sprintf("%s/required/%d", pointer, i)), "%s is required, and has no schema under properties", name))
			continue
		}
		if member, isObject := property.(map[string]any); !isObject || !described(member, whole) {
			found = append(found, bad(at(file, place), "it is required, and has no description"))
		}
	}
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if inner, ok := properties[name].(map[string]any); ok {
			found = append(found, undescribed(file, pointer+"/properties/"+escape(name), inner, whole, depth+1)...)
		}
	}
	if items, ok := object["items"].(map[string]any); ok {
		found = append(found, undescribed(file, pointer+"/items", items, whole, depth+1)...)
	}
	return found
}

// described reports whether a member has a description, or what it refers to.
func described(member, whole map[string]any) bool {
	if text, _ := member["description"].(string); strings.TrimSpace(text) != "" {
		return true
	}
	ref, _ := member["$ref"].(string)
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return false
	}
	var place any = whole
	for token := range strings.SplitSeq(path, "/") {
		object, ok := place.(map[string]any)
		if !ok {
			return false
		}
		place = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	target, _ := place.(map[string]any)
	text, _ := target["description"].(string)
	return strings.TrimSpace(text) != ""
}

func escape(name string) string { return string(jsontext.Pointer("").AppendToken(name))[1:] }

// envelope returns what an output schema lacks of ToolResult.
func envelope(output map[string]any) []finding {
	properties, _ := output["properties"].(map[string]any)
	var found []finding
	for _, name := range []string{"ok", "result", "error_code", "message"} {
		if _, there := properties[name]; !there {
			found = append(found, bad(at(outputSchema, "/properties/"+name), "it is missing: the schema describes the whole ToolResult, with ok, result, error_code and message"))
		}
	}
	required, _ := output["required"].([]any)
	if len(found) == 0 && !slices.Contains(required, any("ok")) {
		found = append(found, bad(at(outputSchema, "/required"), "ok is in every ToolResult, and is not required"))
	}
	return found
}

// An examplePair is what is wrong with the two examples of a tool.
type examplePair struct{ request, response []finding }

// examples holds the examples against the schemas.
func (t *mill) examples(s schemaPair) examplePair {
	return examplePair{t.exampleFits(requestFile, inputSchema, s.input), t.exampleFits(responseFile, outputSchema, s.output)}
}

func (t *mill) exampleFits(name, against string, fits *schema.Schema) []finding {
	raw, err := t.read(name)
	if err != nil {
		return []finding{bad(name, "%v", err)}
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return []finding{bad(name, "it is not one JSON object")}
	}
	if fits == nil {
		return []finding{bad(name, "there is no usable %s to hold it against", against)}
	}
	if err := fits.Check(context.Background(), raw); err != nil {
		return []finding{bad(name, "%v", err)}
	}
	return nil
}
