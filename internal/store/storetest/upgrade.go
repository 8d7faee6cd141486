package storetest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
)

// old is a call as the first schema kept them.
var old = []string{
	`INSERT INTO calls (tenant, id, operation, key, fingerprint, principal, actor, agent, origin, parent_id, plan_id, session_id, labels,
		version, package_digest, policy_version, input_hash, effectful, state, attempt, lease, node, wake_at, deadline, result_hash, code,
		schema_version, created_at, updated_at)
	VALUES ('t', 'old', 'mail.send/send', 'k:old', 'fp', 'user:ada', '', '', 'cli', '', '', '', '["private"]',
		'1.0.0', 'sha256:p', '', 'sha256:i', 1, 'running', 1, 'lease', 'gone', 0, 0, '', '', '', 1770091506789012, 1770091506789012)`,
}

// oldBody is a statement for each of both dialects: they have no literal of bytes in common.
func oldBody(server bool) string {
	data := "CAST('{}' AS BLOB)"
	if server {
		data = "'{}'"
	}
	return `INSERT INTO bodies (tenant, hash, data, expires_at) VALUES ('t', '` + canon.Sum([]byte("{}")) + `', ` + data + `, 0)`
}

// upgraded needs no bundle but its engine.
func upgraded(t *testing.T, b *bundle) {
	st := b.engine.Old(t, append(slices.Clone(old), oldBody(b.engine.Chains))...)
	defer st.Close()
	want := store.CallRow{
		Tenant: "t", ID: "old", Operation: "mail.send/send", Key: "k:old", Fingerprint: "fp", Principal: "user:ada", Origin: "cli",
		Labels: []string{"private"}, Version: "1.0.0", PackageDigest: "sha256:p", InputHash: "sha256:i", Effectful: true, CreatedAt: epoch,
		State: store.CallRunning, Attempt: 1, Lease: "lease", Node: "gone", UpdatedAt: epoch,
	}
	got, err := st.Call(t.Context(), "t", "old")
	if err != nil || got == nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("the old call is %+v, %v\nwant %+v", got, err, want)
	}
	if data, err := st.Body(t.Context(), "t", canon.Sum([]byte("{}"))); err != nil || string(data) != "{}" {
		t.Errorf("the old body is %q, %v", data, err)
	}
	// It goes on like one of today.
	row := begin(t, st, want, newEffect(want, "sha256:q"))
	checkEffects(t, st, want, row)
	insertApproval(t, st, newApproval())
	insertPlan(t, st, newPlan(), store.StepRow{N: 1})
	insertSessions(t, st, newSession("sess_1"))
	register(t, st, newArtifact("sess_1", "art_1"))
	spend(t, st, 1, 1, 1, true)
	insertKBs(t, st, newKB("notes"))
	putDocument(t, st, newDocument("notes", "doc_1"), chunk(0, "one"))
	insertSecretKey(t, st, store.SecretKeyRow{N: 1, Master: "m", Wrapped: []byte{1}, CreatedAt: epoch}, true)
	putSecret(t, st, newSecret(1), true)
	write(t, st, func(tx store.Tx) error {
		return tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "t", Owner: "o", Scope: "s", Namespace: "n", Key: "k"}, Labels: []string{}, UpdatedAt: epoch})
	})
	move(t, st, &want, store.CallUnknown)
	write(t, st, appendNote("one"))
	// The approval, the plan and the end of the call came without an entry, and what is signed is signed with one.
	if got := len(checkChains(t, st)); got != 4 {
		t.Errorf("the chain has %d entries, want 4", got)
	}
}

// entriesNameBodies has an upgrade find what models were asked and answered, by the entries of an
// earlier release. What was not kept, and what an entry about something else names, is none of it.
func entriesNameBodies(t *testing.T, b *bundle) {
	hash := canon.Sum([]byte("{}"))
	entry := func(seq, kind, body string) string {
		return `INSERT INTO entries (chain, seq, at, tenant, kind, subject, principal, body, prev, hash) VALUES (1, ` + seq + `, 1, 't', '` + kind + `', 'call', 'ada', '` + body + `', '', '` + seq + `')`
	}
	st := b.engine.Old(t, oldBody(b.engine.Chains), entry("1", "model.called", `{"prompt_hash":"`+hash+`","answer_hash":"sha256:gone"}`),
		entry("2", "call.succeeded", `{"prompt_hash":"`+hash+`"}`), entry("3", "model.called", "null"))
	defer st.Close()
	left, err := st.Unerased(t.Context(), store.Aliases{Tenant: "t", ID: "ada", Name: "ada", Typed: "user::ada", Type: "user"})
	if err != nil || left["model_bodies"] != 1 {
		t.Errorf("%v of ada is left to erase, %v, want 1 of model_bodies", left, err)
	}
}
