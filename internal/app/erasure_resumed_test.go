package app_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
)

// An ending context ends when it was asked so many times whether it has: a write asks once.
type ending struct {
	context.Context
	after atomic.Int64
}

// Err implements [context.Context].
func (e *ending) Err() error {
	if e.after.Add(-1) < 0 {
		return context.Canceled
	}
	return e.Context.Err()
}

// TestAnErasureInterruptedAnywhereIsFinished interrupts the erasure of a person before its first write, of
// another before its second, and so on, until one needs no more. Each has more than two pages of all that an
// erasure removes. What goes on with it leaves nothing, and only then says that it is done.
func TestAnErasureInterruptedAnywhereIsFinished(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	api, ctx := a.As(a.Principal).Admin(), t.Context()
	for n := int64(0); ; n++ {
		if n > 200 {
			t.Fatal("an erasure takes more than 200 writes")
		}
		name := fmt.Sprint("person-", n)
		who := store.Aliases{Tenant: "local", ID: name, Name: name, Typed: "user::" + name, Type: "user", Peers: []string{store.PeerOn("mail", "peer of "+name)}}
		if err := a.Store.Write(ctx, func(tx store.Tx) error { return fillPersonal(tx, name) }); err != nil {
			t.Fatal(err)
		}
		had, err := a.Store.Unerased(ctx, who)
		if err != nil {
			t.Fatal(err)
		}
		for kind, rows := range had {
			if rows == 0 {
				t.Fatalf("there is nothing of %s to erase: fill it", kind)
			}
		}
		broken := &ending{Context: ctx}
		broken.after.Store(n)
		e, err := api.Erase(broken, name, false)
		if err == nil {
			if e.DoneAt.IsZero() || n < 15 {
				t.Errorf("uninterrupted, an erasure is done: %t, after %d writes, want at least 15", !e.DoneAt.IsZero(), n)
			}
			nothingIsLeft(t, a, who, e)
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted at %d: %v", n, err)
		}
		e = resumed(t, a, name)
		nothingIsLeft(t, a, who, e)
	}
}

// resumed goes on with the erasure of a person as a host does that stays, and returns it.
func resumed(t *testing.T, a *app.App, name string) host.Erasure {
	t.Helper()
	api := a.As(a.Principal).Admin()
	find := func() (e host.Erasure) {
		all, err := api.Erasures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Principal == name {
				e = one
			}
		}
		return e
	}
	if e := find(); e.ID == "" || !e.DoneAt.IsZero() {
		// It ended before it began, or after it was done.
		e, err := api.Erase(t.Context(), name, false)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	ids, err := a.Host.Removals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := a.Host.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	return find()
}

func nothingIsLeft(t *testing.T, a *app.App, who store.Aliases, e host.Erasure) {
	t.Helper()
	if e.DoneAt.IsZero() {
		t.Errorf("the erasure of %s is not done: %+v", who.Name, e)
	}
	if left, err := a.Store.Unerased(t.Context(), who); store.AnyLeft(left) || err != nil {
		t.Errorf("of %s %v is left, %v", who.Name, left, err)
	}
	if where := found(t, a, a.Home, ""); len(where) > 0 {
		t.Errorf("after the erasure of %s what they had is found in %q", who.Name, where)
	}
}

// fillPersonal makes a person have more than two pages of what is removed by the page, and one of all else.
func fillPersonal(tx store.Tx, who string) error {
	const pages = 2*50 + 1
	now, none := time.Now(), []string{}
	text := func(what string, n int) string { return fmt.Sprintf("%s: %s %d of %s", personal, what, n, who) }
	body := func(what string, n int) (string, error) {
		return tx.PutBody("local", []byte(text(what, n)), time.Time{})
	}
	var errs []error
	must := func(err error) { errs = append(errs, err) }
	must(tx.PutToken(store.TokenRow{Tenant: "local", ID: "token-" + who, Hash: canon.Sum([]byte(who)), Name: text("token", 0), PrincipalType: "user", PrincipalID: who, CreatedAt: now}))
	must(tx.PutIdentity(store.IdentityRow{Tenant: "local", Provider: "mail", ExternalID: "peer of " + who, PrincipalType: "user", PrincipalID: who, By: "owner", At: now}))
	must(tx.PutUser(store.UserRow{Tenant: "local", ID: "user-" + who, PrincipalType: "user", PrincipalID: who, By: "owner", CreatedAt: now}))
	must(tx.InsertBrowserSession(store.BrowserSessionRow{Tenant: "local", ID: "browser-" + who, Hash: canon.Sum([]byte(who)), User: "user-" + who, CreatedAt: now, SignedInAt: now, ExpiresAt: now.Add(time.Hour)}))
	must(tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "local", Owner: "notes", Scope: "user::" + who, Namespace: "n", Key: "k"}, Value: []byte(text("value", 0)), Labels: none, UpdatedAt: now}))
	_, err := tx.InsertSecretKey(store.SecretKeyRow{N: 1, Master: "m", Wrapped: []byte{1}, CreatedAt: now})
	must(err)
	_, err = tx.PutSecret(store.SecretRow{SecretName: store.SecretName{Tenant: "local", Owner: "notes", Scope: "user", Subject: "user::" + who, Name: "s"}, Ciphertext: []byte(text("secret", 0)), Key: 1, UpdatedAt: now})
	must(err)
	_, err = tx.InsertAgent(store.AgentRow{Tenant: "local", ID: "agent-" + who, State: store.AgentStopped, Settings: "{}", CreatedBy: who, CreatedAt: now, UpdatedAt: now})
	must(err)
	must(tx.PutMemory(store.MemoryRow{Tenant: "local", Agent: "agent-" + who, Key: "k", Content: text("memory", 0), Terms: personal, Labels: none, UpdatedAt: now}))
	must(tx.InsertSchedule(store.ScheduleRow{Tenant: "local", ID: "feed-" + who, OwnerType: "user", OwnerID: who, Scopes: none, Operation: "upper/upper", CreatedAt: now, Spec: "every 1h", Misfire: "skip",
		Overlap: "skip", Overlay: "{}", Input: `"` + text("feed", 0) + `"`, State: store.SchedulePaused, NextAt: now.Add(time.Hour), WakeAt: now.Add(time.Hour), UpdatedAt: now}))
	_, err = tx.InsertTick(store.TickRow{Tenant: "local", ScheduleID: "feed-" + who, At: now, Since: now, Outcome: store.TickRefused, UpdatedAt: now})
	must(err)
	_, err = tx.InsertKB(store.KBRow{Tenant: "local", ID: "kb-" + who, Name: text("base", 0), CreatedBy: who, Labels: none, CreatedAt: now})
	must(err)
	for n := range pages {
		id := fmt.Sprintf("%s-%03d", who, n)
		request, err1 := body("request", n)
		result, err2 := body("result", n)
		call := store.CallRow{Tenant: "local", ID: "call-" + id, Operation: "upper/upper", Key: "k:" + id, Principal: who, State: store.CallSucceeded, Attempt: 1,
			RequestHash: request, ResultHash: result, Fingerprint: "none", CreatedAt: now, UpdatedAt: now}
		_, err3 := tx.InsertCall(call)
		planned, err4 := body("plan", n)
		_, err5 := tx.InsertPlan(store.PlanRow{Tenant: "local", ID: "plan-" + id, Key: "c:" + id, Principal: who, Labels: none, State: store.PlanSucceeded, RequestHash: planned, CreatedAt: now, UpdatedAt: now},
			[]store.StepRow{{N: 1, StepID: "s", Operation: "upper/upper", Input: `"` + text("step", n) + `"`, Needs: none}})
		prompt, err6 := body("prompt", n)
		err7 := tx.NameBody(store.EntryBodyRow{Tenant: "local", Hash: prompt, Subject: "model:" + id, Principal: who})
		sess := "sess_" + id
		err8 := tx.InsertSession(store.SessionRow{Tenant: "local", ID: sess, Name: text("session", n), Kind: "investigation", Owner: who, State: store.SessionOpen, Labels: none, CreatedAt: now, UpdatedAt: now})
		data := []byte(text("artifact", n))
		_, _, _, err9 := tx.InsertArtifact(store.ArtifactRow{Tenant: "local", SessionID: sess, ID: "art", Type: "text", Name: "a", SHA256: canon.Sum(data)[len("sha256:"):], Size: int64(len(data)),
			Parents: none, Labels: none, Metadata: "{}", CreatedAt: now}, data)
		_, err10 := tx.PutDocument(store.DocumentRow{Tenant: "local", KB: "kb-" + who, ID: "doc-" + id, SourceID: id, Principal: who, Extraction: "{}", Attributes: "{}", Labels: none, CreatedAt: now, UpdatedAt: now,
			Text: text("document", n)}, []store.ChunkRow{{N: 1, Text: text("document", n), Terms: personal}})
		must(errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10))
	}
	return errors.Join(errs...)
}
