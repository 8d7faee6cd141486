package schema_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

func TestBothDraftsAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, fits, not, reason string }{
		{"2020-12 by default", `{"prefixItems":[{"type":"integer"}]}`, `[1]`, `["a"]`, "at /0:"},
		{"draft-07 where it says so", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"integer"}]}`, `[1]`, `["a"]`, "at /0:"},
		{"format is asserted", `{"format":"date"}`, `"2026-11-21"`, `"yesterday"`, "at the top:"},
		{"a reference inside", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"number"}}}`, `1`, `"1"`, "at the top:"},
		{"escaped pointer", `{"additionalProperties":{"type":"null"}}`, `{"a":null}`, `{"a/b":1}`, "at /a~1b:"},
		{"nothing accepts everything", ``, `{"a":[1,2]}`, ``, ""},
	} {
		s, err := schema.Compile([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := s.Check(t.Context(), []byte(c.fits)); err != nil {
			t.Errorf("%s: %s refused: %v", c.name, c.fits, err)
		}
		if c.reason == "" {
			continue
		}
		if err := s.Check(t.Context(), []byte(c.not)); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %s gave %v, want %q in it", c.name, c.not, err, c.reason)
		}
	}
}

func TestBadSchemasAreRefusedWithPlaceAndReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, want string }{
		{`{"type":"strnig"}`, "at /type:"},
		{`[]`, "an object or a boolean"},
		{`{"$ref":"other.json"}`, "may refer only to itself"},
		{`{"$ref":"https://example.com/s.json"}`, "may refer only to itself"},
		{`{"$ref":"#/nowhere"}`, "nowhere"},
		{`{`, "EOF"},
		{`"` + strings.Repeat("a", schema.MaxBytes) + `"`, "at most"},
	} {
		if _, err := schema.Compile([]byte(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v, want %q in it", c.schema, err, c.want)
		}
	}
}

func TestManyReasonsAreCounted(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"items":{"type":"integer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(t.Context(), []byte(`["a","b","c","d","e","f","g"]`))
	if err == nil || !strings.Contains(err.Error(), "and 2 more") {
		t.Errorf("got %v", err)
	}
}

// Numbers that a double does not keep are judged by what they are.
func TestLongNumbersStayExact(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"items":{"type":"integer","maximum":9007199254740992}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{
		`[9007199254740992]`: true, `[9007199254740993]`: false, `[1.0]`: true, `[1.5]`: false, `[1e2]`: true, `[1e400]`: false,
		`[0.1234567890123456789]`: false, `[90071992547409920.0]`: false, `["9007199254740993"]`: false,
	} {
		if err := s.Check(t.Context(), []byte(value)); (err == nil) != fits {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := schema.Compile([]byte(`{"type":"object","additionalProperties":{"type":"string","maxLength":200},"maxProperties":50}`))
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for i := range 20 {
		text.WriteString(`,"property_` + string(rune('a'+i)) + `":"` + strings.Repeat("v", 34) + `"`)
	}
	value := []byte("{" + text.String()[1:] + "}")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(b.Context(), value); err != nil {
			b.Fatal(err)
		}
	}
}

// The exponent of a number is few bytes, and the digits of its fraction are as many as it says.
func TestAnExponentIsBounded(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"additionalProperties":{"minimum":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value string
		fits  bool
	}{
		{`{"a":1e999}`, true}, {`{"a":1e000000000999}`, true}, {`{"a":1E-999}`, true}, {`{"a\"1e9999":1e2}`, true},
		{`{"a":1e1000}`, false}, {`{"a":1e+99999999}`, false}, {`{"a":1.5E-99999999}`, false}, {`{"a":12e000001000}`, false}, {`{"\\":1e99999999}`, false},
	} {
		if err := s.Check(t.Context(), []byte(c.value)); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.value, err)
		}
	}
	if _, err := schema.Compile([]byte(`{"minimum":1e99999999}`)); err == nil || !strings.Contains(err.Error(), "exponent") {
		t.Errorf("a schema has a bound of %v", err)
	}
}
