package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

func compare(t *testing.T, earlier, later string, d schema.Direction) []string {
	t.Helper()
	changes, err := schema.Compare([]byte(earlier), []byte(later), d)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, string(c.Impact)+" "+c.String())
	}
	return lines
}

// TestCompareNamesWhatChanged: each kind of change, with its place and what it
// means for those who send the value and for those who read it.
func TestCompareNamesWhatChanged(t *testing.T) {
	t.Parallel()
	const none = ""
	for _, c := range []struct {
		name, earlier, later string
		input, output        string // how the gravest change begins; "" for none
	}{
		{"annotations", `{"type":"string","title":"a","description":"b"}`, `{"description":"c","examples":["x"],"type":"string"}`, none, none},
		{"a member called title", `{"properties":{"title":{"type":"string"}}}`, `{"properties":{"title":{"type":"integer"}}}`,
			"breaking at /properties/title/type: ", "breaking at /properties/title/type: "},
		{"order of a set", `{"type":["string","null"],"required":["a","b"]}`, `{"required":["b","a"],"type":["null","string"]}`, none, none},
		{"a new optional member of a closed object", `{"type":"object","additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "additive at /properties/a: ", "additive at /properties/a: "},
		{"a new optional member of an open object", `{"type":"object"}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, "unclear at /properties/a: ", "additive at "},
		{"a new required member", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`,
			`breaking at /required: "a" must be given now`, "additive at the top: "},
		{"a required member is optional", `{"required":["a"]}`, `{}`, "additive at ", `breaking at /required: "a" was always there`},
		{"a member is gone from a closed object", `{"properties":{"a":{}},"additionalProperties":false}`, `{"additionalProperties":false}`, "breaking at /properties/a: this member is refused now", "additive at "},
		{"a member is gone from an open object", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{}}`, "additive at ", "breaking at /properties/a: nothing is said"},
		{"closed", `{"type":"object"}`, `{"type":"object","additionalProperties":false}`, "breaking at /additionalProperties: ", "additive at "},
		{"opened", `{"type":"object","additionalProperties":false}`, `{"type":"object"}`, "additive at ", "breaking at /additionalProperties: "},
		{"a named member among typed ones", `{"additionalProperties":{"type":"integer"}}`, `{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`,
			"breaking at /properties/a/type: ", "breaking at /properties/a/type: "},
		{"type", `{"type":"string"}`, `{"type":"integer"}`, "breaking at /type: values of type string are refused now", "breaking at /type: values of type integer may stand here now"},
		{"type wider", `{"type":"integer"}`, `{"type":"number"}`, "additive at ", "breaking at /type: "},
		{"type or null", `{"type":"string"}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "additive at ", "breaking at /type: "},
		{"types or alternatives", `{"type":["string","null"]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "additive at ", "additive at "},
		{"alternative gone", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`, "breaking at /type: values of type null", "additive at "},
		{"enum value gone", `{"enum":["a","b"]}`, `{"enum":["a"]}`, `breaking at /enum: "b" is refused now`, "additive at "},
		{"enum value new", `{"enum":["a"]}`, `{"enum":["a","b"]}`, "additive at ", `breaking at /enum: "b" may stand here now`},
		{"enum instead of text", `{"type":"string"}`, `{"type":"string","enum":["a"]}`, "breaking at /enum: ", "additive at "},
		{"const", `{"const":1}`, `{"const":2}`, "breaking at /const: 1 is refused", "breaking at /const: 2 may"},
		{"minimum up", `{"type":"integer","minimum":0}`, `{"type":"integer","minimum":1}`, "breaking at /minimum: tighter than before: 1, and was 0", "additive at "},
		{"minimum down", `{"type":"integer","minimum":1}`, `{"type":"integer","minimum":0}`, "additive at ", "breaking at /minimum: wider than before: 0, and was 1"},
		{"minimum to exclusive", `{"minimum":1}`, `{"exclusiveMinimum":1}`, "breaking at /exclusiveMinimum: ", "additive at "},
		{"maximum new", `{"type":"number"}`, `{"type":"number","maximum":3}`, "breaking at /maximum: ", "additive at "},
		{"a bound of another type", `{"type":"string"}`, `{"type":"string","maximum":3}`, "additive at ", "additive at "},
		{"maxLength", `{"type":"string","maxLength":9}`, `{"type":"string","maxLength":8}`, "breaking at /maxLength: ", "additive at "},
		{"minItems", `{"type":"array"}`, `{"type":"array","minItems":1}`, "breaking at /minItems: ", "additive at "},
		{"multipleOf", `{"type":"integer","multipleOf":4}`, `{"type":"integer","multipleOf":2}`, "additive at ", "breaking at /multipleOf: "},
		{"uniqueItems", `{"type":"array"}`, `{"type":"array","uniqueItems":true}`, "breaking at /uniqueItems: ", "additive at "},
		{"items", `{"items":{"type":"string"}}`, `{"items":{"type":"integer"}}`, "breaking at /items/type: ", "breaking at /items/type: "},
		{"pattern new", `{"type":"string"}`, `{"type":"string","pattern":"a"}`, "breaking at /pattern: ", "additive at "},
		{"pattern other", `{"type":"string","pattern":"b"}`, `{"type":"string","pattern":"a"}`, "unclear at /pattern: cannot be judged", "unclear at /pattern: "},
		{"format gone", `{"type":"string","format":"date"}`, `{"type":"string"}`, "additive at ", "breaking at /format: "},
		{"not", `{"not":{"type":"string"}}`, `{"not":{"type":"null"}}`, "unclear at /not: cannot be judged", "unclear at /not: "},
		{"if", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"if":{"required":["a"]},"then":{"required":["c"]}}`, "unclear at /then: ", "unclear at /then: "},
		{"patternProperties", `{"patternProperties":{"^a":{"type":"string"}}}`, `{"patternProperties":{"^b":{"type":"string"}}}`, "unclear at /patternProperties: ", "unclear at /patternProperties: "},
		{"prefixItems", `{"prefixItems":[{"type":"string"}]}`, `{"prefixItems":[{"type":"integer"}]}`, "unclear at /prefixItems: ", "unclear at /prefixItems: "},
		{"oneOf", `{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, "unclear at /oneOf: ", "unclear at /oneOf: "},
		{"allOf", `{"type":"object"}`, `{"type":"object","allOf":[{"required":["a"]}]}`, "breaking at /required: ", "additive at "},
		{"what a reference means", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}`, "breaking at /type: ", "breaking at /type: "},
		{"a reference written out", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"type":"string"}`, "additive at ", "additive at "},
		{"a schema within itself", `{"properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"additionalProperties":false}`, `{"properties":{"next":{"$ref":"#"},"n":{"type":"string"}},"additionalProperties":false}`,
			"breaking at /properties/n/type: ", "breaking at /properties/n/type: "},
		{"an anchor", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"string"}}}`, `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"null"}}}`, "unclear at /$ref: ", "unclear at /$ref: "},
		{"draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}`, `{"type":"string"}`, "unclear at /$schema: ", "unclear at /$schema: "},
		{"a number too long to read", `{"minimum":1e400}`, `{"minimum":1e300}`, "unclear at /minimum: ", "unclear at /minimum: "},
		{"nothing said before", ``, `{"type":"object"}`, "breaking at /type: ", "additive at "},
		{"nothing said after", `{"type":"object"}`, ``, "additive at ", "breaking at /type: "},
		{"nothing accepted", `{}`, `false`, "breaking at the top: ", "additive at "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for d, want := range map[schema.Direction]string{schema.Input: c.input, schema.Output: c.output} {
				got := compare(t, c.earlier, c.later, d)
				switch {
				case want == "" && len(got) > 0, want != "" && (len(got) == 0 || !strings.HasPrefix(got[0], want)):
					t.Errorf("%d: %q, want %q first", d, got, want)
				}
			}
		})
	}
}

func TestCompareRefusesWhatIsNoSchema(t *testing.T) {
	t.Parallel()
	if _, err := schema.Compare([]byte(`{"type":"objct"}`), []byte(`{}`), schema.Input); err == nil || !strings.Contains(err.Error(), "the earlier schema: ") {
		t.Error(err)
	}
	if _, err := schema.Compare([]byte(`{}`), []byte(`[]`), schema.Input); err == nil || !strings.Contains(err.Error(), "the later schema: ") {
		t.Error(err)
	}
}

// A comparison is bounded: schemas made to be slow to compare are called unclear.
func TestCompareIsBounded(t *testing.T) {
	t.Parallel()
	nest := func(leaf string) string {
		text := `{"type":"` + leaf + `"}`
		for range 10 {
			text = `{"anyOf":[` + text + `,` + strings.Replace(text, leaf, leaf, 1) + `,{"type":"null"}]}`
		}
		return text
	}
	got := compare(t, nest("string"), nest("integer"), schema.Input)
	if len(got) == 0 || len(got) > 100 || strings.HasPrefix(got[0], "additive") {
		t.Errorf("%d changes", len(got))
	}
}

// TestCompatibleMeansThatNothingIsRefused: where Compare finds an input
// compatible, no random value that the earlier schema accepts is refused by
// the later; and the other way round for outputs, new members aside.
func TestCompatibleMeansThatNothingIsRefused(t *testing.T) {
	t.Parallel()
	judged, held := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		before := drawSchema(t, 3)
		after := change(t, before)
		earlier, later := encode(t, before), encode(t, after)
		a, errA := schema.Compile(earlier)
		b, errB := schema.Compile(later)
		if errA != nil || errB != nil {
			t.Fatalf("%v, %v: %s %s", errA, errB, earlier, later)
		}
		var values [][]byte
		for range 40 {
			values = append(values, encode(t, drawValue(t, 3)))
		}
		for _, d := range []schema.Direction{schema.Input, schema.Output} {
			changes, err := schema.Compare(earlier, later, d)
			if err != nil {
				t.Fatal(err)
			}
			if worst := schema.Worst(changes); worst == schema.Breaking || worst == schema.Unclear {
				continue
			}
			judged++
			for _, value := range values {
				from, to := a, b
				if d == schema.Output {
					if slices.ContainsFunc(changes, func(c schema.Change) bool { return strings.HasSuffix(c.Says, "a new member") }) {
						continue
					}
					from, to = b, a
				}
				if from.Check(t.Context(), value) != nil {
					continue
				}
				held++
				if err := to.Check(t.Context(), value); err != nil {
					t.Fatalf("direction %d: %s\n-> %s\nis called compatible (%v), and %s: %v", d, earlier, later, changes, value, err)
				}
			}
		}
	})
	least := 20
	if testing.Short() { // then a fifth is drawn
		least = 4
	}
	if judged < least || held < 5*least {
		t.Errorf("%d were compatible and %d values held against them: too few to say anything", judged, held)
	}
}

func encode(t *rapid.T, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

var (
	names  = []string{"a", "b", "c"}
	types  = []string{"string", "integer", "number", "boolean", "null", "array", "object"}
	plains = []any{"", "a", "ab", "abc", 0, 1, 2, 3.5, -1, true, false, nil}
)

// drawValue draws from few enough values that schemas and values often meet.
func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "shape")
	switch {
	case depth > 0 && kind >= 4:
		object := map[string]any{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "has") {
				object[name] = drawValue(t, depth-1)
			}
		}
		return object
	case depth > 0 && kind == 3:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	return rapid.SampledFrom(plains).Draw(t, "plain")
}

func drawSchema(t *rapid.T, depth int) map[string]any {
	s := map[string]any{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		addKeyword(t, s, depth)
	}
	return s
}

func addKeyword(t *rapid.T, s map[string]any, depth int) {
	small := func() int { return rapid.IntRange(0, 3).Draw(t, "n") }
	keywords := []string{"type", "types", "enum", "const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "required", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
	if depth > 0 {
		keywords = append(keywords, "properties", "properties", "properties", "additionalProperties", "closed", "items", "anyOf", "oneOf", "allOf", "not",
			"patternProperties", "propertyNames", "prefixItems", "contains", "if", "then", "else", "dependentRequired", "unevaluatedProperties", "ref")
	}
	switch k := rapid.SampledFrom(keywords).Draw(t, "keyword"); k {
	case "type":
		s[k] = rapid.SampledFrom(types).Draw(t, "type")
	case "types":
		s["type"] = rapid.SliceOfNDistinct(rapid.SampledFrom(types), 1, 3, rapid.ID).Draw(t, "types")
	case "enum":
		s[k] = rapid.SliceOfN(rapid.SampledFrom(plains), 1, 4).Draw(t, "enum")
	case "const":
		s[k] = rapid.SampledFrom(plains).Draw(t, "const")
	case "multipleOf":
		s[k] = small() + 1
	case "pattern":
		s[k] = rapid.SampledFrom([]string{"^a", "b"}).Draw(t, "pattern")
	case "required":
		s[k] = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID).Draw(t, "required")
	case "dependentRequired":
		s[k] = map[string]any{"a": []string{"b"}}
	case "uniqueItems":
		s[k] = rapid.Bool().Draw(t, "unique")
	case "properties":
		own, _ := s[k].(map[string]any)
		if own == nil {
			own = map[string]any{}
		}
		own[rapid.SampledFrom(names).Draw(t, "name")] = drawSchema(t, depth-1)
		s[k] = own
	case "patternProperties":
		s[k] = map[string]any{rapid.SampledFrom([]string{"a", "[bc]"}).Draw(t, "names"): drawSchema(t, depth-1)}
	case "closed":
		s["additionalProperties"] = false
	case "anyOf", "oneOf", "allOf", "prefixItems":
		s[k] = []any{drawSchema(t, depth-1), drawSchema(t, depth-1)}
	case "ref":
		s["properties"] = map[string]any{"a": map[string]any{"$ref": "#"}}
	case "additionalProperties", "items", "not", "propertyNames", "contains", "if", "then", "else", "unevaluatedProperties":
		s[k] = drawSchema(t, depth-1)
	default:
		s[k] = small()
	}
}

// change returns a schema with one to three changes somewhere in it.
func change(t *rapid.T, s map[string]any) map[string]any {
	var copied map[string]any
	if err := json.Unmarshal(encode(t, s), &copied); err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		place := copied
		for rapid.Bool().Draw(t, "deeper") {
			inner := inside(place)
			if len(inner) == 0 {
				break
			}
			place = inner[rapid.IntRange(0, len(inner)-1).Draw(t, "which")]
		}
		if keys := keysOf(place); len(keys) > 0 && rapid.Bool().Draw(t, "drop") {
			delete(place, rapid.SampledFrom(keys).Draw(t, "dropped"))
		} else {
			addKeyword(t, place, 1)
		}
	}
	return copied
}

func keysOf(s map[string]any) []string {
	var keys []string
	for k := range s {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// inside returns the schemas directly in one, in order.
func inside(s map[string]any) []map[string]any {
	var found []map[string]any
	for _, k := range keysOf(s) {
		switch value := s[k].(type) {
		case map[string]any:
			switch k {
			case "dependentRequired":
			case "properties", "patternProperties":
				for _, name := range keysOf(value) {
					if inner, ok := value[name].(map[string]any); ok {
						found = append(found, inner)
					}
				}
			default:
				found = append(found, value)
			}
		case []any:
			for _, one := range value {
				if inner, ok := one.(map[string]any); ok {
					found = append(found, inner)
				}
			}
		}
	}
	return found
}

func ExampleCompare() {
	changes, _ := schema.Compare(
		[]byte(`{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`),
		[]byte(`{"type":"object","properties":{"text":{"type":"string","maxLength":80},"lang":{}},"required":["lang"],"additionalProperties":false}`),
		schema.Input)
	for _, change := range changes {
		fmt.Println(change.Impact, change)
	}
	// Output:
	// breaking at /required: "lang" must be given now
	// breaking at /properties/text/maxLength: tighter than before: 80, and was none
	// additive at /properties/lang: a new member that may be given
}
