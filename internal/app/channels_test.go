package app_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// TestWhoMakesAChannelMayLinkItsSenders: a link counts for the name of a channel. One who
// may configure agents and secrets and may not link identities makes no channel of that name,
// gives none another secret, and sets the value of none: by each, they would speak as any
// principal that is linked there.
func TestWhoMakesAChannelMayLinkItsSenders(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy:\n  files: [policies]\n", "policies/who.cedar", `
@id("root") permit (principal == User::"root", action, resource);
@id("keeps") permit (principal == User::"kay", action == Action::"configure", resource == Plugin::"mortise.agents");
@id("keeps too") permit (principal == User::"lin", action == Action::"configure", resource == Plugin::"mortise.agents");
@id("secrets") permit (principal, action == Action::"configure", resource == Plugin::"mortise.secrets");
@id("links") permit (principal == User::"lin", action == Action::"configure", resource == Plugin::"mortise.identities");`)
	a := open(t, home)
	ctx := t.Context()
	who := func(id string) host.Agents {
		return a.As(plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}).Agents()
	}
	with := func(secret, reply string) *agent.Settings {
		return &agent.Settings{Channels: map[string]agent.Channel{"desk": {Scheme: webhook.Standard, Secret: secret, Reply: reply}}}
	}
	if _, err := who("root").Create(ctx, host.NewAgent{ID: "sup", Settings: *with("desk", "")}); err != nil {
		t.Fatal(err)
	}
	if _, err := who("kay").Create(ctx, host.NewAgent{ID: "plain"}); err != nil {
		t.Fatal(err)
	}
	value := func(id, name string) error {
		_, err := a.As(plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}).Secrets().Set(ctx, host.SecretPlace{Name: name, System: true}, "known")
		return err
	}
	for _, name := range []string{"desk", "desk.next"} {
		if err := value("kay", name); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("the value of %s, by one who may not link: %v", name, err)
		}
		if err := value("lin", name); err != nil {
			t.Errorf("the value of %s, by one who may: %v", name, err)
		}
	}
	if err := value("kay", "of-no-channel"); err != nil {
		t.Errorf("the value of another secret: %v", err)
	}
	for what, do := range map[string]func(r host.Agents) error{
		"a new agent with it": func(r host.Agents) error {
			_, err := r.Create(ctx, host.NewAgent{ID: "evil", Settings: *with("other", "")})
			return err
		},
		"an agent gets it": func(r host.Agents) error {
			_, err := r.Change(ctx, "plain", host.AgentChange{Settings: with("other", "")})
			return err
		},
		"another secret": func(r host.Agents) error {
			_, err := r.Change(ctx, "sup", host.AgentChange{Settings: with("other", "")})
			return err
		},
	} {
		if err := do(who("kay")); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s, by one who may not link: %v", what, err)
		}
		if err := do(who("lin")); err != nil {
			t.Errorf("%s, by one who may: %v", what, err)
		}
	}
	if _, err := who("kay").Change(ctx, "sup", host.AgentChange{Settings: with("other", "mail/send")}); err != nil {
		t.Errorf("what says nothing of senders: %v", err)
	}
	if _, err := who("kay").Change(ctx, "sup", host.AgentChange{Settings: &agent.Settings{}}); err != nil {
		t.Errorf("a channel is taken away: %v", err)
	}
}
