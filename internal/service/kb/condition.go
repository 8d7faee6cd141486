package kb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Fields are those of one kind of thing that is found by them (Shu, host.kb).
type Fields string

// The kinds.
const (
	OfChunks    Fields = "chunks"
	OfDocuments Fields = "documents"
)

// The shapes of fields, and the operators of each.
const (
	textField   = "text"
	arrayField  = "array"
	objectField = "object"
)

var (
	fieldShapes = map[Fields]map[string]string{
		OfChunks:    {"content": textField, "summary": textField, "topics": arrayField},
		OfDocuments: {"title": textField, "content": textField, "synopsis": textField, "capability_manifest": objectField},
	}
	fieldOperators = map[string][]string{
		textField:   {"eq", "contains", "icontains"},
		arrayField:  {"contains", "has_key", "has_any"},
		objectField: {"contains", "has_key", "path_contains"},
	}
)

// maxPattern is how long a value that is looked for may be, in bytes.
const maxPattern = 4096

// A Condition is what a field has to meet.
type Condition struct {
	of    Fields
	field string
	meets func(work *budget.Steps, value any) bool // false without a step
}

// Condition reads a condition; code is invalid_field, invalid_operator or
// invalid_value where it is none, in this order.
func (of Fields) Condition(field, operator string, value json.RawMessage) (c *Condition, code string, err error) {
	shape, known := fieldShapes[of][field]
	if !known {
		return nil, "invalid_field", fmt.Errorf("%.80q is no field of %s", field, of)
	}
	if !slices.Contains(fieldOperators[shape], operator) {
		return nil, "invalid_operator", fmt.Errorf("%.80q is no operator of %s, which is %s: there are %s", operator, field, shape, strings.Join(fieldOperators[shape], ", "))
	}
	var wanted any
	if len(value) > maxPattern || json.Unmarshal(value, &wanted) != nil {
		return nil, "invalid_value", fmt.Errorf("the value has %d bytes; it is JSON of at most %d", len(value), maxPattern)
	}
	c = &Condition{of: of, field: field}
	var wants string
	switch shape + " " + operator {
	case "text eq", "text contains", "text icontains":
		text, isText := wanted.(string)
		wants = unless(isText, "text")
		c.meets = textMeets(operator, text)
	case "array has_key", "object has_key":
		text, isText := wanted.(string)
		wants = unless(isText, "text")
		c.meets = func(work *budget.Steps, value any) bool { return hasKey(work, value, text) }
	case "array contains":
		_, isList := wanted.([]any)
		wants = unless(isList, "a list")
		c.meets = func(work *budget.Steps, value any) bool { return contained(work, value, wanted) }
	case "array has_any":
		list, isList := wanted.([]any)
		wants = unless(isList, "a list")
		c.meets = func(work *budget.Steps, value any) bool {
			return slices.ContainsFunc(list, func(one any) bool { text, isText := one.(string); return isText && hasKey(work, value, text) })
		}
	case "object contains":
		_, isObject := wanted.(map[string]any)
		wants = unless(isObject, "an object")
		c.meets = func(work *budget.Steps, value any) bool {
			_, isObject := value.(map[string]any)
			return isObject && contained(work, value, wanted)
		}
	case "object path_contains":
		var path []string
		path, wanted, wants = pathOf(wanted)
		c.meets = func(work *budget.Steps, value any) bool {
			at, found := under(value, path)
			return found && contained(work, at, wanted)
		}
	}
	if wants != "" {
		return nil, "invalid_value", fmt.Errorf("the value of %s %s is %s", field, operator, wants)
	}
	return c, "", nil
}

func unless(is bool, wants string) string {
	if is {
		return ""
	}
	return wants
}

// textMeets compares texts; % and _ in what is looked for are wildcards, as in LIKE.
func textMeets(operator, text string) func(*budget.Steps, any) bool {
	switch operator {
	case "eq":
		return func(_ *budget.Steps, value any) bool { return value == text }
	case "icontains":
		text = strings.ToLower(text)
	}
	return func(work *budget.Steps, value any) bool {
		is, isText := value.(string)
		if operator == "icontains" {
			is = strings.ToLower(is)
		}
		return isText && pattern.Like(work, text, is)
	}
}

// hasKey reports whether an object has a member, or an array a text.
func hasKey(work *budget.Steps, value any, key string) bool {
	switch v := value.(type) {
	case map[string]any:
		_, has := v[key]
		return has
	case []any:
		return work.Take(1+len(v)/16) && slices.Contains(v, any(key))
	}
	return false
}

// contained reports whether a value holds all that another says, at any depth. Each part of
// one may be held against each of the other.
func contained(work *budget.Steps, value, part any) bool {
	if !work.Take(1) {
		return false
	}
	switch p := part.(type) {
	case map[string]any:
		v, isObject := value.(map[string]any)
		if !isObject {
			return false
		}
		for name, want := range p {
			if has, found := v[name]; !found || !contained(work, has, want) {
				return false
			}
		}
		return true
	case []any:
		v, isList := value.([]any)
		if !isList {
			return false
		}
		for _, want := range p {
			if !slices.ContainsFunc(v, func(has any) bool { return contained(work, has, want) }) {
				return false
			}
		}
		return true
	}
	if list, isList := value.([]any); isList {
		return work.Take(len(list)) && slices.ContainsFunc(list, func(has any) bool { return reflect.DeepEqual(has, part) })
	}
	return reflect.DeepEqual(value, part)
}

// pathOf reads {path, value}: the path is a list of names, or names with dots
// between them.
func pathOf(wanted any) (path []string, value any, wants string) {
	const form = "an object {path, value}"
	object, _ := wanted.(map[string]any)
	value, has := object["value"]
	if !has {
		return nil, nil, form
	}
	switch p := object["path"].(type) {
	case string:
		path = strings.Split(p, ".")
	case []any:
		for _, step := range p {
			name, isText := step.(string)
			if !isText {
				return nil, nil, form
			}
			path = append(path, name)
		}
	}
	return path, value, unless(len(path) > 0, form)
}

// under returns what stands at a path.
func under(value any, path []string) (any, bool) {
	for _, name := range path {
		object, _ := value.(map[string]any)
		next, found := object[name]
		if !found {
			return nil, false
		}
		value = next
	}
	return value, true
}

// value returns the field of a document or of its passage; nil where there is none.
func (c *Condition) value(row *documentRow, p *profile, text string) any {
	optional := func(text *string) any {
		if text == nil {
			return nil
		}
		return *text
	}
	parsed := func(raw []byte) (value any) {
		if json.Unmarshal(raw, &value) != nil {
			return nil
		}
		return value
	}
	switch c.field {
	case "content":
		return text
	case "title":
		return row.Title
	case "summary":
		return optional(p.Summary)
	case "synopsis":
		return optional(p.Synopsis)
	case "topics":
		return parsed(p.Topics)
	}
	return parsed(p.Manifest)
}

// spelled is a value as findings are ordered by it.
func spelled(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}
