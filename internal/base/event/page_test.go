package event

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/events.md from the catalogue")

// page is where the documentation has the events; what follows generated is
// written from the catalogue.
const (
	page      = "../../../docs/events.md"
	generated = "\n## The catalogue\n"
)

func TestThePageHasTheCatalogue(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(raw), generated)
	if !found {
		t.Fatalf("%s has no heading %q", page, strings.TrimSpace(generated))
	}
	want := before + generated + catalogueText()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is not what the catalogue says: go test ./internal/base/event -run TestThePageHasTheCatalogue -update", page)
	}
}

func catalogueText() string {
	var b strings.Builder
	b.WriteString("\n| event | shape | webhook | fires |\n|---|---|---|---|\n")
	for _, e := range Catalogue {
		link := strings.NewReplacer(".", "", "@", "").Replace(e.Name)
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", e.Name, link, e.Shape, yes(e.Webhook), e.Fires)
	}
	for _, e := range Catalogue {
		fmt.Fprintf(&b, "\n### %s\n\n%s A %s.", e.Name, e.Fires, e.Shape)
		switch {
		case e.Webhook:
			b.WriteString(" Webhooks get it too.")
		case e.HotPath:
			b.WriteString(" It is on the hot path.")
		}
		b.WriteString("\n\n| field | type | is |\n|---|---|---|\n")
		for _, f := range e.Fields {
			writeField(&b, "", f)
		}
		fmt.Fprintf(&b, "\n```json\n%s\n```\n", e.Example)
	}
	return b.String()
}

func writeField(b *strings.Builder, prefix string, f Field) {
	kind := f.Type
	if f.Optional {
		kind += ", may be absent"
	}
	doc := f.Doc
	if len(f.Enum) > 1 {
		doc += ": `" + strings.Join(f.Enum, "`, `") + "`"
	}
	fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, f.Name, kind, strings.ReplaceAll(doc, "<unknown>", "`<unknown>`"))
	for _, inner := range f.Members {
		writeField(b, prefix+f.Name+"[].", inner)
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
