package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/plugin"
)

// places are all places of the configuration where a principal is written, each
// with a question that policy allows only the principal written there.
var places = map[string]struct {
	config, cedar string
	action        policy.Action
}{
	"allow rule":         {"policy: {allow: [{operations: [mail/send], effects: [gmail_send], principals: ['NAME']}]}", "", policy.Execute},
	"allow rule pattern": {"policy: {allow: [{operations: [mail/send], effects: [gmail_send], principals: ['NAME*']}]}", "", policy.Execute},
	"group":              {"policy: {files: [p.cedar], groups: {g: ['NAME']}}", `permit (principal in Group::"g", action == Action::"execute", resource);`, policy.Execute},
	"role":               {"policy: {files: [p.cedar], roles: {r: ['NAME']}}", `permit (principal in Role::"r", action == Action::"execute", resource);`, policy.Execute},
	"consent":            {"policy: {files: [p.cedar], consent: {'NAME': [gmail_send]}}", `permit (principal, action == Action::"execute", resource) when { context.consent.contains("gmail_send") };`, policy.Execute},
	"configure":          {"policy: {configure: ['NAME']}", "", policy.Configure},
	"approvals.by":       {"approvals: {by: ['NAME']}", "", policy.Approve},
	"Cedar":              {"policy: {files: [p.cedar]}", `permit (principal == ENTITY, action == Action::"execute", resource);`, policy.Execute},
}

// A name is of one type wherever it is written: a user, a service and an agent of
// one name are three, and a name without a type is the user's.
func TestAPrincipalIsOfOneTypeWhereverItIsWritten(t *testing.T) {
	t.Parallel()
	target := &plugin.Target{
		Manifest:  &plugin.Manifest{Name: "mail", Version: "1.0.0", Dialect: "native"},
		Operation: &plugin.Operation{Name: "send", Kind: plugin.Operator, Effects: []string{"gmail_send"}},
	}
	types := map[string]string{"user": "User", "service": "Service", "agent": "Agent"}
	for where, place := range places {
		for written, of := range map[string]string{"desk": "user", "user::desk": "user", "service::desk": "service", "agent::desk": "agent"} {
			if where == "approvals.by" && of == "agent" {
				continue // refused: agents approve nothing
			}
			dir := t.TempDir()
			write(t, dir, "p.cedar", strings.ReplaceAll(place.cedar, "ENTITY", types[of]+`::"desk"`))
			c, err := config.Parse([]byte(strings.ReplaceAll(place.config, "NAME", written)))
			if err != nil {
				t.Fatalf("%s, %s: %v", where, written, err)
			}
			engine, err := setup.OpenPolicy(c, filepath.Join(dir, "mortise.yaml"), "full", nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", where, written, err)
			}
			for kind := range types {
				call := &plugin.Call{Tenant: "local", Principal: plugin.Principal{Type: kind, ID: "desk", Scopes: []string{"*"}}, Origin: plugin.OriginCLI}
				got := engine.Ask(&policy.Question{Action: place.action, Target: target, Call: call}).Verdict
				if want := kind == of; (got == plugin.Allow) != want {
					t.Errorf("%s: %s is written, and the %s desk gets %s", where, written, kind, got)
				}
			}
		}
	}
}

// What seems to have a type and has none is refused where it is written, and what
// may be read in two ways is said.
func TestANameThatMayMeanTwoIsRefusedOrSaid(t *testing.T) {
	t.Parallel()
	for where, place := range places {
		if !strings.Contains(place.config, "NAME") {
			continue
		}
		for _, wrong := range []string{"user:desk", "agent:desk", "service:desk", "robot::desk", "agent::"} {
			_, err := config.Parse([]byte(strings.ReplaceAll(place.config, "NAME", wrong)))
			if where == "allow rule pattern" && wrong == "agent::" {
				continue // agent::* is all agents
			}
			if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(wrong, "::")) {
				t.Errorf("%s: %s: %v", where, wrong, err)
			}
		}
		text := strings.ReplaceAll(place.config, "NAME", "desk")
		if strings.Contains(text, "policy: {") {
			text = strings.Replace(text, "policy: {", "policy: {groups: {others: ['agent::desk']}, ", 1)
		} else {
			text += "\npolicy: {groups: {others: ['agent::desk']}}"
		}
		if where == "group" {
			text = "policy: {groups: {g: [desk], others: ['agent::desk']}}"
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if warned := c.Ambiguous(); (where == "allow rule pattern") == (len(warned) == 1 && strings.Contains(warned[0], "user::desk")) {
			t.Errorf("%s: %q", where, warned)
		}
	}
	for text, ambiguous := range map[string]bool{
		`permit (principal, action, resource) when { principal.id == "desk" };`:                      true,
		`permit (principal in Group::"g", action, resource) when { principal.id like "d*" };`:        true,
		`permit (principal, action, resource) when { principal is User && principal.id == "desk" };`: false,
		`permit (principal is Agent, action, resource) when { principal.id == "desk" };`:             false,
		`permit (principal == Agent::"desk", action, resource);`:                                     false,
	} {
		engine, err := policy.Open(policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) {
			return []policy.Document{{Name: "p.cedar", Text: []byte(text)}}, nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if warned := engine.Ambiguous(); (len(warned) == 1) != ambiguous {
			t.Errorf("%s: %q", text, warned)
		}
	}
}
