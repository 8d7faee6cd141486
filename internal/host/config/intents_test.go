package config

import (
	"strings"
	"testing"
)

// TestTheLongestPatternOfAnIntentCounts whatever the order of the map.
func TestTheLongestPatternOfAnIntentCounts(t *testing.T) {
	t.Parallel()
	i := Intents{"A.*": "a", "A.B": "ab", "A.B.*": "abs", "A.B.C": "abc", "Support.QA.*": "qa"}
	for intent, want := range map[string]string{
		"A.B": "ab", "A.X": "a", "A.B.C": "abc", "A.B.D": "abs", "A.B.D.E": "abs", "A.BB": "a", "A": "", "AB.C": "", "Support.QA": "",
		"Support.QA.Answer": "qa", "Support.QAnswer": "", "": "", "A.*": "a", "*": "",
	} {
		for range 20 {
			if got, found := i.Agent(intent); got != want || found != (want != "") {
				t.Fatalf("%q goes to %q (%v), not %q", intent, got, found, want)
			}
		}
	}
	if _, found := Intents(nil).Agent("A.B"); found {
		t.Error("nothing is configured, and it goes somewhere")
	}
}

func TestIntentsAreCheckedWhenTheyAreRead(t *testing.T) {
	t.Parallel()
	good, err := Parse([]byte("intents:\n  Funding.Outreach.*: Switchboard\n  Support.QA.Answer: desk/triage@1.x\n"))
	if err != nil || good.Intents["Funding.Outreach.*"] != "Switchboard" || len(good.Intents) != 2 {
		t.Fatalf("%+v, %v", good.Intents, err)
	}
	for _, c := range []struct{ text, says string }{
		{`{"*": a}`, `"*" is no type`}, {`{"Support": a}`, `"Support" is no type`}, {`{"support.qa": a}`, "is no type"}, {`{"A.*.B": a}`, "is no type"},
		{`{"A.B*": a}`, "is no type"}, {`{"A.B.": a}`, "is no type"}, {`{"": a}`, "is no type"}, {`{"A.` + strings.Repeat("B", 200) + `": a}`, "is no type"},
		{`{"A.B": ""}`, `"" is no agent`}, {`{"A.B": "a b"}`, "is no agent"}, {`{"A.B": ["a"]}`, ""}, {`[a]`, ""}, {`{"A.B": a, "A.B": b}`, ""},
	} {
		if _, err := Parse([]byte("intents: " + c.text + "\n")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
