package script

import (
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
)

var update = flag.Bool("update", false, "write the SDKs' lists of events from the catalogue")

// Plugins that are processes are told at their start of an event that there is
// not, so each SDK has the list.
func TestTheSDKsKnowTheEvents(t *testing.T) {
	t.Parallel()
	const sdk = "../../../sdk/"
	for path, want := range map[string]string{
		"python/mortise/_events.py": pythonEvents(),
		"typescript/src/events.ts":  typescriptEvents(),
		"go/events.go":              goEvents(t),
		"go/payloads.go":            goPayloads(t),
		"python/mortise/events.py":  pythonPayloads(),
	} {
		if *update {
			if err := os.WriteFile(sdk+path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if raw, err := os.ReadFile(sdk + path); err != nil || string(raw) != want {
			t.Errorf("sdk/%s is not what the catalogue says (%v): go test ./internal/runtime/script -run TestTheSDKsKnowTheEvents -update", path, err)
		}
	}
}

// eventLines writes a line for each event: its name and its shape.
func eventLines(b *strings.Builder, indent string) {
	for _, e := range event.Catalogue {
		fmt.Fprintf(b, "%s%q: %q,\n", indent, e.Name, e.Shape)
	}
}

func pythonEvents() string {
	var b strings.Builder
	b.WriteString("# Generated from the catalogue of events (internal/base/event); not edited by hand.\n\"\"\"The events of agents, each with its shape.\"\"\"\n\nfrom __future__ import annotations\n\nEVENTS: dict[str, str] = {\n")
	eventLines(&b, "    ")
	b.WriteString("}\n")
	return b.String()
}

func goEvents(t *testing.T) string {
	var b strings.Builder
	b.WriteString("// Code generated from the catalogue of events (internal/base/event). DO NOT EDIT.\n\npackage mortise\n\n// events are the events of agents, each with its shape.\nvar events = map[string]string{\n")
	eventLines(&b, "\t")
	b.WriteString("}\n")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goPayloads are structs that payloads decode into.
func goPayloads(t *testing.T) string {
	var b strings.Builder
	b.WriteString("// Code generated from the catalogue of events (internal/base/event). DO NOT EDIT.\n\npackage mortise\n\nimport \"github.com/go-json-experiment/json/jsontext\"\n")
	record := func(name, doc string, fields []event.Field) {
		fmt.Fprintf(&b, "\n// %s is %s\ntype %s struct {\n", name, doc, name)
		for _, f := range fields {
			omit := ""
			if f.Optional {
				omit = ",omitzero"
			}
			fmt.Fprintf(&b, "\t%s %s `json:%q` // %s\n", goName(f.Name), goType(f), f.Name+omit, f.Doc)
		}
		b.WriteString("}\n")
	}
	for _, kind := range elementKinds() {
		record(kind.Of, "one of "+kind.Name+": "+kind.Doc+".", kind.Members)
	}
	for _, e := range event.Catalogue {
		record(payloadType(e.Name), "what "+e.Name+" carries, for [Payload.Decode]. "+e.Fires, e.Fields)
	}
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func goName(name string) string {
	name = strings.ToUpper(name[:1]) + name[1:]
	for from, to := range map[string]string{"Id": "ID", "Ms": "MS", "Ok": "OK"} {
		if strings.HasSuffix(name, from) {
			name = strings.TrimSuffix(name, from) + to
		}
	}
	return name
}

func goType(f event.Field) string {
	switch f.Type {
	case "integer":
		return "int64"
	case "boolean":
		return "bool"
	case "object", "any":
		return "jsontext.Value"
	case "array":
		if f.Of != "" {
			return "[]" + f.Of
		}
		return "[]jsontext.Value"
	}
	return "string"
}

// pythonPayloads are TypedDicts, in a module that is loaded by who wants it.
func pythonPayloads() string {
	var b strings.Builder
	b.WriteString("# Generated from the catalogue of events (internal/base/event); not edited by hand.\n\"\"\"What each event carries, as types for hooks.\"\"\"\n\nfrom __future__ import annotations\n\nfrom typing import Any, TypedDict\n")
	record := func(name, doc string, fields []event.Field) {
		var needed, others []event.Field
		for _, f := range fields {
			if f.Optional {
				others = append(others, f)
			} else {
				needed = append(needed, f)
			}
		}
		base := "TypedDict"
		if len(others) > 0 {
			base = "_" + name
			fmt.Fprintf(&b, "\n\nclass %s(TypedDict):\n", base)
			pythonFields(&b, needed)
			fmt.Fprintf(&b, "\n\nclass %s(%s, total=False):\n    \"\"\"%s\"\"\"\n\n", name, base, doc)
			pythonFields(&b, others)
			return
		}
		fmt.Fprintf(&b, "\n\nclass %s(%s):\n    \"\"\"%s\"\"\"\n\n", name, base, doc)
		pythonFields(&b, needed)
	}
	for _, kind := range elementKinds() {
		record(kind.Of, "One of "+kind.Name+": "+kind.Doc+".", kind.Members)
	}
	for _, e := range event.Catalogue {
		record(payloadType(e.Name), e.Name+": "+e.Fires, e.Fields)
	}
	return b.String()
}

func pythonFields(b *strings.Builder, fields []event.Field) {
	types := map[string]string{"string": "str", "time": "str", "integer": "int", "boolean": "bool", "object": "dict[str, Any]", "any": "Any", "array": "list[Any]"}
	for _, f := range fields {
		kind := types[f.Type]
		if f.Of != "" {
			kind = "list[" + f.Of + "]"
		}
		fmt.Fprintf(b, "    %s: %s  # %s\n", f.Name, kind, f.Doc)
	}
}

func typescriptEvents() string {
	var b strings.Builder
	b.WriteString("// Generated from the catalogue of events (internal/base/event); not edited by hand.\n\n/** The events of agents, each with what a hook of it may do. */\nexport const shapes = {\n")
	eventLines(&b, "  ")
	b.WriteString("} as const;\n\n/** What each event carries. */\nexport interface Payloads {\n")
	for _, e := range event.Catalogue {
		fmt.Fprintf(&b, "  readonly %q: %s;\n", e.Name, payloadType(e.Name))
	}
	b.WriteString("}\n")
	writePayloads(&b)
	return b.String()
}
