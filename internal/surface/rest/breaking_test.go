package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// releasedFile is docs/openapi.json as the last release has it. A release copies it there.
const releasedFile = "testdata/openapi-released.json"

// A client that was written for the last release works with this document.
func TestNothingBreaksClientsOfTheLastRelease(t *testing.T) {
	t.Parallel()
	released, err := os.ReadFile(releasedFile)
	if err != nil {
		t.Fatal(err)
	}
	breaks, err := breaking(released, rest.Document())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaks {
		t.Error(b)
	}
}

type object = map[string]any

// A comparison of two documents holds what breaks clients of the first.
type comparison struct {
	was, is object
	breaks  []string
	seen    map[string]bool // pairs of schemas that are or were compared
}

// breaking returns what in a document breaks clients of an earlier one, in words.
func breaking(was, is []byte) ([]string, error) {
	c := &comparison{seen: map[string]bool{}}
	if err := json.Unmarshal(was, &c.was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(is, &c.is); err != nil {
		return nil, err
	}
	paths, now := in(c.was, "paths"), in(c.is, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range slices.Sorted(maps.Keys(in(paths, path))) {
			at := strings.ToUpper(method) + " " + path
			if _, there := in(now, path)[method]; !there {
				c.say(at, "is gone")
				continue
			}
			c.route(at, in(paths, path, method), in(now, path, method))
		}
	}
	return c.breaks, nil
}

func (c *comparison) say(at, format string, args ...any) {
	c.breaks = append(c.breaks, at+" "+fmt.Sprintf(format, args...))
}

// in returns an object inside another, nil where there is none.
func in(o object, names ...string) object {
	for _, name := range names {
		o, _ = o[name].(object)
	}
	return o
}

func list(o object, name string) []any { all, _ := o[name].([]any); return all }

func (c *comparison) route(at string, was, is object) {
	if was["x-scope"] != is["x-scope"] && is["x-scope"] != "any" {
		c.say(at, "needs the scope %v, and not %v", is["x-scope"], was["x-scope"])
	}
	given := parameters(was)
	for name, p := range parameters(is) {
		before, known := given[name]
		if p["required"] == true && before["required"] != true {
			c.say(at, "needs the parameter %s", name)
		}
		if known {
			c.schema(at+" "+name, in(before, "schema"), in(p, "schema"), false)
		}
		delete(given, name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		c.say(at, "has no parameter %s", name)
	}
	body, now := in(was, "requestBody"), in(is, "requestBody")
	if now["required"] == true && body["required"] != true {
		c.say(at, "needs a body")
	}
	c.contents(at+" body", in(body, "content"), in(now, "content"), false)
	answers := in(was, "responses")
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		to := at + " " + status
		now, there := in(is, "responses")[status].(object)
		if !there {
			c.say(to, "is gone")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(in(answers, status, "headers"))) {
			if in(now, "headers")[name] == nil {
				c.say(to, "has no header %s", name)
			}
		}
		c.contents(to, in(answers, status, "content"), in(now, "content"), true)
	}
}

func parameters(route object) map[string]object {
	all := map[string]object{}
	for _, p := range list(route, "parameters") {
		p := p.(object)
		all[fmt.Sprint(p["in"], " ", p["name"])] = p
	}
	return all
}

func (c *comparison) contents(at string, was, is object, answer bool) {
	for _, kind := range slices.Sorted(maps.Keys(was)) {
		if is[kind] == nil {
			c.say(at, "is not %s any more", kind)
			continue
		}
		c.schema(at, in(was, kind, "schema"), in(is, kind, "schema"), answer)
	}
}

// resolved follows the reference of a schema into its document.
func resolved(doc, schema object) (object, string) {
	ref, _ := schema["$ref"].(string)
	if ref == "" {
		return schema, ""
	}
	return in(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), ref
}

// schema compares what is answered, which must not become more, or what is asked, which
// must not become less.
func (c *comparison) schema(at string, was, is object, answer bool) {
	was, from := resolved(c.was, was)
	is, to := resolved(c.is, is)
	if from != "" {
		pair := fmt.Sprint(from, to, answer)
		if c.seen[pair] {
			return
		}
		c.seen[pair] = true
	}
	c.types(at, was, is, answer)
	c.values(at, was, is, answer)
	if !answer {
		c.bounds(at, was, is)
	}
	for _, name := range slices.Sorted(maps.Keys(in(was, "properties"))) {
		property, there := in(is, "properties")[name].(object)
		if !there {
			if answer || is["additionalProperties"] == false {
				c.say(at+"/"+name, "is gone")
			}
			continue
		}
		c.schema(at+"/"+name, in(was, "properties", name), property, answer)
	}
	first, second := list(was, "required"), list(is, "required")
	if answer {
		first, second = second, first
	}
	for _, name := range second { // what is needed now, or was there always
		if !slices.Contains(first, name) && (!answer || in(is, "properties")[name.(string)] != nil) {
			c.say(fmt.Sprint(at, "/", name), "%s", map[bool]string{true: "may be left out", false: "is needed"}[answer])
		}
	}
	c.schemasBelow(at, was, is, answer)
}

func (c *comparison) schemasBelow(at string, was, is object, answer bool) {
	if in(was, "items") != nil && in(is, "items") != nil {
		c.schema(at+"/*", in(was, "items"), in(is, "items"), answer)
	}
	if in(was, "additionalProperties") != nil && in(is, "additionalProperties") != nil {
		c.schema(at+"/*", in(was, "additionalProperties"), in(is, "additionalProperties"), answer)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "const", "contentEncoding"} {
		if !reflect.DeepEqual(was[word], is[word]) {
			c.say(at, "has another %s", word)
		}
	}
}

// typesOf returns the types of a schema, nil for all.
func typesOf(schema object) []string {
	if one, ok := schema["type"].(string); ok {
		return []string{one}
	}
	var all []string
	for _, one := range list(schema, "type") {
		all = append(all, one.(string))
	}
	return all
}

func (c *comparison) types(at string, was, is object, answer bool) {
	narrow, wide := typesOf(was), typesOf(is)
	if answer {
		narrow, wide = wide, narrow
	}
	if wide == nil {
		return
	}
	fits := func(one string) bool {
		return slices.Contains(wide, one) || one == "integer" && slices.Contains(wide, "number")
	}
	if narrow == nil || slices.ContainsFunc(narrow, func(one string) bool { return !fits(one) }) {
		c.say(at, "is of type %v, and was %v", typesOf(is), typesOf(was))
	}
}

// values compares enums: an answer has no value that is unknown to a client, and no value
// of a request is refused that was taken.
func (c *comparison) values(at string, was, is object, answer bool) {
	narrow, wide := list(was, "enum"), list(is, "enum")
	if answer {
		narrow, wide = wide, narrow
	}
	if wide == nil {
		return
	}
	if narrow == nil {
		c.say(at, "has the values %v, and had %v", is["enum"], was["enum"])
		return
	}
	for _, value := range narrow {
		if !slices.Contains(wide, value) {
			c.say(at, map[bool]string{true: "may be %v", false: "is not %v any more"}[answer], value)
		}
	}
}

// bounds compares what a request is held to.
func (c *comparison) bounds(at string, was, is object) {
	for _, word := range []string{"maxLength", "maximum", "maxItems", "minLength", "minimum", "minItems"} {
		before, bounded := was[word].(float64)
		now, binds := is[word].(float64)
		if binds && (!bounded || strings.HasPrefix(word, "max") && now < before || strings.HasPrefix(word, "min") && now > before) {
			c.say(at, "has %s %v", word, now)
		}
	}
	for _, word := range []string{"pattern", "format"} {
		if is[word] != nil && was[word] != is[word] {
			c.say(at, "has the %s %v", word, is[word])
		}
	}
}

// small is a document with one route.
const small = `{"paths": {"/things/{id}": {"put": {"x-scope": "read",
	"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string", "maxLength": 64}}, {"name": "size", "in": "query", "schema": {"type": "integer"}}],
	"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}},
	"responses": {"200": {"headers": {"ETag": {}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}, "default": {}}}}},
	"components": {"schemas": {
		"Change": {"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}, "kind": {"type": "string", "enum": ["a", "b"]}}, "required": ["name"]},
		"Thing": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}, "kind": {"type": "string", "enum": ["a", "b"]},
			"inner": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}}, "required": ["id"]}}}}`

// Each change that breaks a client is named, and those that do not are not.
func TestWhatBreaksAClientIsNamed(t *testing.T) {
	t.Parallel()
	const route = "PUT /things/{id}"
	for _, c := range []struct{ old, new, want string }{
		{`"/things/{id}"`, `"/things/{key}"`, route + " is gone"},
		{`"put"`, `"patch"`, route + " is gone"},
		{`"x-scope": "read"`, `"x-scope": "admin"`, route + " needs the scope admin, and not read"},
		{`{"name": "size", "in": "query", "schema": {"type": "integer"}}`, `{"name": "count", "in": "query", "schema": {"type": "integer"}}`, route + " has no parameter query size"},
		{`"in": "query", "schema"`, `"in": "query", "required": true, "schema"`, route + " needs the parameter query size"},
		{`"maxLength": 64`, `"maxLength": 32`, route + " path id has maxLength 32"},
		{`"requestBody": {`, `"requestBody": {"required": true, `, route + " needs a body"},
		{`"name": {"type": "string"}, `, ``, route + " body/name is gone"},
		{`"name": {"type": "string"}, `, `"name": {"type": "integer"}, `, route + " body/name is of type [integer], and was [string]"},
		{`"enum": ["a", "b"]}}, "required": ["name"]`, `"enum": ["a"]}}, "required": ["name"]`, route + " body/kind is not b any more"},
		{`"required": ["name"]`, `"required": ["name", "kind"]`, route + " body/kind is needed"},
		{`"headers": {"ETag": {}}`, `"headers": {}`, route + " 200 has no header ETag"},
		{`, "default": {}`, ``, route + " default is gone"},
		{`"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}`, `"text/plain": {"schema": {"$ref": "#/components/schemas/Thing"}}`, route + " 200 is not application/json any more"},
		{`"n": {"type": "integer"}, `, ``, route + " 200/n is gone"},
		{`"n": {"type": "integer"}`, `"n": {"type": ["integer", "null"]}`, route + " 200/n is of type [integer null], and was [integer]"},
		{`"n": {"type": "integer"}`, `"n": {}`, route + " 200/n is of type [], and was [integer]"},
		{`"enum": ["a", "b"]},
			"inner"`, `"enum": ["a", "b", "c"]},
			"inner"`, route + " 200/kind may be c"},
		{`"required": ["id"]`, `"required": []`, route + " 200/id may be left out"},
		{`"items": {"$ref": "#/components/schemas/Thing"}`, `"items": {"type": "string"}`, route + " 200/inner/* is of type [string], and was [object]"},
		// What a client of before does not notice.
		{`"x-scope": "read"`, `"x-scope": "any"`, ""},
		{`"maxLength": 64`, `"maxLength": 128`, ""},
		{`"n": {"type": "integer"}`, `"n": {"type": "integer"}, "more": {"type": "string"}`, ""},
		{`"name": {"type": "string"}`, `"name": {"type": ["string", "null"]}, "more": {"type": "string"}`, ""},
		{`"required": ["name"]`, `"required": []`, ""},
		{`"required": ["id"]`, `"required": ["id", "n"]`, ""},
		{`"default": {}`, `"default": {}, "202": {}`, ""},
		{`"paths": {`, `"paths": {"/more": {"get": {}}, `, ""},
	} {
		changed := strings.Replace(small, c.old, c.new, 1)
		if changed == small {
			t.Fatalf("%s is not there", c.old)
		}
		breaks, err := breaking([]byte(small), []byte(changed))
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(breaks) > 0 || c.want != "" && !slices.Contains(breaks, c.want) {
			t.Errorf("%s in place of %s: %q, want %q", c.new, c.old, breaks, c.want)
		}
	}
}
