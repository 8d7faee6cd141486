package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// A principal has so many of each thing and no more, another principal and another tenant
// have their own, and what is taken away makes room.
func TestAPrincipalHasSoManyOfEachThing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	err := os.WriteFile(filepath.Join(home, config.FileName), []byte("limits: {principal_sessions: 2, principal_feeds: 2, principal_knowledge: 2, principal_secrets: 2, principal_tokens: 2}\n"+
		"policy: {groups: {people: [ann, ben]}, configure: [ann, ben]}\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	a := open(t, home)
	register(t, a, upper(t), false)
	acme := tenants(t, a, "policy: {groups: {people: [ann, ben]}, configure: [ann, ben]}\nlimits: {principal_sessions: 3}\n", "acme")[0]
	register(t, acme, upper(t), false)
	ctx, n := t.Context(), 0
	person := func(id string) plugin.Principal { return plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}} }
	things := map[string]struct {
		add  func(of *app.App, who string) (id string, err error)
		drop func(who, id string) error
	}{
		"sessions": {func(of *app.App, who string) (string, error) {
			s, err := of.As(person(who)).Sessions().Create(ctx, host.NewSession{Name: "s"})
			return s.ID, err
		}, func(who, id string) error { _, err := a.As(person(who)).Sessions().Close(ctx, id); return err }},
		"feeds": {func(of *app.App, who string) (string, error) {
			f, err := of.As(person(who)).Feeds().Create(ctx, host.NewFeed{Plugin: "upper/upper", Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{"text":"a"}`), nil }})
			return f.ID, err
		}, func(who, id string) error { _, err := a.As(person(who)).Feeds().Delete(ctx, id); return err }},
		"knowledge bases": {func(of *app.App, who string) (string, error) {
			k, err := of.As(person(who)).Knowledge().Create(ctx, host.KnowledgeBase{ID: fmt.Sprintf("%s-%d", who, n)})
			return k.ID, err
		}, func(who, id string) error { _, err := a.As(person(who)).Knowledge().Delete(ctx, id); return err }},
		"secrets": {func(of *app.App, who string) (string, error) {
			name := fmt.Sprintf("key%d", n)
			_, err := of.As(person(who)).Secrets().Set(ctx, host.SecretPlace{Name: name}, "the value of it")
			return name, err
		}, func(who, id string) error {
			_, err := a.As(person(who)).Secrets().Delete(ctx, host.SecretPlace{Name: id})
			return err
		}},
		"tokens": {func(of *app.App, who string) (string, error) {
			k, _, err := of.As(person(who)).Tokens().Create(ctx, host.NewToken{Name: "t"})
			return k.ID, err
		}, func(who, id string) error { _, err := a.As(person(who)).Tokens().Revoke(ctx, id); return err }},
	}
	for what, thing := range things {
		add := func(of *app.App, who string, code plugin.Code) string {
			t.Helper()
			n++
			id, err := thing.add(of, who)
			if plugin.CodeOf(err) != code {
				t.Errorf("%s of %s in %s: %v, want %q", what, who, of.Config.Tenant, err, code)
			}
			return id
		}
		first := add(a, "ann", "")
		add(a, "ann", "")
		add(a, "ann", plugin.CodeBudgetExceeded)
		add(a, "ben", "")
		add(acme, "ann", "")
		if err := thing.drop("ann", first); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		add(a, "ann", "")
		add(a, "ann", plugin.CodeBudgetExceeded)
		if add(acme, "ann", ""); what == "sessions" { // which may have one more
			add(acme, "ann", "")
		}
		add(acme, "ann", plugin.CodeBudgetExceeded)
	}
	ann := a.As(person("ann")).Secrets()
	all, err := ann.List(ctx)
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	if _, err := ann.Set(ctx, host.SecretPlace{Name: all[0].Name}, "another value"); err != nil {
		t.Errorf("a secret that there is takes no more room: %v", err)
	}
}
