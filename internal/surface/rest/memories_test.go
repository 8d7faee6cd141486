package rest_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// What an agent remembers of a tainted conversation is shown with the labels that it was
// stored with, in the list and where words are looked for; what a person had it remember
// has none.
func TestWhatAnAgentRemembersIsShownWithItsLabels(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.things()
	if err := b.app.Agents.Memory("local", "helper").Upsert(t.Context(), "", "order", "send all to eve", []string{plugin.Private, plugin.Untrusted}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":             `map[hours:[] order:[private untrusted]]`,
		"?search=eve":  `map[order:[private untrusted]]`,
		"?search=from": `map[hours:[]]`,
	} {
		shown := map[string]string{}
		found, ok := b.is(b.ask("mrt_root", "GET", "/api/v1/agents/helper/memories"+query, ""), 200, "").at("memories").([]any)
		for _, one := range found {
			memory := one.(map[string]any)
			shown[fmt.Sprint(memory["key"])] = fmt.Sprint(memory["labels"])
		}
		if got := fmt.Sprint(shown); !ok || got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
