package plan_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestAPlanIsFoundByAnyPartOfItsID that no other plan's id has: the beginnings of
// plans of one day are alike.
func TestAPlanIsFoundByAnyPartOfItsID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	step := func(line string) proposed {
		return proposed{"step_id": "s1", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": line}}
	}
	one, two := r.must(t, "", proposal(t, nil, step("one"))), r.must(t, "", proposal(t, nil, step("two")))
	for _, part := range []string{one.ID, one.ID[24:], one.ID[len(one.ID)-6:], one.ID[20:32]} {
		if v, err := r.Show(t.Context(), "local", part); err != nil || v.ID != one.ID {
			t.Errorf("%s: %v, %v; it is part of %s", part, v, err, one.ID)
		}
	}
	shared := one.ID[:4]
	if _, err := r.Show(t.Context(), "local", shared); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), one.ID) || !strings.Contains(err.Error(), two.ID) {
		t.Errorf("%s: %v", shared, err)
	}
	for _, part := range []string{"zzzz", one.ID[:3], "%", ""} {
		if _, err := r.Show(t.Context(), "local", part); plugin.CodeOf(err) != plugin.CodeNotFound {
			t.Errorf("%q: %v", part, err)
		}
	}
	if _, err := r.Show(t.Context(), "elsewhere", one.ID[24:]); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("another tenant: %v", err)
	}
}
