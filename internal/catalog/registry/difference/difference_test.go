package difference_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry/difference"
	"github.com/mortise-dev/mortise/plugin"
)

// full is a manifest in which every member has a value.
func full(t *testing.T) *plugin.Manifest {
	t.Helper()
	m := &plugin.Manifest{Operations: []*plugin.Operation{{}}}
	fill(reflect.ValueOf(m).Elem())
	return m
}

// fill gives a value to whatever v holds.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"type":"object"}`))
		return
	case time.Duration:
		v.SetInt(int64(30 * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		panic("a manifest holds a " + v.Kind().String())
	}
}

// eachMember empties, one after another, every member there is, the innermost
// ones too, and puts it back after visit.
func eachMember(v reflect.Value, path string, visit func(path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		eachMember(v.Elem(), path, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" {
				continue // derived from a member that is compared
			}
			eachMember(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Index(0).Kind() == reflect.Pointer {
			eachMember(v.Index(0), path, visit)
			return
		}
		fallthrough
	default:
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		v.SetZero()
		visit(path)
		v.Set(before)
	}
}

// No member of a manifest, not even one that comes to it later, changes unseen.
func TestNoMemberOfAManifestChangesUnseen(t *testing.T) {
	t.Parallel()
	before, now := full(t), full(t)
	seen := 0
	eachMember(reflect.ValueOf(now).Elem(), "", func(path string) {
		seen++
		d, err := difference.Between(difference.Side{Manifest: before}, difference.Side{Manifest: now})
		if err != nil {
			t.Fatal(err)
		}
		if d.Empty() {
			t.Errorf("%s was emptied and nothing is said of it", path)
		}
		back, err := difference.Between(difference.Side{Manifest: now}, difference.Side{Manifest: before})
		if err != nil || back.Empty() {
			t.Errorf("%s was filled and nothing is said of it: %v", path, err)
		}
	})
	if seen < 30 {
		t.Errorf("only %d members were tried", seen)
	}
	if d, err := difference.Between(difference.Side{Manifest: before}, difference.Side{Manifest: now}); err != nil || !d.Empty() {
		t.Errorf("%+v, %v", d, err)
	}
}

// between compares two schemas of an input.
func between(t *testing.T, before, after string) difference.Difference {
	t.Helper()
	side := func(schema string) difference.Side {
		return difference.Side{Manifest: &plugin.Manifest{Operations: []*plugin.Operation{{Name: "x", Input: json.RawMessage(schema)}}}}
	}
	d, err := difference.Between(side(before), side(after))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func text(d difference.Difference) string {
	var b strings.Builder
	for _, c := range append(append(append(d.May, d.Says...), d.Schemas...), d.Files...) {
		fmt.Fprintf(&b, "%s %s %s>%s\n", c.What, strings.TrimPrefix(c.At, "/operations/x/input"), c.Before, c.After)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestSchemasAreComparedByPointer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, after, want string }{
		{"order of members", `{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{"white space", `{"a":[1,2]}`, `{ "a": [1, 2] }`, ""},
		{"a large number", `{"const":9007199254740993}`, `{"const":9007199254740992}`, "changed /const 9007199254740993>9007199254740992"},
		{"the spelling of a number", `{"maximum":1}`, `{"maximum":1.0}`, "changed /maximum 1>1.0"},
		{"an item", `{"enum":["a","b"]}`, `{"enum":["a","c"]}`, "removed /enum \"b\">\nadded /enum >\"c\""},
		{"the order of items", `{"enum":["a","b"]}`, `{"enum":["b","a"]}`, `changed /enum ["a","b"]>["b","a"]`},
		{"an item twice", `{"enum":["a"]}`, `{"enum":["a","a"]}`, `changed /enum ["a"]>["a","a"]`},
		{"one of several", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `changed /anyOf/1/type "null">"integer"`},
		{"one more", `{"anyOf":[{"type":"string"}]}`, `{"anyOf":[{"type":"string"},{}]}`, `added /anyOf/1 >{}`},
		{"null", `{"default":null}`, `{}`, "removed /default >"},
		{"null for nothing", `{}`, `{"default":null}`, "added /default >"},
		{"another kind of value", `{"items":true}`, `{"items":{"type":"string"}}`, `changed /items true>{"type":"string"}`},
		{"a list for a value", `{"type":"string"}`, `{"type":["string","null"]}`, `changed /type "string">["string","null"]`},
		{"a name with a slash", `{"properties":{"a/b~":{}}}`, `{"properties":{}}`, "removed /properties/a~1b~0 {}>"},
		{"a schema for none", `{}`, `true`, `changed  {}>true`},
	} {
		if got := text(between(t, c.before, c.after)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	if d := between(t, `{"properties":{"description":{"type":"string"}}}`, `{"properties":{"description":{"type":"integer"}}}`); len(d.Says) > 0 || len(d.Schemas) != 1 {
		t.Errorf("the type of a property called description is a text: %+v", d)
	}
	if d := between(t, `{"description":"a"}`, `{"description":"b"}`); len(d.Says) != 1 || len(d.Schemas) > 0 {
		t.Errorf("a description is none: %+v", d)
	}
}

// What it may do comes in the order of how much it matters.
func TestWhatItMayDoComesFirst(t *testing.T) {
	t.Parallel()
	before := &plugin.Manifest{Name: "p", Version: "1.0.0", Isolation: "call", Operations: []*plugin.Operation{{Name: "x", Kind: plugin.Tool}}}
	after := &plugin.Manifest{
		Name: "p", Version: "1.0.1", Isolation: "tenant", Capabilities: []string{"http"}, HTTP: plugin.HTTP{Hosts: []string{"evil.example"}},
		Operations: []*plugin.Operation{{Name: "x", Kind: plugin.Operator, Effects: []string{"db_write"}, Permissions: []string{"all"}}, {Name: "y", Kind: plugin.Tool}},
	}
	d, err := difference.Between(difference.Side{Manifest: before}, difference.Side{Manifest: after})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.May {
		got = append(got, c.At)
	}
	want := "/operations/y /operations/x/effects /capabilities /http/hosts /operations/x/permissions /operations/x/kind /operations/y/kind /isolation /operations/y/timeout /version"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
}

func TestFilesAreComparedByPath(t *testing.T) {
	t.Parallel()
	before := []difference.File{{Path: "same", Hash: "1"}, {Path: "gone", Hash: "2"}, {Path: "content", Hash: "3"}, {Path: "mode", Hash: "4"}}
	after := []difference.File{{Path: "mode", Hash: "4", Executable: true}, {Path: "content", Hash: "5"}, {Path: "come", Hash: "2"}, {Path: "same", Hash: "1"}}
	d, err := difference.Between(difference.Side{Files: before}, difference.Side{Files: after})
	want := "added come >\"2\"\nchanged content \"3\">\"5\"\nremoved gone \"2\">\nchanged mode \"4\">\"4 executable\""
	if err != nil || text(d) != want {
		t.Errorf("got %s, %v\nwant %s", text(d), err, want)
	}
}

func TestTheHashStandsForTheDifference(t *testing.T) {
	t.Parallel()
	one, two, again := between(t, `{}`, `{"a":1}`), between(t, `{}`, `{"a":2}`), between(t, `{}`, `{"a":1}`)
	hash := func(d difference.Difference) string {
		h, err := d.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash(one) == hash(two) || hash(one) != hash(again) {
		t.Error("two differences have one hash, or one has two")
	}
}

func TestWrittenHidesNothing(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"plain text, 漢字 and é":  "plain text, 漢字 and é",
		"Мир":                   "Мир",
		"a\u202eb":              `a\u{202e}b`,
		"zero\u200bwidth\ufeff": `zero\u{200b}width\u{feff}`,
		"tag\U000e0041":         `tag\u{e0041}`,
		"sel\ufe0f\U000e0101":   `sel\u{fe0f}\u{e0101}`,
		"a\u00a0b\u2003c":       `a\u{a0}b\u{2003}c`,
		"line\nbreak\tand\x1b[": `line\nbreak\u{9}and\u{1b}[`,
		"pаypal":                `p\u{430}ypal`,
		"αlpha":                 `\u{3b1}lpha`,
		"filler\u3164\u115f":    `filler\u{3164}\u{115f}`,
		"joined\u034f":          `joined\u{34f}`,
		"broken\xff":            `broken\xff`,
		"\u2028":                `\u{2028}`,
	} {
		if got := difference.Written(given); got != want {
			t.Errorf("%q is written %s, want %s", given, got, want)
		}
	}
}

func TestManyFilesAreCounted(t *testing.T) {
	t.Parallel()
	var files []difference.File
	for i := range difference.MaxFiles + 5 {
		files = append(files, difference.File{Path: fmt.Sprintf("f%04d", i), Hash: "1"})
	}
	d, err := difference.Between(difference.Side{}, difference.Side{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.Write(&b); err != nil || strings.Count(b.String(), "  + f") != difference.MaxFiles || !strings.HasSuffix(b.String(), "\n  and 5 more\n") {
		t.Errorf("%s, %v", b.String(), err)
	}
}
