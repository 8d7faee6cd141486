package llm

import "testing"

// A dispatcher that adopts another asks its models from then on, and one that was narrowed
// to one model before stays as it was.
func TestADispatcherAdoptsOtherModels(t *testing.T) {
	t.Parallel()
	d := New(Options{Models: []Model{{Name: "one", Tier: Light}}, Allow: []string{"a"}, PerMinute: 3})
	only, found := d.Only("one")
	if !found {
		t.Fatal("there is no model one")
	}
	if wait := d.current().pace.take("t"); wait != nil {
		t.Fatal(wait)
	}
	d.Adopt(New(Options{Models: []Model{{Name: "two", Tier: Heavy}}, Allow: []string{"b"}, PerMinute: 3}))
	if models := d.Models(); len(models) != 1 || models[0].Name != "two" || d.Enabled("a") || !d.Enabled("b") {
		t.Errorf("it has %v, a %v, b %v", models, d.Enabled("a"), d.Enabled("b"))
	}
	if models := only.Models(); len(models) != 1 || models[0].Name != "one" {
		t.Errorf("what was narrowed before has %v", models)
	}
	for range 2 {
		if late := d.current().pace.take("t"); late != nil {
			t.Fatal(late)
		}
	}
	if d.current().pace.take("t") == nil {
		t.Error("queries of this minute were forgotten")
	}
	d.Adopt(New(Options{PerMinute: 1}))
	if len(d.Models()) != 0 || d.current().pace.take("t") != nil {
		t.Error("another pace is not in force")
	}
}
