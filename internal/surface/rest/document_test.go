package rest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const documentFile = "../../../docs/openapi.json"

//go:generate go test . -run TestTheDocument -update

// The document that is served is the one in docs; it is valid, and says of each route
// what a client has to know.
func TestTheDocument(t *testing.T) {
	t.Parallel()
	text := rest.Document()
	if *update {
		if err := os.WriteFile(documentFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(documentFile); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("docs/openapi.json is not what is served: go generate ./internal/surface/rest (%v)", err)
	}
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			ID         string                     `json:"operationId"`
			Summary    string                     `json:"summary"`
			Responses  map[string]json.RawMessage `json:"responses"`
			Parameters []struct {
				Name   string `json:"name"`
				In     string `json:"in"`
				Schema any    `json:"schema"`
			} `json:"parameters"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
		Security []map[string][]string `json:"security"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || len(doc.Security) != 1 {
		t.Errorf("it is of version %s, with the security %v", doc.OpenAPI, doc.Security)
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if ids[op.ID] || op.ID == "" || op.Summary == "" {
				t.Errorf("%s %s has the id %q and the summary %q", method, path, op.ID, op.Summary)
			}
			ids[op.ID] = true
			if !strings.Contains(string(op.Responses["default"]), "application/problem+json") || op.Responses["200"] == nil {
				t.Errorf("%s %s answers %v", method, path, slices.Collect(maps.Keys(op.Responses)))
			}
			for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				found := false
				for _, p := range op.Parameters {
					found = found || p.In == "path" && p.Name == name[1]
				}
				if !found {
					t.Errorf("%s %s does not describe %s", method, path, name[1])
				}
			}
		}
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(text, -1) {
		if doc.Components.Schemas[string(ref[1])] == nil {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Components.Schemas {
		if _, err := compiler.Compile("mem:///openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
		if !strings.Contains(string(text), `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing has the schema %s", name)
		}
	}
}

// What is answered is what the document says.
func TestAnswersAreAsDocumented(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	b.is(b.execute("mrt_ann", "line", "one"), 200, "succeeded")
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(rest.Document()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	paths := whole.(map[string]any)["paths"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		method, path, _ := strings.Cut(name, " ")
		row := rows[name]
		where := row.path
		if where == "" {
			where = path
		}
		token := "mrt_ann"
		if row.by != "" {
			token = row.by
		}
		for thing, id := range things {
			where, token = strings.ReplaceAll(where, "{"+thing+"}", id), strings.ReplaceAll(token, "{"+thing+"}", id)
		}
		body := fill(row.body, things)
		a := b.ask(token, method, where, body)
		if row.owner != 200 {
			continue
		}
		refused := b.ask("", method, where, body)
		for status, is := range map[string]answer{"200": a, "default": refused} {
			kind, _, _ := strings.Cut(is.header.Get("Content-Type"), ";")
			at := paths[path].(map[string]any)[strings.ToLower(method)].(map[string]any)["responses"].(map[string]any)[status].(map[string]any)["content"].(map[string]any)[kind]
			if at == nil {
				t.Errorf("%s answers with %s, which is not in the document", name, kind)
				continue
			}
			if kind == "application/octet-stream" || kind == "application/openapi+json" {
				continue
			}
			place := "mem:///openapi.json#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/" + strings.ToLower(method) +
				"/responses/" + status + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema"
			schema, err := compiler.Compile(place)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(is.text))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				t.Errorf("%s answers %s: %v", name, is, err)
			}
		}
	}
}
