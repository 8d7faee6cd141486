package session_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/session"
)

func TestLineage(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	made := map[string]session.Artifact{}
	for _, step := range []struct {
		name    string
		parents []string
	}{
		{"capture", nil}, {"other", nil}, {"flows", []string{"capture"}}, {"unrelated", []string{"other"}},
		{"report", []string{"flows", "other"}}, {"page", []string{"report", "capture"}},
	} {
		a := session.Add{Name: step.name}
		for _, parent := range step.parents {
			a.Parents = append(a.Parents, made[parent].ID)
		}
		made[step.name] = b.add(t, s, step.name, a)
	}
	all, err := b.Artifacts(t.Context(), "t", s.ID)
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []session.Artifact) (names []string) {
		for _, a := range list {
			names = append(names, a.Name)
		}
		return names
	}
	for name, want := range map[string][2][]string{
		"capture": {nil, {"flows", "report", "page"}},
		"flows":   {{"capture"}, {"report", "page"}},
		"report":  {{"capture", "other", "flows"}, {"page"}},
		"page":    {{"capture", "other", "flows", "report"}, nil},
	} {
		above, below := session.Lineage(all, made[name].ID)
		if !slices.Equal(names(above), want[0]) || !slices.Equal(names(below), want[1]) {
			t.Errorf("%s: from %v, and %v from it, want %v", name, names(above), names(below), want)
		}
	}
}
