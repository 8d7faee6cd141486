package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// TestNoPackageHasTheNameOfAPartOfTheHost: policy names the parts of the host as it
// names plugins, so a package with such a name would have what was permitted of the part.
func TestNoPackageHasTheNameOfAPartOfTheHost(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	for _, name := range []string{"mortise", "Mortise", "mortise.ledger", "mortise.sessions", "MORTISE.calls", "mortise.recovery", "mortise.some.thing", "agent.chat", "Agent.Memory"} {
		for _, dev := range []bool{false, true} {
			dir := upper(t)
			raw, err := os.ReadFile(filepath.Join(dir, "manifest.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "manifest.yaml", strings.Replace(string(raw), "name: upper", "name: "+name, 1))
			_, err = a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Dev: dev, Enable: true})
			if plugin.CodeOf(err) != plugin.CodeInvalidInput {
				t.Errorf("%s, dev %t: %v", name, dev, err)
			}
		}
	}
	for _, name := range []string{"mortises", "my.mortise", "agent"} { // these are no parts of it
		dir := upper(t)
		raw, err := os.ReadFile(filepath.Join(dir, "manifest.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "manifest.yaml", strings.Replace(string(raw), "name: upper", "name: "+name, 1))
		if _, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoPackageTakesTheHostsNameBeforeAModel: names that read alike to a model get
// numbers, and the host's own operations get none.
func TestNoPackageTakesTheHostsNameBeforeAModel(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := open(t, modelHome(t, model.URL, agentPolicy))
	hire(t, a, "desk", agent.Settings{})
	give(t, a, "desk", "agent_memory", strings.NewReplacer("find", "search").Replace(lookup))
	model.say(move{text: "done"})
	if _, err := talk(t, a, "desk", "search what you remember"); err != nil {
		t.Fatal(err)
	}
	if offered := model.heard()[0]; !strings.Contains(offered, `agent_memory__search_2`) {
		t.Fatalf("the package is not offered: %s", offered)
	}
	u := use(t, a, model, "desk", "agent_memory__search", `{"query":"x"}`)
	if u.Operation != "agent.memory/search" {
		t.Errorf("its own name led to %+v", u)
	}
}
