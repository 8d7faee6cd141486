package input

import (
	"slices"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"
)

// Settings of one object merge in whatever order they come; what cannot be both
// is refused, in either order.
func TestSettingsOfAnObjectMerge(t *testing.T) {
	t.Parallel()
	const refused = "refused"
	for _, c := range []struct {
		input string
		sets  []string
		want  string
	}{
		{`{}`, []string{`a={"x":1}`, `a.y=2`}, `{"a":{"x":1,"y":2}}`},
		{`{}`, []string{`a={"x":{"p":1}}`, `a.x.q=2`, `a.z=3`}, `{"a":{"x":{"p":1,"q":2},"z":3}}`},
		{`{}`, []string{`a={"x":1}`, `a={"y":9007199254740993}`}, `{"a":{"x":1,"y":9007199254740993}}`},
		{`{}`, []string{`a={"x":{"p":[1,{"r":1}]}}`, `a={"x":{"q":null}}`}, `{"a":{"x":{"p":[1,{"r":1}],"q":null}}}`},
		{`{}`, []string{`a={}`, `a.b.c=text`}, `{"a":{"b":{"c":"text"}}}`},
		{`{"a":{"w":0}}`, []string{`a.x=1`, `a.y=2`}, `{"a":{"w":0,"x":1,"y":2}}`},
		{`{"a":{"w":0}}`, []string{`a={"x":1}`}, `{"a":{"x":1}}`}, // stronger than the input given whole
		{`{"a":{"w":0}}`, []string{`a={"x":1}`, `a.y=2`}, `{"a":{"x":1,"y":2}}`},
		{`{"a":{"w":{"v":0},"u":9007199254740993}}`, []string{`a.w={"x":1}`, `a.w.y=2`}, `{"a":{"u":9007199254740993,"w":{"x":1,"y":2}}}`},
		{`{"a":5}`, []string{`a={"x":1}`, `a.y=2`}, `{"a":{"x":1,"y":2}}`},
		{`{"a":null}`, []string{`a.y=2`}, `{"a":{"y":2}}`},
		{`{"a":5}`, []string{`a.y=2`}, refused},
		{`{"a":[1]}`, []string{`a.y=2`}, refused},
		{`{}`, []string{`a=5`, `a.y=2`}, refused},
		{`{}`, []string{`a=[1]`, `a.y=2`}, refused},
		{`{}`, []string{`a=null`, `a.y=2`}, refused},
		{`{}`, []string{`a=text`, `a={"y":2}`}, refused},
		{`{}`, []string{`a.b=1`, `a.b.c=2`}, refused},
		{`{}`, []string{`a={"b":1}`, `a.b.c=2`}, refused},
		{`{}`, []string{`plain={"x":1}`, `plain.y=2`}, refused}, // text, as its schema says
	} {
		orders := [][]string{c.sets, slices.Clone(c.sets)}
		slices.Reverse(orders[1])
		for _, sets := range orders {
			members := map[string]any{}
			if err := decode([]byte(c.input), &members); err != nil {
				t.Fatal(err)
			}
			err := setMembers(members, sets, []byte(`{"properties":{"plain":{"type":"string"}}}`))
			got, broken := json2.Marshal(members, json2.Deterministic(true))
			if broken != nil {
				t.Fatal(broken)
			}
			switch {
			case c.want == refused && (err == nil || !strings.Contains(err.Error(), "--set") || !strings.Contains(err.Error(), "object")):
				t.Errorf("%s with %q is %s, %v", c.input, sets, got, err)
			case c.want != refused && (err != nil || string(got) != c.want):
				t.Errorf("%s with %q is %s, %v; want %s", c.input, sets, got, err, c.want)
			}
		}
	}
	members := map[string]any{}
	if err := setMembers(members, []string{"a=1", "a=2", "b.c=1", "b.c=x"}, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := json2.Marshal(members, json2.Deterministic(true)); string(got) != `{"a":2,"b":{"c":"x"}}` {
		t.Errorf("of one member set twice the last counts: %s", got)
	}
}
