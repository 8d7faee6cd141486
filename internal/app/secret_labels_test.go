package app_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// keeper writes a plugin that sets a secret, and has every way to be given it.
func keeper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: keeper
version: 1.0.0
owner: test
description: Keeps a token.
runner: {kind: process, entry: plugin.py}
capabilities: [secrets]
operations:
  set: {kind: operator, effects: [secret_write], brokered: true, secrets: {token: {allowed_scope: user}}}
  read: {secrets: {token: {allowed_scope: user}}}
  send: {kind: operator, effects: [mail_send], secrets: {token: {allowed_scope: user}}}
  bound: {kind: operator, effects: [mail_send], secrets: {token: {allowed_scope: user}}, input: {type: object, properties: {to: {type: string, x-binding: "secret:token"}}, required: [to]}, output: {type: integer}}
  free: {kind: operator, effects: [mail_send]}
`, "plugin.py", `
from mortise import Context, Plugin

plugin = Plugin("keeper", version="1.0.0")

@plugin.operator(effects=["secret_write"])
def set(value: str, ctx: Context) -> dict:
    """Set the token."""
    return ctx.service("secrets.set", {"name": "token", "value": value})

@plugin.tool
def read(ctx: Context) -> int:
    """Count the token."""
    return len(ctx.service("secrets.get", {"name": "token"})["value"])

@plugin.operator(effects=["mail_send"])
def send(to: list[str]) -> int:
    """Send."""
    return len(to[0])

@plugin.operator(effects=["mail_send"])
def bound(to: str) -> int:
    """Send."""
    return len(to)

@plugin.operator(effects=["mail_send"])
def free(to: str) -> int:
    """Send."""
    return len(to)

plugin.run()
`)
	return dir
}

// TestAnEffectWithATaintedSecretAsksAPerson: a secret that a call with labels set
// brings them wherever the host fills it in, before policy judges the call; one
// that a person set, or a call without labels, brings none.
func TestAnEffectWithATaintedSecretAsksAPerson(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{effects: [mail_send], kinds: [operator]}, {effects: [secret_write], untrusted: allow}, {kinds: [tool]}]}\napprovals: {self: true}\n")
	a := open(t, home)
	register(t, a, keeper(t), false)
	ask := func(operation, input string, labels ...string) plugin.Result {
		t.Helper()
		res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "keeper/" + operation,
			Input: json.RawMessage(input), Labels: labels, Fresh: true})
		if err != nil {
			t.Fatalf("%s %s: %v", operation, input, err)
		}
		return res
	}
	byPerson := func() {
		t.Helper()
		if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: "token", Plugin: "keeper"}, "of a person"); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(res plugin.Result) (plugin.Result, error) {
		t.Helper()
		if _, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: res.Approval.ID, Approve: true, By: a.Principal, Own: true}); err != nil {
			t.Fatal(err)
		}
		return a.Kernel.Resume(t.Context(), "local", res.CallID)
	}
	effects := map[string]string{"send": `{"to":[{"$secret":"token"}]}`, "bound": `{}`}
	for _, step := range []struct {
		name   string
		set    func()
		labels []string
	}{
		{"a person", byPerson, nil},
		{"an untrusted call", func() { ask("set", `{"value":"from outside"}`, "private", plugin.Untrusted) }, []string{"private", plugin.Untrusted}},
		{"a call without labels", func() { ask("set", `{"value":"from inside"}`) }, nil},
	} {
		step.set()
		if res := ask("read", `{}`); !slices.Equal(res.Labels, step.labels) {
			t.Errorf("set by %s: what reads it has the labels %q", step.name, res.Labels)
		}
		if res := ask("free", `{"to":"a"}`); res.Status != plugin.Succeeded || len(res.Labels) != 0 {
			t.Errorf("set by %s, and not used: %+v", step.name, res)
		}
		for operation, input := range effects {
			res := ask(operation, input)
			if want := map[bool]plugin.Status{true: plugin.PendingApproval, false: plugin.Succeeded}[step.labels != nil]; res.Status != want {
				t.Errorf("set by %s: %s is %s, want %s", step.name, operation, res.Status, want)
				continue
			}
			if step.labels == nil {
				continue
			}
			row, err := a.Ledger.ApprovalOf(t.Context(), "local", res.CallID)
			if err != nil || row == nil {
				t.Fatal(row, err)
			}
			if q, err := a.Host.Approvers().Question(t.Context(), row); err != nil || !slices.Equal(q.Labels, step.labels) {
				t.Errorf("set by %s: who is asked about %s is shown the labels %q, %v", step.name, operation, q.Labels, err)
			}
			if res, err = decide(res); err != nil || res.Status != plugin.Succeeded || !slices.Equal(res.Labels, step.labels) {
				t.Errorf("set by %s: once approved, %s is %+v, %v", step.name, operation, res, err)
			}
		}
	}

	// An approval for a value of a person is none for one that came from outside.
	ask("set", `{"value":"from inside"}`)
	waits := ask("send", effects["send"], plugin.Untrusted)
	ask("set", `{"value":"from outside"}`, "private")
	if res, err := decide(waits); plugin.CodeOf(err) != plugin.CodeApprovalVoid {
		t.Errorf("what was set while the call waited: %+v, %v", res, err)
	}

	all, err := a.As(a.Principal).Secrets().List(t.Context())
	if err != nil || len(all) != 1 || !slices.Equal(all[0].Labels, []string{"private"}) {
		t.Errorf("listed are %+v, %v", all, err)
	}
}
