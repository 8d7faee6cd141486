package app_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/plugin"
)

// A model is offered the operations that resolve for the principal in the
// conversation, and no others. The agent's administrators see each operation
// that is left out, with the reason.
func TestWhatIsOfferedResolvesAndTheRestIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		left   []string // operations
	}{
		"tools alone":       {"\npolicy:\n  configure: [\"local:owner\"]\n", []string{"agent.memory/upsert"}},
		"nothing":           {"\npolicy:\n  default: none\n  configure: [\"local:owner\"]\n  allow:\n    - {operations: [nothing/at-all]}\n", []string{"agent.memory/search", "agent.memory/upsert", "orders/find"}},
		"all of it":         {agentPolicy, nil},
		"not for the agent": {"\npolicy:\n  default: none\n  configure: [\"local:owner\"]\n  allow:\n    - {kinds: [tool], principals: [ann]}\n", []string{"agent.memory/search", "agent.memory/upsert", "orders/find"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newTalker(t)
			a := open(t, modelHome(t, model.URL, c.policy))
			var log bytes.Buffer
			a.Agents.Log = slog.New(slog.NewTextHandler(&log, nil))
			hire(t, a, "desk", agent.Settings{})
			give(t, a, "desk", "orders", lookup)
			for range 2 {
				model.say(move{text: "done"})
				if _, err := talk(t, a, "desk", "find an order, and remember"); err != nil {
					t.Fatal(err)
				}
			}
			for _, tool := range []string{"orders/find", "agent.memory/search", "agent.memory/upsert"} {
				offered := strings.Contains(model.heard()[0], strings.NewReplacer(".", "_", "/", "__").Replace(tool))
				if offered == slices.Contains(c.left, tool) {
					t.Errorf("%s is offered: %t", tool, offered)
				}
				if n := strings.Count(log.String(), "operation="+tool); n != map[bool]int{true: 0, false: 1}[offered] {
					t.Errorf("the log says %d times that %s is left out:\n%s", n, tool, log.String())
				}
				if !offered {
					continue
				}
				u := use(t, a, model, "desk", strings.NewReplacer(".", "_", "/", "__").Replace(tool), map[string]string{"orders/find": `{"customer":"ann"}`,
					"agent.memory/search": `{"query":"x"}`, "agent.memory/upsert": `{"key":"k","content":"c"}`}[tool])
				if u.Code == plugin.CodeNotFound {
					t.Errorf("%s was offered, and then not found: %+v", tool, u)
				}
			}
			s, err := a.As(a.Principal).Agents().Show(t.Context(), "desk")
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range s.LeftOut {
				if !strings.Contains(l.Why, "policy denies it") || !strings.Contains(l.Why, "mortise policy explain "+l.Operation) {
					t.Errorf("it says %+v", l)
				}
			}
		})
	}
}
