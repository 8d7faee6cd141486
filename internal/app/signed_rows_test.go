package app_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// past edits the database of a data directory past the host.
func past(t *testing.T, home string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(home, sqlite.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// signedHome has a row in each table that decides authority, and returns the call
// that waits for an approval.
func signedHome(t *testing.T) (a *app.App, waits string) {
	t.Helper()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [gates.cedar], groups: {people: [ann]}}\napprovals: {by: [ann]}\n", "gates.cedar",
		`@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource in Plugin::"upper");`)
	a = open(t, home)
	ctx, root := t.Context(), a.Principal
	register(t, a, upper(t), false)
	if _, err := a.As(root).Policies().Put(ctx, "mine", []byte(`@id("mine") forbid (principal == User::"eve", action, resource);`), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Identities().Link(ctx, "mail", "ann@example.org", "ann"); err != nil {
		t.Fatal(err)
	}
	if made, _, err := a.As(root).Tokens().Create(ctx, host.NewToken{Name: "laptop", For: "ann"}); err != nil {
		t.Fatal(err)
	} else if _, err := a.As(root).Tokens().Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Host.SignIns().BeginOwner(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Users().Create(ctx, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Users().Disable(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Tenants().Create(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	if of, err := a.Tenant(ctx, "acme"); err != nil {
		t.Fatal(err)
	} else if register(t, of, upper(t), false); len(of.ConfigPath) == 0 {
		t.Fatal("it has no configuration")
	}
	if _, err := a.As(root).Tenants().Disable(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Agents().Create(ctx, host.NewAgent{ID: "desk"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(root).Agents().Assign(ctx, "upper", "desk", true); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Schedules.Create(ctx, "local", schedule.Schedule{Owner: root, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1h"}, nil); err != nil {
		t.Fatal(err)
	}
	res, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: root, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: "k", Asker: "os:1"})
	if err != nil || res.Status != plugin.PendingApproval {
		t.Fatalf("%+v, %v", res, err)
	}
	return a, res.CallID
}

// verifyIn is what `mortise ledger verify` finds in a data directory.
func verifyIn(t *testing.T, home string) *ledger.Fault {
	t.Helper()
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := store.ReadAnchors(home)
	if err != nil {
		t.Fatal(err)
	}
	st, err := setup.Reading(t.Context(), home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	report, err := ledger.Verify(t.Context(), st, key, anchors...)
	if err != nil {
		t.Fatal(err)
	}
	return report.Fault
}

// edits are what an attacker does who holds the database and not the key.
var edits = map[string]struct{ table, statement string }{
	"a package elsewhere":                 {"plugins", `UPDATE plugins SET path = '/tmp/evil', dev = 1`},
	"another package":                     {"plugins", `UPDATE plugins SET package_digest = 'sha256:evil'`},
	"a plugin enabled":                    {"plugins", `UPDATE plugins SET state = 'disabled'`},
	"effects undeclared":                  {"plugins", `UPDATE plugins SET manifest = replace(manifest, 'upper', 'lower')`},
	"a forbid taken away":                 {"policies", `DELETE FROM policies`},
	"a permit added":                      {"policies", `INSERT INTO policies VALUES ('local', 'zz', 'permit (principal, action, resource);', 'eve', 0)`},
	"a forbid weakened":                   {"policies", `UPDATE policies SET text = replace(text, 'forbid', 'permit')`},
	"a link to another":                   {"identities", `UPDATE identities SET principal_id = 'local:owner'`},
	"a token with more rights":            {"tokens", `UPDATE tokens SET scopes = '["admin"]'`},
	"a token that was revoked":            {"tokens", `UPDATE tokens SET revoked_at = 0`},
	"a token that no one created":         {"tokens", `INSERT INTO tokens SELECT tenant, 'forged0000', hash, name, principal_type, principal_id, scopes, operations, created_by, asker, created_at, expires_at, 0, 0, '' FROM tokens`},
	"a user with another's identity":      {"users", `UPDATE users SET identities = '[{"asker":"os:4294967"}]'`},
	"a user who was disabled":             {"users", `UPDATE users SET disabled_at = 0`},
	"a browser of another":                {"browser_sessions", `UPDATE browser_sessions SET user_id = 'other'`},
	"a browser that signed in just now":   {"browser_sessions", `UPDATE browser_sessions SET signed_in_at = signed_in_at + 1`},
	"a browser that no one signed in":     {"browser_sessions", `INSERT INTO browser_sessions SELECT tenant, 'forged', 'aa', user_id, asker, created_at, signed_in_at, expires_at, 0, '', given_groups FROM browser_sessions`},
	"a tenant that was disabled":          {"tenants", `UPDATE tenants SET disabled_at = 0`},
	"a tenant that no one created":        {"tenants", `INSERT INTO tenants VALUES ('forged', 'eve', 1, 0)`},
	"another package of a tenant":         {"tenant_plugins", `UPDATE tenant_plugins SET package_digest = 'sha256:evil'`},
	"a plugin moved to another tenant":    {"tenant_plugins", `UPDATE tenant_plugins SET tenant = 'other'`},
	"an agent's settings":                 {"agents", `UPDATE agents SET prompt = 'You rob.'`},
	"a plugin given to an agent":          {"assignments", `UPDATE assignments SET subject = '*'`},
	"a feed in the name of another":       {"schedules", `UPDATE schedules SET owner_id = 'boss'`},
	"an approval that was not given":      {"approvals", `UPDATE approvals SET state = 'approved', decided_by = 'ann'`},
	"an approval that waits no more":      {"approvals", `DELETE FROM approvals`},
	"an approval of something else":       {"approvals", `UPDATE approvals SET binding_hash = 'sha256:evil'`},
	"a head that signs what it did once":  {"", `UPDATE chains SET authority = replace(authority, 'policies=', 'policies=0')`},
	"a head of a release that signs none": {"", `UPDATE chains SET authority = ''`},
}

// A host does not start on rows that decide authority and are not what the ledger
// signed, and verify says so.
func TestAHostRestsOnNoRowThatTheLedgerDidNotSign(t *testing.T) {
	t.Parallel()
	a, _ := signedHome(t)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if fault := verifyIn(t, a.Home); fault != nil {
		t.Fatalf("before any edit: %+v", fault)
	}
	for name, edit := range edits {
		home := filepath.Join(t.TempDir(), "home")
		if err := os.CopyFS(home, os.DirFS(a.Home)); err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]os.FileMode{home: 0o700, filepath.Join(home, store.KeyFile): 0o600} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		past(t, home, edit.statement)
		host, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
		if err == nil {
			host.Close()
		}
		if !errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), "does not start") || !strings.Contains(err.Error(), edit.table) {
			t.Errorf("%s: a host starts, or does not say why not: %v", name, err)
		}
		if fault := verifyIn(t, home); fault == nil || !strings.Contains(fault.What, edit.table) {
			t.Errorf("%s: verify finds %+v", name, fault)
		}
	}
}

// Nor does a host that was started before the edit.
func TestAHostAtWorkRestsOnNoRowThatTheLedgerDidNotSign(t *testing.T) {
	t.Parallel()
	a, waits := signedHome(t)
	ctx, root := t.Context(), a.Principal
	asked, err := a.Ledger.ApprovalOf(ctx, "local", waits)
	if err != nil || asked == nil {
		t.Fatal(asked, err)
	}
	uses := map[string]struct {
		edit, back string
		do         func() error
	}{
		"policies are read": {`UPDATE policies SET text = text || ' '`, `UPDATE policies SET text = rtrim(text)`, a.Policy.Reload},
		"a policy is put": {`UPDATE policies SET text = text || ' '`, `UPDATE policies SET text = rtrim(text)`, func() error {
			_, err := a.As(root).Policies().Put(ctx, "other", []byte(`@id("other") forbid (principal == User::"joe", action, resource);`), "")
			return err
		}},
		"a plugin is disabled": {`UPDATE plugins SET path = path || 'x'`, `UPDATE plugins SET path = rtrim(path, 'x')`, func() error {
			_, err := a.As(root).Plugins().Disable(ctx, "upper")
			return err
		}},
		"an identity is looked up": {`UPDATE identities SET principal_id = 'boss'`, `UPDATE identities SET principal_id = 'ann'`, func() error {
			_, err := a.Store.Identity(ctx, "local", "mail", "ann@example.org")
			return err
		}},
		"a token is looked up": {`UPDATE tokens SET revoked_at = revoked_at + 1`, `UPDATE tokens SET revoked_at = revoked_at - 1`, func() error {
			_, err := a.Store.Tokens(ctx, "local")
			return err
		}},
		"a token is used": {`UPDATE tokens SET scopes = '["admin"]'`, `UPDATE tokens SET scopes = '["read"]'`, func() error {
			_, err := a.Store.Token(ctx, "any")
			return err
		}},
		"an agent is looked up": {`UPDATE agents SET prompt = 'You rob.'`, `UPDATE agents SET prompt = ''`, func() error {
			_, err := a.Store.Agent(ctx, "local", "desk")
			return err
		}},
		"a feed is run": {`UPDATE schedules SET owner_id = 'boss'`, `UPDATE schedules SET owner_id = 'local:owner'`, func() error {
			rows, err := a.Store.Schedules(ctx, store.ScheduleFilter{Tenant: "local", Limit: 1})
			if err != nil {
				return err
			}
			_, err = a.As(root).Feeds().Run(ctx, rows[0].ID)
			return err
		}},
		"a call goes on whose approval says it was used": {
			`INSERT INTO approvals SELECT tenant, id || 'x', subject_kind, subject_id, binding_hash, preview_hash, '', requester, package_digest, policy_version,
				why, created_at, expires_at, 'consumed', 'ann', '', 1, asker, '' FROM approvals`, `DELETE FROM approvals WHERE state = 'consumed'`, func() error {
				past(t, a.Home, `UPDATE calls SET state = 'queued', wake_at = 0`)
				_, err := a.Kernel.Resume(ctx, "local", waits)
				row, readErr := a.Store.Call(ctx, "local", waits)
				if readErr != nil || row.State == store.CallSucceeded {
					t.Errorf("the call that no one approved is %+v, %v", row, readErr)
				}
				past(t, a.Home, `UPDATE calls SET state = 'pending_approval'`)
				return err
			}},
		"an approved call goes on": {
			`UPDATE approvals SET state = 'approved', decided_by = 'ann', decided_at = 1`, `UPDATE approvals SET state = 'open', decided_by = '', decided_at = 0`, func() error {
				past(t, a.Home, `UPDATE calls SET state = 'queued', wake_at = 0`)
				_, err := a.Kernel.Resume(ctx, "local", waits)
				row, readErr := a.Store.Call(ctx, "local", waits)
				if readErr != nil || row.State == store.CallSucceeded {
					t.Errorf("the call that no one approved is %+v, %v", row, readErr)
				}
				past(t, a.Home, `UPDATE calls SET state = 'pending_approval'`)
				return err
			}},
	}
	for name, use := range uses {
		past(t, a.Home, use.edit)
		if err := use.do(); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
		past(t, a.Home, use.back)
	}
	if fault := verifyIn(t, a.Home); fault != nil {
		t.Errorf("with everything put back: %+v", fault)
	}
}
