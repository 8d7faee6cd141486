package router

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePageHasTheRules holds the tables of docs/routing.md against the code.
func TestThePageHasTheRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"its pillar is that of the request": pointsPillar, "the types that it reads: the share that is at hand": pointsArtifact,
		"words of its capabilities in the text": pointsFacet, "words of its name, titles and tags in the text": pointsWords,
	}
	for what, points := range want {
		if !strings.Contains(string(raw), fmt.Sprintf("\n| %s | %v |", what, points)) {
			t.Errorf("the page does not say that %q is worth %v", what, points)
		}
	}
	if rows := regexp.MustCompile(`(?m)^\| .* \| [0-9.]+ \|`).FindAllString(string(raw), -1); len(rows) != len(want) {
		t.Errorf("the page has %d rows of points, the code %d", len(rows), len(want))
	}
	for _, p := range pillars {
		if p.strong != "" && !regexp.MustCompile("`"+p.strong+"` to\\s+`"+p.name+"`").Match(raw) {
			t.Errorf("the page does not say that %s belongs to %s", p.strong, p.name)
		}
	}
}

// TestTables: no term or facet stands in its table twice, and each term is found
// in a text.
func TestTables(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, p := range pillars {
		for _, term := range p.terms {
			if other := seen[term]; other != "" || term != strings.ToLower(term) {
				t.Errorf("%s has %q, as %s has", p.name, term, other)
			}
			seen[term] = p.name
			if name, why := read(Query{Text: strings.ToUpper(term) + " X"}, nil).choosePillar(); !strings.Contains(why, strings.TrimSpace(term)) && name == p.name {
				t.Errorf("%q is not found in itself: %s", term, why)
			}
		}
	}
	names := map[string]bool{}
	for _, f := range facets {
		if names[f.name] {
			t.Errorf("%s stands there twice", f.name)
		}
		names[f.name] = true
		for _, phrase := range f.words {
			if got := read(Query{Text: phrase}, nil).facets; !strings.Contains(" "+strings.Join(got, " ")+" ", " "+f.name+" ") {
				t.Errorf("%q is about %v, not about %s", phrase, got, f.name)
			}
		}
	}
}
