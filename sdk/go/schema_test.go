package mortise_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Types that refer to themselves, directly and by way of one another.
type (
	Tree   struct{ Left, Right *Tree }
	List   []List
	Dict   map[string]Dict
	Person struct {
		Name    string     `json:"name"`
		Company *Company   `json:"company" doc:"where they work"`
		Friends []Person   `json:"friends"`
		Nested  [][]*Tree  `json:"nested,omitempty"`
		Pairs   [2]Company `json:"pairs,omitzero"`
	}
	Company struct {
		Staff map[string]Person `json:"staff"`
		Motto string            `json:"motto,omitempty"`
	}
	Endless        *Endless
	Generic[T any] struct {
		Value T           `json:"value"`
		Next  *Generic[T] `json:"next"`
	}
)

// Types with an encoding of their own.
type (
	Colour byte // text, by value
	Weight struct{ Grams int }
	Tagged struct{ text string } // text, by pointer
	Odd    struct{ N int }       // JSON of its own
	Bytes  []Colour
	Octet  byte
	Span   time.Duration // a type of its own: an integer
)

func (c Colour) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "colour-%d", byte(c)), nil }
func (c *Colour) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "colour-%d", (*byte)(c))
	return err
}
func (w Weight) AppendText(b []byte) ([]byte, error) { return fmt.Appendf(b, "%dg", w.Grams), nil }
func (w *Weight) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%dg", &w.Grams)
	return err
}
func (w Weight) MarshalText() ([]byte, error)     { return w.AppendText(nil) }
func (g *Tagged) MarshalText() ([]byte, error)    { return []byte(g.text), nil }
func (g *Tagged) UnmarshalText(text []byte) error { g.text = string(text); return nil }
func (o Odd) MarshalJSON() ([]byte, error)        { return fmt.Appendf(nil, "[%d]", o.N), nil }
func (o *Odd) UnmarshalJSON(raw []byte) error {
	_, err := fmt.Sscanf(string(raw), "[%d]", &o.N)
	return err
}

var (
	_ encoding.TextAppender  = Weight{}
	_ encoding.TextMarshaler = (*Tagged)(nil)
)

// Types that embed others.
type (
	Base struct {
		ID      int64  `json:"id"`
		Comment string `json:"comment,omitempty"`
		Clash   string
	}
	Other   struct{ Clash string }
	Lower   struct{ Lowered string }
	lower   struct{ Kept bool }
	Derived struct {
		Base
		Comment []string `json:"comment"` // hides that of Base
	}
	Deep struct {
		*Derived
		lower
		Extra Base  `json:"extra"`
		Named Other `json:"Clash"`
	}
	Conflict struct {
		Base
		Other // neither Clash is written
	}
	Kept struct {
		Base `json:"base"`
	}
	Open struct {
		Known int            `json:"known"`
		Rest  map[string]int `json:",embed"`
	}
	Raw struct {
		Known int            `json:"known"`
		Rest  jsontext.Value `json:",embed"`
	}
	Looped struct {
		*Looped
		N int `json:"n"`
	}
	Options struct {
		Text  int64    `json:"text,string"`
		Ptr   *float64 `json:"ptr,string"`
		Skip  string   `json:"-"`
		Small int8     `json:"small"`
		Large uint64   `json:"large"`
		Any   any      `json:"any"`
	}
	Times struct {
		For    time.Duration            `json:"for"`
		Maybe  *time.Duration           `json:"maybe"`
		All    []time.Duration          `json:"all"`
		By     map[time.Duration]string `json:"by"`
		At     time.Time                `json:"at"`
		Span   Span                     `json:"span"`
		Times  []*time.Time             `json:"times"`
		Number big.Int                  `json:"number"`
	}
)

// named are types that random ones are made of.
var named = []reflect.Type{
	reflect.TypeFor[Tree](), reflect.TypeFor[List](), reflect.TypeFor[Dict](), reflect.TypeFor[Person](), reflect.TypeFor[Company](),
	reflect.TypeFor[Endless](), reflect.TypeFor[Generic[int]](), reflect.TypeFor[Generic[Colour]](),
	reflect.TypeFor[Colour](), reflect.TypeFor[Weight](), reflect.TypeFor[Tagged](), reflect.TypeFor[Odd](), reflect.TypeFor[Bytes](),
	reflect.TypeFor[[]Octet](), reflect.TypeFor[[4]byte](), reflect.TypeFor[[]byte](), reflect.TypeFor[Span](), reflect.TypeFor[map[Colour]int](), reflect.TypeFor[map[int8]string](),
	reflect.TypeFor[Derived](), reflect.TypeFor[Deep](), reflect.TypeFor[Conflict](), reflect.TypeFor[Kept](), reflect.TypeFor[Open](),
	reflect.TypeFor[Raw](), reflect.TypeFor[Looped](), reflect.TypeFor[Options](), reflect.TypeFor[Times](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value](), reflect.TypeFor[json.Number](), reflect.TypeFor[any](),
	reflect.TypeFor[time.Duration](), reflect.TypeFor[time.Time](), reflect.TypeFor[*big.Int](),
	reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int16](), reflect.TypeFor[uint32](), reflect.TypeFor[uintptr](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](),
}

// embeddable are types that a random struct may embed.
var embeddable = []reflect.Type{
	reflect.TypeFor[Base](), reflect.TypeFor[*Base](), reflect.TypeFor[Other](), reflect.TypeFor[Lower](), reflect.TypeFor[Derived](), reflect.TypeFor[Looped](), reflect.TypeFor[*Tree](),
}

// randomType returns a type with a JSON form.
func randomType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 || r.IntN(3) == 0 {
		return named[r.IntN(len(named))]
	}
	switch r.IntN(5) {
	case 0:
		return reflect.SliceOf(randomType(r, depth-1))
	case 1:
		return reflect.ArrayOf(r.IntN(3), randomType(r, depth-1))
	case 2:
		return reflect.MapOf([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[Colour]()}[r.IntN(3)], randomType(r, depth-1))
	case 3:
		return reflect.PointerTo(randomType(r, depth-1))
	}
	var fields []reflect.StructField
	for i := range r.IntN(4) {
		name := fmt.Sprintf("F%d", i)
		tags := []reflect.StructTag{"", `doc:"what it is"`, reflect.StructTag(fmt.Sprintf(`json:"f%d"`, i)), `json:",omitempty"`, `json:",omitzero"`}
		fields = append(fields, reflect.StructField{Name: name, Type: randomType(r, depth-1), Tag: tags[r.IntN(len(tags))]})
	}
	if r.IntN(3) == 0 {
		t := embeddable[r.IntN(len(embeddable))]
		name := t.Name()
		if t.Kind() == reflect.Pointer {
			name = t.Elem().Name()
		}
		fields = append(fields, reflect.StructField{Name: name, Type: t, Anonymous: true})
	}
	return reflect.StructOf(fields)
}

// fill gives v a random value that has a JSON form.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte([]string{"null", "1", `"text"`, `[1,{}]`, `{"a":{"b":null}}`}[r.IntN(5)]))
		return
	case reflect.TypeFor[json.Number]():
		v.SetString([]string{"0", "-1.5e3"}[r.IntN(2)])
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC()))
		return
	case reflect.TypeFor[big.Int]():
		v.Addr().Interface().(*big.Int).SetString("123456789012345678901234567890", 10)
		return
	case reflect.TypeFor[any]():
		if value := []any{nil, 1.5, "a", []any{}, map[string]any{"a": true}}[r.IntN(5)]; value != nil {
			v.Set(reflect.ValueOf(value))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "ä\n\"", strings.Repeat("x", 20)}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(r.Uint64())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(r.NormFloat64() * 1000)))
	case reflect.Pointer:
		if depth > 0 && r.IntN(3) > 0 && v.Type() != reflect.TypeFor[Endless]() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := r.IntN(3); depth > 0 && r.IntN(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		if depth > 0 && r.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(r, key, 0)
				fill(r, value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && !(v.Type().Field(i).Anonymous && v.Type().Field(i).Type == reflect.TypeFor[*Looped]()) && v.Type() != reflect.TypeFor[Raw]() {
				fill(r, f, depth-1)
			}
		}
	}
}

// What the codec writes of a value of any type, the schema of the type accepts,
// and the codec reads again.
func TestSchemasAcceptWhatTheCodecWrites(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 400
	for i := range rounds + len(named) {
		var typ reflect.Type
		if i < len(named) {
			typ = named[i]
		} else {
			typ = randomType(r, 3)
		}
		raw, read, err := mortise.SchemaOf(typ)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		writes, err := schema.Compile(raw)
		if err != nil {
			t.Fatalf("%v: the schema is none: %v\n%s", typ, err, raw)
		}
		reads, err := schema.Compile(read)
		if err != nil {
			t.Fatalf("%v: the schema of the input is none: %v\n%s", typ, err, read)
		}
		for range 6 {
			v := reflect.New(typ)
			fill(r, v.Elem(), 4)
			value, err := mortise.Encode(v.Elem().Interface())
			if err != nil {
				t.Fatalf("%v: the codec does not write it: %v", typ, err)
			}
			if err := writes.Check(t.Context(), value); err != nil {
				t.Fatalf("%v\nwrites %s\nschema %s\n%v", typ, value, raw, err)
			}
			if err := reads.Check(t.Context(), value); err != nil {
				t.Fatalf("%v\nwrites %s\nand the schema of the input is %s\n%v", typ, value, read, err)
			}
			if missing := mortise.Missing(typ, value); missing != "" {
				t.Fatalf("%v\nwrites %s\nand misses %s when it reads that", typ, value, missing)
			}
			again := reflect.New(typ)
			if err := mortise.Decode(value, again.Interface()); err != nil {
				if strings.Contains(err.Error(), "embedded pointer to unexported") {
					continue
				}
				t.Fatalf("%v\nwrites %s\nand does not read it: %v", typ, value, err)
			}
			twice, err := mortise.Encode(again.Elem().Interface())
			if err != nil || writes.Check(t.Context(), twice) != nil {
				t.Fatalf("%v\nwrites %s\nreads %s, %v", typ, value, twice, err)
			}
		}
	}
}

// What an input lacks, however deep inside it, the schema refuses and the codec
// too.
func TestSchemaAndCodecRefuseTheSameInputs(t *testing.T) {
	t.Parallel()
	type inner struct {
		Must string         `json:"must"`
		For  time.Duration  `json:"for,omitempty"`
		May  *inner         `json:"may"`
		All  []inner        `json:"all,omitempty"`
		By   map[string]any `json:"by,omitempty"`
	}
	p := mortise.New("p", "1.0.0")
	mortise.Tool(p, "op", "Do it.", func(_ *mortise.Call, in inner) (inner, error) { return in, nil })
	c := talkTo(t, p)
	input := describedOf(t, c, "op").Input
	s, err := schema.Compile(input)
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{
		`{"must":"a"}`:                         true,
		`{"must":"a","for":"1m30s"}`:           true,
		`{"must":"a","for":"90"}`:              false,
		`{"must":"a","for":90}`:                false,
		`{}`:                                   false,
		`{"must":"a","may":{}}`:                false,
		`{"must":"a","may":null}`:              true,
		`{"must":"a","all":[{"must":"b"}]}`:    true,
		`{"must":"a","all":[{"must":"b"},{}]}`: false,
		`{"must":"a","all":[{"must":"b","may":{"must":"c"}}]}`:     true,
		`{"must":"a","all":[{"must":"b","may":{"all":[]}}]}`:       false,
		`{"must":"a","unknown":1}`:                                 false,
		`{"must":"a","may":{"must":"b","unknown":1}}`:              false,
		`{"must":"a","by":{"anything":{"must":1}}}`:                true,
		`{"must":"a","may":{"must":"b","may":{"must":"c","x":1}}}`: false,
	} {
		if err := s.Check(t.Context(), []byte(value)); (err == nil) != fits {
			t.Errorf("%s: the schema says %v", value, err)
		}
		if got := string(c.ask("execute", params("op", value))); strings.Contains(got, "succeeded") != fits || !fits && !strings.Contains(got, "invalid_input") {
			t.Errorf("%s: the codec says %s", value, got)
		}
	}
}

func describedOf(t *testing.T, c *talk, name string) (op struct{ Input, Output jsontext.Value }) {
	t.Helper()
	var said struct {
		Plugins []struct {
			Operations map[string]struct {
				Input  jsontext.Value `json:"input"`
				Output jsontext.Value `json:"output"`
			} `json:"operations"`
		} `json:"plugins"`
	}
	if err := json2.Unmarshal(c.ask("describe", "{}"), &said); err != nil {
		t.Fatal(err)
	}
	found := said.Plugins[0].Operations[name]
	return struct{ Input, Output jsontext.Value }{found.Input, found.Output}
}

// A recursive type has a schema whose top says what the object has.
func TestRecursiveTypesAreDescribed(t *testing.T) {
	t.Parallel()
	p := mortise.New("p", "1.0.0")
	mortise.Tool(p, "meet", "Meet.", func(_ *mortise.Call, in Person) (Tree, error) { return Tree{Left: &Tree{}}, nil })
	c := talkTo(t, p)
	op := describedOf(t, c, "meet")
	var top struct {
		Type       string                    `json:"type"`
		Properties map[string]jsontext.Value `json:"properties"`
		Required   []string                  `json:"required"`
		Defs       map[string]jsontext.Value `json:"$defs"`
	}
	if err := json2.Unmarshal(op.Input, &top); err != nil || top.Type != "object" || len(top.Properties) != 5 || len(top.Required) != 2 || top.Defs["Person"] == nil {
		t.Fatalf("%v\n%s", err, op.Input)
	}
	want(t, c.ask("execute", params("meet", `{"name":"a","friends":[{"name":"b","friends":[],"company":{"staff":{}}}]}`)), `{"status":"succeeded","data":{"Left":{"Left":null,"Right":null},"Right":null}}`)
	if got := string(c.ask("execute", params("meet", `{"name":"a","friends":[{"friends":[]}]}`))); !strings.Contains(got, "friends/0/name") {
		t.Errorf("a friend without a name: %s", got)
	}
	if len(protocol.Line(op.Output)) == 0 {
		t.Error("no output schema")
	}
}
