package kb_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// TestConditionsOfPublishedHosts: which fields there are, which operators each
// has, and which values; the first that is wrong is named.
func TestConditionsOfPublishedHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of              kb.Fields
		field, operator string
		value, code     string
	}{
		{kb.OfChunks, "content", "eq", `"a"`, ""}, {kb.OfChunks, "summary", "icontains", `"a"`, ""}, {kb.OfChunks, "topics", "has_any", `["a"]`, ""},
		{kb.OfDocuments, "title", "contains", `"a"`, ""}, {kb.OfDocuments, "content", "eq", `"a"`, ""}, {kb.OfDocuments, "synopsis", "eq", `"a"`, ""},
		{kb.OfDocuments, "capability_manifest", "path_contains", `{"path":"a.b","value":1}`, ""}, {kb.OfDocuments, "capability_manifest", "has_key", `"a"`, ""},
		{kb.OfChunks, "keywords", "odd", `1`, "invalid_field"}, {kb.OfChunks, "title", "eq", `"a"`, "invalid_field"}, {kb.OfDocuments, "topics", "has_any", `["a"]`, "invalid_field"},
		{kb.OfChunks, "content", "has_any", `1`, "invalid_operator"}, {kb.OfChunks, "topics", "eq", `1`, "invalid_operator"}, {kb.OfDocuments, "capability_manifest", "has_any", `1`, "invalid_operator"},
		{kb.OfChunks, "content", "eq", `1`, "invalid_value"}, {kb.OfChunks, "topics", "contains", `"a"`, "invalid_value"}, {kb.OfChunks, "topics", "has_any", `"a"`, "invalid_value"},
		{kb.OfDocuments, "capability_manifest", "contains", `["a"]`, "invalid_value"}, {kb.OfDocuments, "capability_manifest", "path_contains", `{"path":"a"}`, "invalid_value"},
	} {
		if _, code, err := c.of.Condition(c.field, c.operator, json.RawMessage(c.value)); code != c.code || (err != nil) != (code != "") {
			t.Errorf("%s %s %s %s: %q, %v", c.of, c.field, c.operator, c.value, code, err)
		}
	}
}

// TestFindingByAField: what meets a condition is found, in the order of the field,
// twenty at a time.
func TestFindingByAField(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	for n := range 25 {
		s := text(fmt.Sprintf("s%02d", n), fmt.Sprintf("Lamp %02d at 100%% in room_4", n))
		s.Title, s.Attributes = fmt.Sprintf("Lamp %02d", n), map[string]any{"topics": []any{"lamps", fmt.Sprint("n", n)}, "synopsis": "a lamp",
			"capability_manifest": map[string]any{"does": map[string]any{"light": []any{"dim", n}}}}
		ingest(t, b, s)
	}
	bases, err := b.Named(t.Context(), "t", []string{"notes"})
	if err != nil {
		t.Fatal(err)
	}
	find := func(of kb.Fields, field, operator, value string, page int, down bool) (kb.Found, []string) {
		t.Helper()
		c, _, err := of.Condition(field, operator, json.RawMessage(value))
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := b.Find(t.Context(), "t", kb.Finding{Bases: bases, Condition: c, Page: page, Descending: down})
		if err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, one := range found.Results {
			if d, isDocument := one.(kb.DocumentFound); isDocument {
				titles = append(titles, d.Title)
			}
		}
		return found, titles
	}
	for _, c := range []struct {
		of                     kb.Fields
		field, operator, value string
		total                  int
	}{
		{kb.OfDocuments, "title", "eq", `"Lamp 07"`, 1}, {kb.OfDocuments, "title", "eq", `"lamp 07"`, 0}, {kb.OfDocuments, "title", "contains", `"lamp"`, 0},
		{kb.OfDocuments, "title", "icontains", `"lamp 0"`, 10}, {kb.OfDocuments, "content", "contains", `"L%room"`, 25}, {kb.OfDocuments, "content", "contains", `"Lamp _7"`, 2},
		{kb.OfDocuments, "synopsis", "eq", `"a lamp"`, 25}, {kb.OfChunks, "summary", "contains", `""`, 0},
		{kb.OfChunks, "topics", "has_key", `"n3"`, 1}, {kb.OfChunks, "topics", "has_any", `["n3","n4","x"]`, 2}, {kb.OfChunks, "topics", "contains", `["lamps","n5"]`, 1},
		{kb.OfDocuments, "capability_manifest", "has_key", `"does"`, 25}, {kb.OfDocuments, "capability_manifest", "contains", `{"does":{"light":[3]}}`, 1},
		{kb.OfDocuments, "capability_manifest", "path_contains", `{"path":"does.light","value":["dim"]}`, 25}, {kb.OfDocuments, "capability_manifest", "path_contains", `{"path":["does","sound"],"value":1}`, 0},
	} {
		if found, _ := find(c.of, c.field, c.operator, c.value, 1, false); found.Total != c.total || len(found.Results) != min(c.total, 20) || found.Size != 20 {
			t.Errorf("%s %s %s: %d found, not %d", c.field, c.operator, c.value, found.Total, c.total)
		}
	}
	first, titles := find(kb.OfDocuments, "title", "contains", `"Lamp"`, -3, false)
	if first.Page != 1 || titles[0] != "Lamp 00" || !slices.IsSorted(titles) {
		t.Errorf("page %d has %q", first.Page, titles)
	}
	if second, titles := find(kb.OfDocuments, "title", "contains", `"Lamp"`, 2, true); second.Total != 25 || len(titles) != 5 || titles[0] != "Lamp 04" || titles[4] != "Lamp 00" {
		t.Errorf("page %d downwards has %q of %d", second.Page, titles, second.Total)
	}
	if third, _ := find(kb.OfDocuments, "title", "contains", `"Lamp"`, 9, false); len(third.Results) != 0 || third.Total != 25 {
		t.Errorf("a page that there is not: %+v", third)
	}
}

// A pattern of 4,000 bytes that nearly fits everywhere is given up, and a search ends with the
// call that asked for it.
func TestASearchForACostlyPatternIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ingest(t, b, text("s", strings.Repeat("a", 1<<20)))
	bases, err := b.Named(t.Context(), "t", []string{"notes"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := kb.OfDocuments.Condition("content", "contains", json.RawMessage(`"`+strings.Repeat("a", 4000)+`_b"`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Find(t.Context(), "t", kb.Finding{Bases: bases, Condition: c}); plugin.CodeOf(err) != plugin.CodeLimitExceeded || !strings.Contains(err.Error(), "fewer wildcards") {
		t.Errorf("%v; want limit_exceeded", err)
	}
}
