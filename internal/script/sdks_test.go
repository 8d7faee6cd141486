package script

import (
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/event"
)

var update = flag.Bool("update", false, "write the SDKs' lists of events from the catalogue")

// Plugins that are processes are told at their start of an event that there is
// not, so each SDK has the list.
func TestTheSDKsKnowTheEvents(t *testing.T) {
	t.Parallel()
	const sdk = "../../sdk/"
	for path, want := range map[string]string{
		"python/mortise/_events.py": pythonEvents(),
		"typescript/src/events.ts":  typescriptEvents(),
		"go/events.go":              goEvents(t),
	} {
		if *update {
			if err := os.WriteFile(sdk+path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if raw, err := os.ReadFile(sdk + path); err != nil || string(raw) != want {
			t.Errorf("sdk/%s is not what the catalogue says (%v): go test ./internal/script -run TestTheSDKsKnowTheEvents -update", path, err)
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
	b.WriteString("# Generated from the catalogue of events (internal/event); not edited by hand.\n\"\"\"The events of agents, each with its shape.\"\"\"\n\nfrom __future__ import annotations\n\nEVENTS: dict[str, str] = {\n")
	eventLines(&b, "    ")
	b.WriteString("}\n")
	return b.String()
}

func goEvents(t *testing.T) string {
	var b strings.Builder
	b.WriteString("// Code generated from the catalogue of events (internal/event). DO NOT EDIT.\n\npackage mortise\n\n// events are the events of agents, each with its shape.\nvar events = map[string]string{\n")
	eventLines(&b, "\t")
	b.WriteString("}\n")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func typescriptEvents() string {
	var b strings.Builder
	b.WriteString("// Generated from the catalogue of events (internal/event); not edited by hand.\n\n/** The events of agents, each with what a hook of it may do. */\nexport const shapes = {\n")
	eventLines(&b, "  ")
	b.WriteString("} as const;\n\n/** What each event carries. */\nexport interface Payloads {\n")
	for _, e := range event.Catalogue {
		fmt.Fprintf(&b, "  readonly %q: %s;\n", e.Name, payloadType(e.Name))
	}
	b.WriteString("}\n")
	writePayloads(&b)
	return b.String()
}
