package router

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// TestThePageHasTheRules holds the tables of docs/routing.md against the code.
func TestThePageHasTheRules(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"its pillar is that of the request": pointsPillar, "its pillar is next to it": pointsAdjacent, "it reads an artifact at hand": pointsArtifact,
		"each facet that the request is about": pointsFacet, "it goes on with what ran last": pointsChain,
		"a model may use it without a person": pointsAuto, "it may take more than 30 s": haste(31 * time.Second), "it may take more than 120 s": haste(time.Hour),
		"moderate cost": costs["moderate"], "high cost": costs["high"],
	}
	for stability, points := range stabilities {
		want[string(stability)] = points
	}
	for what, points := range want {
		if !strings.Contains(string(raw), fmt.Sprintf("\n| %s | %d |\n", what, points)) {
			t.Errorf("the page does not say that %q is worth %d", what, points)
		}
	}
	if rows := regexp.MustCompile(`(?m)^\| .* \| -?\d+ \|$`).FindAllString(string(raw), -1); len(rows) != len(want) {
		t.Errorf("the page has %d rows of points, the code %d", len(rows), len(want))
	}
	for _, p := range pillars {
		if row := fmt.Sprintf("| `%s` | `%s` |", p.name, strings.Join(p.adjacent, "`, `")); !strings.Contains(string(raw), row) {
			t.Errorf("the page has no row %s", row)
		}
		if p.strong != "" && !regexp.MustCompile("`"+p.strong+"` to\\s+`"+p.name+"`").Match(raw) {
			t.Errorf("the page does not say that %s belongs to %s", p.strong, p.name)
		}
	}
	if stabilities[plugin.Experimental] != 0 {
		t.Errorf("what is experimental has points: %d", stabilities[plugin.Experimental])
	}
}

// TestTables: each pillar is next to others both ways, and no phrase or facet
// stands in its table twice.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, p := range pillars {
		for _, other := range p.adjacent {
			if !adjacent(other, p.name) || other == p.name {
				t.Errorf("%s is next to %s, and not the other way round", p.name, other)
			}
		}
		seen := map[string]bool{}
		for _, phrase := range p.words {
			if seen[wordsOf(phrase)] || wordsOf(phrase) == " " {
				t.Errorf("%s has %q twice", p.name, phrase)
			}
			seen[wordsOf(phrase)] = true
			r := read(Query{Text: strings.ToUpper(phrase)}, nil)
			if !r.says(phrase) {
				t.Errorf("%q is not found in itself", phrase)
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
