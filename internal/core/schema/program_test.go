package schema

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A maker makes schemas and values that have to do with each other.
type maker struct{ *rand.Rand }

func (r maker) pick(of ...string) string { return of[r.IntN(len(of))] }

// schema returns one of any depth up to deep.
func (r maker) schema(deep int) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for range r.IntN(4) {
		switch r.IntN(12) {
		case 0:
			add(`"type":%s`, r.pick(`"string"`, `"integer"`, `"number"`, `"object"`, `"array"`, `"boolean"`, `"null"`, `["string","null"]`, `["integer","object"]`))
		case 1:
			add(`"enum":[%s,%s]`, r.value(0), r.value(r.IntN(2)))
		case 2:
			add(`"const":%s`, r.value(r.IntN(2)))
		case 3:
			add(`%q:%s`, r.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), r.number())
		case 4:
			add(`%q:%d`, r.pick("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), r.IntN(4))
		case 5:
			add(`"multipleOf":%s`, r.pick("2", "3", "0.5", "1e2"))
		case 6:
			add(`%q:%q`, r.pick("pattern", "format"), r.pick("date", "^a", "é", "uri", "b$", "date-time", "email"))
		case 7:
			add(`"required":[%q]`, r.name())
		case 8:
			if deep > 0 {
				add(`"properties":{%q:%s,%q:%s}`, r.name(), r.schema(deep-1), r.name()+"x", r.schema(deep-1))
			}
		case 9:
			if deep > 0 {
				add(`%q:%s`, r.pick("additionalProperties", "items", "not", "if", "then", "else", "additionalItems", "propertyNames", "contains", "unevaluatedProperties"), r.part(deep-1))
			}
		case 10:
			if deep > 0 {
				add(`%q:[%s,%s]`, r.pick("allOf", "anyOf", "oneOf", "prefixItems"), r.part(deep-1), r.part(deep-1))
			}
		case 11:
			if deep > 0 {
				add(`%s`, r.pick(`"$ref":"#"`, `"$ref":"#/$defs/a"`, `"uniqueItems":true`, `"patternProperties":{"^a":`+r.part(deep-1)+`}`, `"dependentRequired":{"a":["b"]}`,
					`"dependentSchemas":{"a":`+r.part(deep-1)+`}`, `"dependencies":{"a":["b"],"b":`+r.part(deep-1)+`}`, `"unevaluatedItems":`+r.part(deep-1),
					`"minContains":2`, `"maxContains":1`, `"$dynamicRef":"#d"`, `"$recursiveRef":"#"`))
			}
		}
	}
	seen, all := map[string]bool{}, []string{}
	for _, part := range parts { // a keyword is there once
		if key, _, _ := strings.Cut(part, ":"); !seen[key] {
			seen[key] = true
			all = append(all, part)
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (r maker) part(deep int) string {
	if r.IntN(8) == 0 {
		return r.pick("true", "false")
	}
	return r.schema(deep)
}

// whole returns a schema with what its references mean.
func (r maker) whole() string {
	s := r.schema(3)
	more := fmt.Sprintf(`"$defs":{"a":%s,"b":{"$dynamicAnchor":"d","type":["object","string"]}}`, r.schema(1))
	switch r.IntN(8) {
	case 0, 1:
		more += `,"$schema":"http://json-schema.org/draft-07/schema#"`
	case 2:
		more += `,"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true`
	}
	if s == "{}" {
		return "{" + more + "}"
	}
	return s[:len(s)-1] + "," + more + "}"
}

func (r maker) name() string { return r.pick("a", "b", "ab", "é") }

func (r maker) number() string {
	return r.pick("0", "-0", "1", "2", "3", "-1", "1.0", "1.5", "0.1", "0.3", "2.5", "1e2", "100", "12345678901234567", "0.1234567890123456", "999999999999999", "-7")
}

func (r maker) text() string {
	return r.pick(`""`, `"a"`, `"b"`, `"ab"`, `"é"`, `"\u00e9"`, `"2026-11-21"`, `"a\nb"`, `"\ud83d\ude00"`, `"😀"`, `"\ud83d"`, `"abcd"`, `"a@b.cc"`, `"http://a/b"`)
}

// value returns one of any depth up to deep; a few are no JSON.
func (r maker) value(deep int) string {
	n := 6
	if deep <= 0 {
		n = 4
	}
	switch r.IntN(n) {
	case 0:
		return r.number()
	case 1:
		return r.text()
	case 2:
		return r.pick("true", "false", "null")
	case 3:
		return r.number()
	case 4:
		items := make([]string, r.IntN(4))
		for i := range items {
			items[i] = r.value(deep - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for range r.IntN(4) {
		members = append(members, fmt.Sprintf(" %s : %s", r.pick(`"a"`, `"b"`, `"ab"`, `"é"`, `"\u0061"`, `"c"`, `"ax"`), r.value(deep-1)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// garbled returns a value that is spelled wrong somewhere, perhaps.
func (r maker) garbled(value string) string {
	at := r.IntN(len(value) + 1)
	return value[:at] + r.pick(",", "}", "]", "\"", "\x00", "\xff", "0", "-", ".", "\\", " ", "e", "u") + value[at:]
}

// What a program lets pass, the library lets pass, and an evaluation says what the library says. MORTISE_SCHEMA_PAIRS is how many pairs of
// a schema and a value are tried.
func TestAProgramLetsNothingPassThatTheLibraryRefuses(t *testing.T) {
	t.Parallel()
	pairs := 200_000
	if n, err := strconv.Atoi(os.Getenv("MORTISE_SCHEMA_PAIRS")); err == nil {
		pairs = n
	} else if testing.Short() {
		pairs = 20_000
	}
	seed := rand.Uint64()
	r := maker{rand.New(rand.NewPCG(seed, 1))}
	var fine, passed, refused, told int
	for tried := 0; tried < pairs; {
		text := r.whole()
		s, err := Compile([]byte(text))
		if err != nil {
			continue // "a" in "enum" twice, and the like
		}
		for range 40 {
			value := r.value(3)
			if r.IntN(10) == 0 {
				value = r.garbled(value)
			}
			tried++
			lib := library(s, value)
			agrees(t, seed, text, value, lib, (&Schema{compiled: s.compiled, dynamic: s.dynamic}).Check(t.Context(), []byte(value)))
			m := &machine{}
			m.begin([]byte(value))
			verdict := m.value(s.program, 0)
			if m.space(); verdict == fits && m.at != len(m.in) {
				verdict = unsure
			}
			_, spelled := decode([]byte(value))
			switch {
			case verdict == fits && lib != nil:
				t.Fatalf("seed %d: %s lets %s pass; the library: %v", seed, text, value, lib)
			case verdict == misfits && lib == nil:
				t.Fatalf("seed %d: %s refuses %s, which the library lets pass", seed, text, value)
			case lib == nil:
				fine++
				if verdict == fits {
					passed++
				}
			case spelled == nil:
				refused++
				if verdict == misfits {
					told++
				}
			}
		}
	}
	t.Logf("seed %d: %d pairs; of %d that fit %d were told by the program, of %d that do not %d", seed, pairs, fine, passed, refused, told)
	if passed*3 < fine {
		t.Error("a program tells too little")
	}
}

func TestAProgramTellsOfWhatPluginsHave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value string }{
		{`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","maxLength":3,"pattern":"^a"}},"required":["n"],"additionalProperties":false}`, ` { "n" : 15 , "s" : "aéé" } `},
		{`{"type":"object","properties":{"at":{"type":"string","format":"date-time"},"f":{"type":"number","exclusiveMinimum":0.1}}}`, `{"at":"2026-11-21T10:00:00Z","f":0.25,"more":[1,{"a":"\u00e9"}]}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"t":{"type":"object","properties":{"below":{"type":"array","items":{"$ref":"#/definitions/t"}}}}},"$ref":"#/definitions/t"}`, `{"below":[{"below":[]},{}]}`},
		{`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"}},"required":["kind"]},{"type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]}]}`, `{"kind":"b"}`},
		{`{"type":"object","additionalProperties":{"type":["integer","null"]}}`, `{"a":null,"b":-3}`},
		{`{"enum":["a",3,null,true]}`, `3`},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`, `["a"]`},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if !s.program.fits([]byte(c.value)) {
			t.Errorf("%s: %s was left to the library", c.schema, c.value)
		}
		if err := (&Schema{compiled: s.compiled}).Check(t.Context(), []byte(c.value)); err != nil {
			t.Error(err)
		}
	}
}

// library returns what the library says of a value.
func library(s *Schema, value string) error {
	decoded, err := decode([]byte(value))
	if err != nil {
		return err
	}
	return s.compiled.Validate(decoded)
}

// agrees holds what an evaluation says against what the library says: the verdict, and the
// places with their reasons.
func agrees(t *testing.T, seed uint64, text, value string, library, own error) {
	t.Helper()
	if (library == nil) != (own == nil) {
		t.Fatalf("seed %d: %s, %s: the library says %v, the evaluation %v", seed, text, value, library, own)
	}
	var invalid *jsonschema.ValidationError
	var misfit *Misfit
	switch {
	case !errors.As(library, &invalid):
		return // it is no JSON
	case !errors.As(own, &misfit):
		t.Fatalf("seed %d: %s, %s: the evaluation says %v, want a Misfit", seed, text, value, own)
	}
	want := explain(invalid)
	if strings.Contains(text, `"propertyNames"`) || strings.Contains(want.Error(), "causing reference cycle") {
		return // the library tells these without a place, or in words that name the schema's URL
	}
	if a, b := placesOf(want), placesOf(misfit); !slices.Equal(a, b) || want.more != misfit.more {
		t.Fatalf("seed %d: %s, %s: the library tells\n%q, the evaluation\n%q", seed, text, value, a, b)
	}
}

// placesOf returns the places of a misfit in an order that does not depend on that of members.
func placesOf(m *Misfit) (places []string) {
	for _, p := range m.Places {
		if slices.Sort(p.Members); strings.HasPrefix(p.Reason, "additional properties") {
			p.Reason = ""
		}
		places = append(places, fmt.Sprint(p))
	}
	slices.Sort(places)
	return places
}

func twenty() (schema, value []byte) {
	var properties, required, members []string
	for i := range 20 {
		name := fmt.Sprintf("property_%c", 'a'+i)
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string","maxLength":100}`, name))
		required = append(required, strconv.Quote(name))
		members = append(members, fmt.Sprintf(`%q:"the value of %s, thirty or so"`, name, name))
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(properties, ","), strings.Join(required, ",")),
		[]byte("{" + strings.Join(members, ",") + "}")
}

func TestAProgramAllocatesNothing(t *testing.T) {
	schema, value := twenty()
	s, err := Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if !s.program.fits(value) {
			t.Fatal("it does not fit")
		}
	}); n > 0.1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	schema, value := twenty()
	s, err := Compile(schema)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		schema *Schema
	}{{"program", s}, {"evaluation", &Schema{compiled: s.compiled}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if err := c.schema.Check(b.Context(), value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
