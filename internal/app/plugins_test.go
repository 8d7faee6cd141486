package app_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

var owner, stranger = plugin.Principal{Type: "user", ID: "local:owner"}, plugin.Principal{Type: "user", ID: "ann"}

// TestWhoMayNotConfigureChangesNoPlugin: each way to change one is refused, and
// each refusal is one entry.
func TestWhoMayNotConfigureChangesNoPlugin(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), upper(t)
	a := open(t, home)
	theirs, ours := a.As(stranger).Plugins(), a.As(owner).Plugins()
	if report, err := theirs.Register(t.Context(), dir, registry.RegisterOptions{Dev: true}); plugin.CodeOf(err) != plugin.CodePolicyDenied || len(report.Registered) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := theirs.Register(t.Context(), dir, registry.RegisterOptions{}); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Error(err)
	}
	if _, err := a.Registry.Show(t.Context(), "upper"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("what was refused is registered: %v", err)
	}
	if _, err := ours.Register(t.Context(), dir, registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	_, enable := theirs.Enable(t.Context(), "upper")
	_, disable := theirs.Disable(t.Context(), "UPPER@1.0.0")
	_, remove := theirs.Delete(t.Context(), "upper@>=1")
	for what, err := range map[string]error{"enable": enable, "disable": disable, "delete": remove} {
		if plugin.CodeOf(err) != plugin.CodePolicyDenied || !strings.Contains(err.Error(), "ann may not "+what+" upper: no policy lets ann configure upper") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if shown, err := a.Registry.Show(t.Context(), "upper"); err != nil || shown.State != registry.Active {
		t.Errorf("%+v, %v", shown, err)
	}
	refused := 0
	for _, line := range entries(t, a) {
		if line == "plugin.refused upper@1.0.0" {
			refused++
		}
	}
	if refused != 5 {
		t.Errorf("%d of 5 refusals are on record: %q", refused, entries(t, a))
	}
	if _, err := theirs.Enable(t.Context(), "nothing"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Error(err)
	}
	if _, err := ours.Delete(t.Context(), "upper"); err != nil {
		t.Error(err)
	}
}

// TestNoCodeRunsForWhoMayNotConfigure: what a file of code is called only the
// code knows, and it is not asked.
func TestNoCodeRunsForWhoMayNotConfigure(t *testing.T) {
	t.Parallel()
	needPython(t)
	a, dir := open(t, t.TempDir()), t.TempDir()
	ran := filepath.Join(dir, "ran")
	write(t, dir, "p.py", "open("+"\""+ran+"\", 'w').close()\n")
	if _, err := a.As(stranger).Plugins().Register(t.Context(), filepath.Join(dir, "p.py"), registry.RegisterOptions{Dev: true}); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the code ran")
	}
}

// TestEveryoneSeesWhatTheyMay: lists show what their reader may list or run, or
// may configure.
func TestEveryoneSeesWhatTheyMay(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {default: none, allow: [{operations: [upper], principals: [ann]}]}")
	a := open(t, home)
	register(t, a, upper(t), false)
	for who, want := range map[string]bool{"ann": true, "bob": false, "local:owner": true} {
		p := a.As(plugin.Principal{Type: "user", ID: who}).Plugins()
		all, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(i registry.Info) bool { return i.Name == "upper" })
		if (i >= 0) != want || want && !slices.Equal(all[i].Operations, []string{"upper"}) || who == "ann" && len(all) != 1 {
			t.Errorf("%s sees %+v", who, all)
		}
		if _, err := p.Show(t.Context(), "upper"); (err == nil) != want || !want && plugin.CodeOf(err) != plugin.CodeNotFound {
			t.Errorf("%s: %v", who, err)
		}
		if all, err := p.List(t.Context(), plugin.Operator); err != nil || slices.ContainsFunc(all, func(i registry.Info) bool { return i.Name == "upper" }) {
			t.Errorf("%s: %+v, %v", who, all, err)
		}
	}
}

// TestActionsThatACallerMayUse: an action is hidden from a principal that
// policy denies it, and from one that lacks a scope.
func TestActionsThatACallerMayUse(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{operations: [mail/mark, mail/label], effects: ['*'], principals: [ann]}]}")
	a := open(t, home)
	dir := t.TempDir()
	write(t, dir, "manifest.py", `PLUGIN_MANIFEST = {"name": "mail", "version": "1.0.0", "module": "plugins.mail.plugin:Mail", "capabilities": ["storage"]}`, "plugin.py", `
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}

class Mail:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"enum": ["list"]}}}

    async def execute(self, params, context, host):
        return {"status": "success"}

    async def list_actions(self):
        return [
            {"name": "mark", "description": "Mark it.", "params_schema": SCHEMA, "required_scopes": ["mail.modify"], "requires_approval": True, "risk_level": "low"},
            {"name": "label", "description": "Label it.", "params_schema": SCHEMA, "required_scopes": [], "requires_approval": False},
            {"name": "send", "description": "Send it.", "params_schema": SCHEMA, "required_scopes": ["mail.send"], "requires_approval": True, "risk_level": "high"},
        ]

    async def perform_action(self, name, args, context, host):
        return {"status": "ok", "result": name}
`)
	register(t, a, dir, false)
	for _, c := range []struct {
		who    string
		scopes []string
		want   string
	}{
		{"ann", []string{"*"}, `[{"name":"label","description":"Label it.","params_schema":{"type":"object","properties":{"id":{"type":"string"}}},"required_scopes":[],"requires_approval":false},` +
			`{"name":"mark","description":"Mark it.","params_schema":{"type":"object","properties":{"id":{"type":"string"}}},"required_scopes":["mail.modify"],"requires_approval":true,"risk_level":"low"}]`},
		{"ann", []string{"mail.send"}, `[{"name":"label","description":"Label it.","params_schema":{"type":"object","properties":{"id":{"type":"string"}}},"required_scopes":[],"requires_approval":false}]`},
		{"local:owner", []string{"*"}, `[]`}, // who may configure it, and use nothing
	} {
		found, err := a.As(plugin.Principal{Type: "user", ID: c.who, Scopes: c.scopes}).Plugins().Actions(t.Context(), "mail")
		got, jsonErr := json.Marshal(found)
		if err != nil || jsonErr != nil || string(got) != c.want {
			t.Errorf("%s with %s: got %s, %v, %v", c.who, c.scopes, got, err, jsonErr)
		}
	}
	if _, err := a.As(plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}).Plugins().Actions(t.Context(), "mail"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("who may not know of it: %v", err)
	}
}

// TestPutPolicy: with its entry and text, in force for this host at once and
// for another that follows soon; a slip leaves the old set in force in both.
func TestPutPolicy(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	register(t, a, upper(t), false)
	running, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet, Standby: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	verdict := func(of *app.App) plugin.Verdict {
		t.Helper()
		target, err := of.Registry.Resolve(t.Context(), "upper")
		if err != nil {
			t.Fatal(err)
		}
		return of.Policy.May(policy.Execute, target, &plugin.Call{Tenant: "local", Principal: owner}).Verdict
	}
	follows := func(want plugin.Verdict) {
		t.Helper()
		testwait.Until(t, "the running host has the policy", func() bool { return verdict(running) == want })
	}
	const no = "@id(\"no\") forbid (principal, action == Action::\"execute\", resource == Operation::\"upper/upper\");\n"
	if n, err := a.As(owner).Policies().Put(t.Context(), "quiet", []byte(no), ""); n.Policies != 1 || err != nil {
		t.Fatal(n, err)
	}
	if verdict(a) != plugin.Deny {
		t.Error("it is not in force where it was put")
	}
	follows(plugin.Deny)
	version := a.Policy.Version()
	if running.Policy.Version() != version {
		t.Error("two hosts with the same policies have two versions")
	}
	for text, place := range map[string]string{
		"permit (principal, action, resource)\nwhen { context.scops.isEmpty() };": "stored/quiet:2:16: attribute `scops` in context not found",
		"permit (principal in Rol::\"a\", action, resource);":                     "stored/quiet:1:22: unrecognized entity type `Rol`",
		"permit (principal, action, resource)":                                    "stored/quiet:1:37: found the end where ; is expected",
	} {
		_, err := a.As(owner).Policies().Put(t.Context(), "quiet", []byte(text), "")
		var problems policy.Problems
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !errors.As(err, &problems) || !strings.Contains(err.Error(), place) {
			t.Errorf("%v, want %s", err, place)
		}
	}
	if rows, err := a.Store.Policies(t.Context(), "local"); err != nil || len(rows) != 1 || rows[0].Text != no || rows[0].By != "local:owner" {
		t.Errorf("%+v, %v", rows, err)
	}
	if a.Policy.Version() != version || verdict(a) != plugin.Deny {
		t.Error("what was refused is in force")
	}
	if _, err := a.As(stranger).Policies().Put(t.Context(), "x", []byte(no), ""); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Error(err)
	}

	// A row written to the store directly, without the host, does no harm.
	err = a.Store.Write(t.Context(), func(tx store.Tx) error {
		return tx.PutPolicy(store.PolicyRow{Tenant: "local", Name: "bad", Text: "permit", By: "x", At: time.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Policy.Reload(); err == nil || !strings.Contains(err.Error(), "stored/bad:1:") || verdict(a) != plugin.Deny {
		t.Errorf("%v", err)
	}
	if _, err := a.As(owner).Policies().Delete(t.Context(), "bad", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(owner).Policies().Delete(t.Context(), "quiet", ""); err != nil || verdict(a) != plugin.Allow {
		t.Errorf("%v", err)
	}
	follows(plugin.Allow)
	if _, err := a.As(owner).Policies().Delete(t.Context(), "quiet", ""); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Error(err)
	}
	var kinds []string
	for _, line := range entries(t, a) {
		if strings.HasPrefix(line, "policy.") {
			kinds = append(kinds, line)
		}
	}
	if want := []string{"policy.put quiet", "policy.refused x", "policy.deleted bad", "policy.deleted quiet"}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
}
