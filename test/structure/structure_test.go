package main

import "testing"

// TestTheStructureIsNoWorseThanItWas holds each measure to its goal, or to what was
// reached on the way there.
func TestTheStructureIsNoWorseThanItWas(t *testing.T) {
	t.Parallel()
	all, err := Measure("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if !m.Holds() {
			t.Errorf("%s: %d, where it was %d; the goal is %s", m.Name, m.Now, m.Held, m.Goal())
		}
	}
	if len(all) < 9 || all[4].Now == 0 || all[2].Now == 0 {
		t.Errorf("the tree was not read: %+v", all)
	}
}
