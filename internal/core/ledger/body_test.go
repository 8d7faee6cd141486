package ledger

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// TestABodyIsSpelledAsTheLibrarySpellsIt fills each field of a record with nothing, with something
// plain and with something odd. A field that bodyOf does not know fails it.
func TestABodyIsSpelledAsTheLibrarySpellsIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 40))
	own := 0
	for range 20_000 {
		var rec plugin.CallRecord
		anyOf(random, reflect.ValueOf(&rec).Elem())
		got, err := bodyOf(&rec)
		want, wrong := json.Marshal(&rec, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if (err == nil) != (wrong == nil) || string(got) != string(want) {
			t.Fatalf("%+v\nis spelled %s (%v)\nwant       %s (%v)", rec, got, err, want, wrong)
		}
		var b body
		if b.record(&rec); !b.odd {
			own++
		}
	}
	if own < 5000 {
		t.Errorf("%d of 20000 records were spelled here", own)
	}
}

// anyOf gives a value something of its type.
func anyOf(random *rand.Rand, v reflect.Value) {
	texts := []string{"", "", "a", "user:ada", "a \"b\"\\\n", "é😀", "\u2028<&>\x7f", "a\x00"}
	if random.IntN(20) == 0 {
		texts = append(texts, "\xff", "\xed\xa0\x80")
	}
	text := func() string { return texts[random.IntN(len(texts))] }
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[plugin.Metrics]():
		if random.IntN(4) == 0 {
			return
		}
		values := []any{1.5, 0.0, -3.25, 1e-6, 123456789.125, 3, int64(-9), true, nil, "x", text()}
		if random.IntN(20) == 0 {
			values = append(values, 1e21, 1e-7, math.Copysign(0, -1), uint8(3), []string{"a"}, map[string]any{"b": 1, "a": 2}, math.NaN())
		}
		m := plugin.Metrics{}
		for range random.IntN(6) {
			m[text()+string(rune('a'+random.IntN(26)))] = values[random.IntN(len(values))]
		}
		v.Set(reflect.ValueOf(m))
	case v.Type() == reflect.TypeFor[jsontext.Value]() || v.Type().String() == "json.RawMessage":
		if random.IntN(20) == 0 {
			v.SetBytes([]byte(`{"seed": 1}`))
		}
	case kind == reflect.Pointer:
		if random.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			anyOf(random, v.Elem())
		}
	case kind == reflect.Struct:
		for i := range v.NumField() {
			anyOf(random, v.Field(i))
		}
	case kind == reflect.Slice:
		n := random.IntN(4)
		if n == 0 && random.IntN(2) == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			anyOf(random, v.Index(i))
		}
	case kind == reflect.String:
		v.SetString(text())
	case kind == reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case kind == reflect.Int64:
		v.SetInt(random.Int64N(100) - 50)
	default:
		panic("a field of type " + v.Type().String())
	}
}
