package adapter_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var owner = plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}

// A scene is a host with the adapters that map the contract's three examples,
// and a desk that has something to do about them.
type scene struct {
	*testing.T
	app *app.App
}

// routes are the intents that the desk is asked about.
const routes = `
intents: {"Support.*": Desk/triage, "Admission.Application.StatusUpdate": Desk/triage, "Desk.*": Desk/triage}
`

// open allows everything that the desk and the adapters do.
func open(t *testing.T) *scene {
	t.Helper()
	return openConfigured(t, routes+`
policy:
  groups: {staff: [ann, bob, "service::bot", "agent::planner"]}
  allow:
    - {kinds: [tool, agent, adapter, operator]}
`)
}

func openConfigured(t *testing.T, config string) *scene {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this test needs python3, which is not installed; install it to run the test")
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t}
	s.reopen(home)
	for _, dir := range []string{"testdata/desk", "../../../plugins/outreach/examples_adapter"} {
		report, err := s.app.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range report.Registered {
			if one.NotEnabled != nil {
				t.Fatal(one.NotEnabled)
			}
		}
	}
	return s
}

func (s *scene) reopen(home string) {
	s.Helper()
	a, err := app.Open(s.Context(), app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := a.Close(); err != nil {
			s.Error(err)
		}
	})
	s.app = a
}

func (s *scene) link(provider, id, principal string, scopes ...string) {
	s.Helper()
	adapter := "Examples.Adapter"
	if provider == "phone" {
		adapter = "Desk"
	}
	if _, err := s.app.As(owner).Identities().For(adapter).Link(s.Context(), provider, id, principal, scopes...); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) deliver(ref, event string) (*plan.View, error) {
	s.Helper()
	return s.app.Adapters.Deliver(s.Context(), adapter.Delivery{
		Tenant: "local", Adapter: ref, Event: json.RawMessage(event), By: owner, Origin: plugin.OriginCLI,
	})
}

func (s *scene) must(ref, event string) *plan.View {
	s.Helper()
	v, err := s.deliver(ref, event)
	if err != nil {
		s.Fatal(err)
	}
	return v
}

func (s *scene) example(name string) string {
	s.Helper()
	raw, err := os.ReadFile("../../../plugins/outreach/examples_adapter/examples/" + name + ".input.json")
	if err != nil {
		s.Fatal(err)
	}
	return string(raw)
}

// says is an event of the desk's own adapter: what that makes of it, with
// members changed.
func (s *scene) says(change map[string]any) string {
	s.Helper()
	said := map[string]any{
		"intent":    map[string]any{"type": "Support.QA.Answer", "payload": map[string]any{"question": "why"}},
		"principal": map[string]any{"provider": "phone", "external_id": "7"},
	}
	for name, value := range change {
		said[name] = value
	}
	raw, err := json.Marshal(map[string]any{"says": said})
	if err != nil {
		s.Fatal(err)
	}
	return string(raw)
}

// entries are the bodies of the entries of a kind, the newest first.
func (s *scene) entries(kind plugin.EntryKind) (bodies []map[string]any) {
	s.Helper()
	all, err := s.app.Ledger.List(s.Context(), ledger.Filter{Kind: string(kind)})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range all {
		var body map[string]any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			s.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// refused checks a refusal: its code, what it says, and that there is no plan.
func (s *scene) refused(ref, event string, code plugin.Code, says string) {
	s.Helper()
	v, err := s.deliver(ref, event)
	if plugin.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		s.Errorf("%v, %v; want %s: ... %s", v, err, code, says)
	}
	if plans, err := s.app.Plans.List(s.Context(), store.PlanFilter{Tenant: "local", Limit: 10}); err != nil || len(plans) != 0 {
		s.Errorf("there is a plan: %+v, %v", plans, err)
	}
}
