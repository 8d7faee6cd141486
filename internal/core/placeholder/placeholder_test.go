package placeholder

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

const schema = `{"type":"object","required":["to"],"properties":{
	"to":{"type":"string"},
	"from":{"type":"string","x-binding":"identity:google_email"},
	"key":{"type":"string","x_binding":"secret:api_key"},
	"region":{"type":"string","x-binding":"env:REGION"},
	"odd":{"x-binding":"file:/etc/passwd"}, "none":{"x-binding":7}, "plain":true}}`

func TestGapsOfAnInput(t *testing.T) {
	t.Parallel()
	op := &plugin.Operation{Kind: plugin.Operator, Input: json.RawMessage(schema)}
	for _, c := range []struct{ input, want string }{
		{`{"to":"x"}`, "from=identity:google_email key=secret:api_key region=env:REGION"},
		{`{"from":null,"key":"k","region":""}`, ""},
		{`{"from":"a","key":{"$secret":"mine"},"region":"r"}`, "=secret:mine"},
		{`{"from":"a","region":"r","key":"k","to":[{"deep":{"$secret":"b"}},{"$secret":"a"},{"$secret":"b"}]}`, "=secret:a =secret:b"},
		{`[]`, ""},
		{`"$secret"`, ""},
	} {
		gaps, err := Gaps(op, json.RawMessage(c.input))
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		var got []string
		for _, g := range gaps {
			got = append(got, g.Property+"="+g.String())
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.input, got, c.want)
		}
	}
	if gaps, err := Gaps(&plugin.Operation{Kind: plugin.Agent, Input: json.RawMessage(schema)}, json.RawMessage(`{"to":{"$secret":"x"}}`)); len(gaps) != 0 || err != nil {
		t.Errorf("an agent: %v, %v", gaps, err)
	}
}

func TestWhatIsNoReference(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"a":{"$secret":7}}`, `{"a":{"$secret":""}}`, `{"a":{"$secret":null}}`, `{"a":{"$secret":"k","b":1}}`, `{"$secret":{"$secret":"k"}}`, `[[{"$secret":["k"]}]]`,
	} {
		if gaps, err := Gaps(&plugin.Operation{Kind: plugin.Tool}, json.RawMessage(input)); err == nil {
			t.Errorf("%s: %v", input, gaps)
		}
	}
}

func TestGapsAreFilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input  string
		values map[Gap]string
		want   string
	}{
		{`{"a":{"$secret":"k"},"n":12345678901234567890,"f":1.50}`, map[Gap]string{{Secret, "k", ""}: `q"<é`}, `{"a":"q\"<é","f":1.50,"n":12345678901234567890}`},
		{`[{"$secret":"k"},[{"$secret":"k"}]]`, map[Gap]string{{Secret, "k", ""}: "v"}, `["v",["v"]]`},
		{`{}`, map[Gap]string{{Identity, "email", "from"}: "ada@x"}, `{"from":"ada@x"}`},
		{`{"b":1}`, map[Gap]string{{Env, "R", "a"}: "x", {Secret, "k", "c"}: "y"}, `{"a":"x","b":1,"c":"y"}`},
		{`{"b":1}`, nil, `{"b":1}`},
	} {
		got, err := Fill(json.RawMessage(c.input), c.values)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.input, got, err, c.want)
		}
	}
	if got, err := Fill(json.RawMessage(`{"a":{"$secret":"k"}}`), nil); err == nil {
		t.Errorf("a reference without a value: %s", got)
	}
}

// FuzzGaps holds that what has gaps has none once they are filled, unless a
// value spells one, and that nothing else of the input changes its meaning.
func FuzzGaps(f *testing.F) {
	for _, seed := range []string{`{"a":{"$secret":"k"}}`, `[1,{"$secret":"k"}]`, `{"$secret":"k"}`, `{"a":"$secret"}`, `{"\u0024secret":"k"}`} {
		f.Add(seed)
	}
	op := &plugin.Operation{Kind: plugin.Tool}
	f.Fuzz(func(t *testing.T, input string) {
		gaps, err := Gaps(op, json.RawMessage(input))
		if err != nil || len(gaps) == 0 {
			return
		}
		values := map[Gap]string{}
		for _, g := range gaps {
			values[g] = "value"
		}
		filled, err := Fill(json.RawMessage(input), values)
		if err != nil {
			t.Fatalf("%q: %v", input, err)
		}
		if left, err := Gaps(op, filled); err != nil || len(left) != 0 {
			t.Fatalf("%q: %q still has %v (%v)", input, filled, left, err)
		}
	})
}
