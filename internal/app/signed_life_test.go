package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// copied is a data directory like another one, which no host is at work on.
func copied(t *testing.T, from string) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.CopyFS(home, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{home: 0o700, filepath.Join(home, store.KeyFile): 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// refusesToStart expects that no host starts on a data directory, and that verify says
// which rows are not the ledger's.
func refusesToStart(t *testing.T, what, home, table string) {
	t.Helper()
	host, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err == nil {
		host.Close()
	}
	if !errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), "does not start") || !strings.Contains(err.Error(), table) {
		t.Errorf("%s: a host starts, or does not say why not: %v", what, err)
	}
	foundByVerify(t, what, home, table)
}

func foundByVerify(t *testing.T, what, home, table string) {
	t.Helper()
	if fault := verifyIn(t, home); fault == nil || !strings.Contains(fault.What, table) {
		t.Errorf("%s: verify finds %+v", what, fault)
	}
}

// begun counts how often a call was begun, as the ledger has it.
func begun(t *testing.T, a *app.App, call string) (n int) {
	t.Helper()
	entries, err := a.Ledger.Show(t.Context(), "local", call)
	if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind == plugin.EntryCallStarted {
			n++
		}
	}
	return n
}

// decided answers the question about a call.
func decided(t *testing.T, a *app.App, call string, approve bool) {
	t.Helper()
	asked, err := a.Ledger.ApprovalOf(t.Context(), "local", call)
	if err != nil || asked == nil {
		t.Fatal(asked, err)
	}
	answer := approval.Answer{Tenant: "local", ID: asked.ID, Approve: approve, By: plugin.Principal{Type: "user", ID: "ann"}, Asker: "os:2"}
	if _, err := a.Approvals.Decide(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
}

// resurrections are how one who holds the database makes a call run that is not to:
// one that has ended, another's, one that there never was.
var resurrections = map[string]string{
	"ended, and queued again":         `UPDATE calls SET state = 'queued', wake_at = 0, lease = '', node = '' WHERE id = 'ENDED'`,
	"ended, and queued as it was":     `UPDATE calls SET state = 'queued', attempt = 0, wake_at = 0, result_hash = '', code = '', lease = '', node = '' WHERE id = 'ENDED'`,
	"denied, and queued":              `UPDATE calls SET state = 'queued', wake_at = 0 WHERE id = 'DENIED'`,
	"invented":                        `INSERT INTO calls SELECT * FROM invented`,
	"queued, and another's":           `UPDATE calls SET principal = 'boss' WHERE id = 'QUEUED'`,
	"queued, with fewer labels":       `UPDATE calls SET labels = '[]' WHERE id = 'QUEUED'`,
	"queued, with another input":      `UPDATE calls SET request_hash = (SELECT request_hash FROM calls WHERE id = 'ENDED') WHERE id = 'QUEUED'`,
	"queued, of another package":      `UPDATE calls SET package_digest = 'sha256:evil' WHERE id = 'QUEUED'`,
	"running on a host that has died": `UPDATE calls SET state = 'running', node = 'dead', lease = 'l' WHERE id = 'ENDED'`,
	"unknown":                         `UPDATE calls SET state = 'unknown', lease = '' WHERE id = 'ENDED'`,
}

// A call that the ledger says has ended is never run again, and neither is one that
// the ledger does not know as it stands in the database.
func TestNoCallRunsThatTheLedgerDidNotQueue(t *testing.T) {
	t.Parallel()
	a, ended := signedHome(t)
	ctx := t.Context()
	decided(t, a, ended, true)
	if res, err := a.Kernel.Resume(ctx, "local", ended); err != nil || res.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
	call := plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"b"}`), Key: "denied", Asker: "os:1"}
	denied, err := a.Kernel.Call(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	decided(t, a, denied.CallID, false)
	call.Key, call.Labels = "queued", []string{plugin.Untrusted}
	queued, err := a.Kernel.Call(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	decided(t, a, queued.CallID, true)
	if n := begun(t, a, ended); n != 1 {
		t.Fatalf("the call that ended was begun %d times", n)
	}
	past(t, a.Home, `CREATE TABLE kept AS SELECT * FROM calls`, `CREATE TABLE invented AS SELECT * FROM calls WHERE id = '`+ended+`'`,
		`UPDATE invented SET id = 'invented', key = 'k:invented', state = 'queued', wake_at = 0, lease = '', node = ''`)
	defer a.Close()
	for name, statement := range resurrections {
		statement = strings.NewReplacer("ENDED", ended, "DENIED", denied.CallID, "QUEUED", queued.CallID).Replace(statement)
		past(t, a.Home, statement)
		for _, id := range []string{ended, denied.CallID, queued.CallID, "invented"} {
			before := begun(t, a, id)
			_, err := a.Kernel.Resume(ctx, "local", id)
			if after := begun(t, a, id); after != before {
				t.Errorf("%s: call %s was begun, %v", name, id, err)
			}
			if row, _ := a.Store.Call(ctx, "local", id); row != nil && row.State == store.CallQueued && !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s: going on with call %s: %v", name, id, err)
			}
		}
		foundByVerify(t, name, a.Home, "calls")
		refusesToStart(t, name, copied(t, a.Home), "calls")
		past(t, a.Home, `DELETE FROM calls`, `INSERT INTO calls SELECT * FROM kept`)
	}
	// Nor where a person is made to say that it never happened, which the host believes.
	past(t, a.Home, `UPDATE calls SET state = 'unknown', lease = '' WHERE id = '`+ended+`'`)
	if _, err := a.Kernel.Settle(ctx, "local", ended, kernel.Settlement{State: store.CallQueued, Reason: "I looked", By: a.Principal}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Kernel.Resume(ctx, "local", ended); !errors.Is(err, store.ErrTampered) || begun(t, a, ended) != 1 {
		t.Errorf("settled after it was made unknown, it was begun %d times: %v", begun(t, a, ended), err)
	}
}

// An answer that no one gave is not believed, a denial as little as an approval.
func TestNoAnswerIsBelievedThatTheLedgerDoesNotKnow(t *testing.T) {
	t.Parallel()
	a, waits := signedHome(t)
	ctx := t.Context()
	decided(t, a, waits, false)
	past(t, a.Home, `CREATE TABLE kept AS SELECT * FROM approvals`)
	invent := func(state string) string {
		return `INSERT INTO approvals SELECT tenant, id || 'x', subject_kind, subject_id, binding_hash, preview_hash, '', requester, package_digest, policy_version,
			why, created_at, expires_at, '` + state + `', 'ann', 'no', 1, asker, mac FROM approvals`
	}
	for name, statement := range map[string]string{
		"a denial by another":         `UPDATE approvals SET decided_by = 'boss'`,
		"a denial for another reason": `UPDATE approvals SET reason = 'because'`,
		"a denial that was used":      `UPDATE approvals SET state = 'consumed'`,
		"a denial that expired":       `UPDATE approvals SET state = 'expired'`,
		"a denial of another call":    `UPDATE approvals SET subject_id = 'other'`,
		"an invented denial":          invent("denied"),
		"an invented expiry":          invent("expired"),
		"an invented approval":        invent("consumed"),
		"one void":                    invent("void"),
	} {
		past(t, a.Home, statement)
		rows, err := a.Store.Approvals(ctx, store.ApprovalFilter{Tenant: "local"})
		if !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: %d approvals are read, %v", name, len(rows), err)
		}
		foundByVerify(t, name, a.Home, "approvals")
		past(t, a.Home, `DELETE FROM approvals`, `INSERT INTO approvals SELECT * FROM kept`)
	}
	if fault := verifyIn(t, a.Home); fault != nil {
		t.Errorf("with everything put back: %+v", fault)
	}
}

// A recovery is not ended, begun or changed by who writes the database.
func TestNoRecoveryEndsThatTheLedgerDidNotEnd(t *testing.T) {
	t.Parallel()
	a, _ := signedHome(t)
	row, err := store.RecoveryRow(store.Recovery{Why: "restored from a backup"})
	if err != nil {
		t.Fatal(err)
	}
	ended := `DELETE FROM kv WHERE owner = ':host' AND scope = 'site'`
	begun := `INSERT INTO kv VALUES ('', ':host', 'site', 'recovery', 'recovery', CAST('{"why":"I say so"}' AS BLOB), '[]', 0, 0, '')`
	before := copied(t, a.Home)
	past(t, before, begun)
	host := open(t, before) // which rests on it no more than on what it knows: less runs, and not more
	if err := host.Hold(t.Context()); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("a recovery that another began: %v", err)
	}
	past(t, before, ended)
	if err := host.Hold(t.Context()); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a recovery that another began, and ended: %v", err)
	}
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error { return tx.PutKV(row) }); err != nil {
		t.Fatal(err)
	}
	call := plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: "again", NoWait: true}
	if err := a.Hold(t.Context()); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Fatalf("in recovery: %v", err)
	}
	for name, statement := range map[string]string{
		"ended":   ended,
		"changed": `UPDATE kv SET key = 'no recovery' WHERE owner = ':host' AND scope = 'site'`,
	} {
		past(t, a.Home, `DROP TABLE IF EXISTS kept_kv`, `CREATE TABLE kept_kv AS SELECT * FROM kv`, statement)
		for range 2 {
			if err := a.Hold(t.Context()); !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s: what has effects may run: %v", name, err)
			}
		}
		foundByVerify(t, name, a.Home, "kv")
		refusesToStart(t, name, copied(t, a.Home), "kv")
		past(t, a.Home, `DELETE FROM kv`, `INSERT INTO kv SELECT * FROM kept_kv`)
	}
	if _, err := a.As(a.Principal).Admin().ConfirmRecovery(t.Context(), "I looked at the other side"); err != nil {
		t.Fatal(err)
	}
	if err := a.Hold(t.Context()); err != nil {
		t.Errorf("once it was ended: %v", err)
	}
	if _, err := a.Kernel.Call(t.Context(), call); err != nil {
		t.Error(err)
	}
}

// What an artifact is labelled with, whose it is and which bytes it has is what the
// host registered, or it is not read: labels decide what may be done with it.
func TestNoArtifactIsReadThatTheHostDidNotRegister(t *testing.T) {
	t.Parallel()
	a, _ := signedHome(t)
	ctx := t.Context()
	k := a.As(a.Principal)
	s, err := k.Sessions().Create(ctx, session.Open{Name: "case"})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := k.Sessions().AddArtifact(ctx, s.ID, strings.NewReader("what was found"), session.Add{Name: "mail.txt", Labels: []string{plugin.Untrusted, "private"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct{ table, statement string }{
		"labels":             {"artifacts", `UPDATE artifacts SET labels = '[]'`},
		"one label":          {"artifacts", `UPDATE artifacts SET labels = '["private"]'`},
		"bytes with a hash":  {"artifacts", `UPDATE artifacts SET data = CAST('forged' AS BLOB), size = 6, sha256 = '71c5f2e1e5fbb9b1d1a7f1d0b0d1e0b5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5'`},
		"what it came from":  {"artifacts", `UPDATE artifacts SET source_tool = 'trusted/tool'`},
		"labels and its mac": {"artifacts", `UPDATE artifacts SET labels = '[]', mac = ''`},
		"the owner":          {"sessions", `UPDATE sessions SET owner = 'eve'`},
		"the session labels": {"sessions", `UPDATE sessions SET labels = '[]'`},
		"one that is new":    {"artifacts", `INSERT INTO artifacts SELECT * FROM more`},
		"bytes alone":        {"", `UPDATE artifacts SET data = CAST('forged' AS BLOB)`},
	} {
		home := copied(t, a.Home)
		if name == "one that is new" {
			past(t, home, `CREATE TABLE more AS SELECT * FROM artifacts`, `UPDATE more SET id = 'art_00000001', n = 2, labels = '[]'`)
		}
		past(t, home, of.statement)
		host := open(t, home)
		k := host.As(host.Principal)
		_, read := k.Sessions().OpenArtifact(ctx, s.ID, kept.ID)
		if of.table == "" { // the hash tells
			r, err := k.Sessions().OpenArtifact(ctx, s.ID, kept.ID)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err == nil {
				t.Errorf("%s: %q is read", name, data)
			}
			continue
		}
		if !errors.Is(read, store.ErrTampered) {
			t.Errorf("%s: it is read: %v", name, read)
		}
		call := plugin.Call{Tenant: "local", Principal: host.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Session: s.ID,
			Input: json.RawMessage(fmt.Sprintf(`{"text":"a","artifacts":[{"artifact_id":%q}]}`, kept.ID))}
		if res, err := host.Kernel.Call(ctx, call); err == nil && res.Status == plugin.Succeeded {
			t.Errorf("%s: a plugin gets it: %+v", name, res)
		}
		foundByVerify(t, name, home, of.table)
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
}
