package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestPolicyAndApproverSeeWhatTheHostFillsIn: an argument that the caller leaves out,
// because the host fills it in, is no way past a forbid that looks at it, and a person
// is shown it: a secret as the reference, everything else as the value.
func TestPolicyAndApproverSeeWhatTheHostFillsIn(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, dir := t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [p.cedar]}\nenv: {bound: {TO: evil-env}}\n", "p.cedar", `
@id("run") permit (principal, action == Action::"execute", resource) when { resource.effects.contains("mail_send") && !(context.origin == "plan") };
@id("ask") @approval("a person decides") permit (principal, action == Action::"execute", resource) when { context.labels.contains("untrusted") };
@id("approve") permit (principal, action == Action::"approve", resource);
@id("no") forbid (principal, action == Action::"execute", resource) when { !context.labels.contains("untrusted") && context.input has to && context.input.to like "*evil*" };
`)
	write(t, dir, "manifest.yaml", `
name: bound
version: 1.0.0
owner: test
description: Sends.
runner: {kind: process, entry: plugin.py}
operations:
  secret: {kind: operator, effects: [mail_send], secrets: {dest: {allowed_scope: user}}, input: {type: object, properties: {to: {type: string, x-binding: "secret:dest"}}, required: [to]}, output: {type: string}}
  env: {kind: operator, effects: [mail_send], input: {type: object, properties: {to: {type: string, x-binding: "env:TO"}}, required: [to]}, output: {type: string}}
  identity: {kind: operator, effects: [mail_send], input: {type: object, properties: {to: {type: string, x-binding: "identity:google_email"}}, required: [to]}, output: {type: string}}
`, "plugin.py", `
from mortise import Plugin

plugin = Plugin("bound", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def secret(to: str) -> str:
    return "sent"

@plugin.operator(effects=["mail_send"])
def env(to: str) -> str:
    return "sent"

@plugin.operator(effects=["mail_send"])
def identity(to: str) -> str:
    return "sent"

plugin.run()
`)
	a := open(t, home)
	register(t, a, dir, false)
	if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: "dest", Plugin: "bound"}, "evil@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		return tx.PutIdentity(store.IdentityRow{Tenant: "local", Provider: "google", ExternalID: "evil@example.org", PrincipalType: "user", PrincipalID: a.Principal.ID})
	}); err != nil {
		t.Fatal(err)
	}
	for operation, shown := range map[string]string{
		"secret": `{"to":{"$secret":"dest"}}`, "env": `{"to":"evil-env"}`, "identity": `{"to":"evil@example.org"}`,
	} {
		call := plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "bound/" + operation, Input: json.RawMessage(`{}`)}
		if res, err := a.Kernel.Call(t.Context(), call); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s: the forbid was passed: %s, %v", operation, res.Data, err)
		}
		call.Labels = []string{plugin.Untrusted}
		res, err := a.Kernel.Call(t.Context(), call)
		if err != nil || res.Status != plugin.PendingApproval {
			t.Errorf("%s: %+v, %v", operation, res, err)
			continue
		}
		row, err := a.Ledger.ApprovalOf(t.Context(), "local", res.CallID)
		if err != nil || row == nil {
			t.Fatalf("%s: %+v, %v", operation, row, err)
		}
		q, err := a.Host.Approvers().Question(t.Context(), row)
		if err != nil || string(q.Input) != shown {
			t.Errorf("%s: a person is shown %s, %v; want %s", operation, q.Input, err, shown)
		}
		if kept, err := a.Ledger.Waiting(t.Context(), "local", res.CallID); err != nil || !strings.Contains(string(kept.Request), `"input":{}`) {
			t.Errorf("%s: kept is %s, %v", operation, kept.Request, err)
		}
	}
}
