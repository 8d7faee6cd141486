package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func linksInOrder(t *testing.T, b *bundle) {
	for i := range 3 {
		write(t, b, func(tx store.Tx) error {
			tx.Append(note(fmt.Sprintf("%d.1", i)))
			tx.Append(note(fmt.Sprintf("%d.2", i)))
			return nil
		})
	}
	var got []string
	for _, e := range checkChains(t, b) {
		got = append(got, e.Subject)
	}
	if want := []string{"0.1", "0.2", "1.1", "1.2", "2.1", "2.2"}; !slices.Equal(got, want) {
		t.Errorf("subjects are %v, want %v", got, want)
	}
	e, err := b.Entry(t.Context(), 1, 1)
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	want := note("0.1")
	if !e.At.Equal(want.At) || e.Tenant != want.Tenant || e.Kind != want.Kind || e.Principal != want.Principal || string(e.Body) != string(want.Body) {
		t.Errorf("entry 1 is %+v, want the fields of %+v", e, want)
	}
}

// together runs op in n goroutines at once, and waits.
func together(n int, op func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; op(i) })
	}
	close(start)
	wg.Wait()
}

func oneChain(t *testing.T, b *bundle) {
	const writers, each = 16, 25
	together(writers, func(w int) {
		for i := range each {
			if err := b.Write(ctx(), appendNote(fmt.Sprintf("%d/%03d", w, i))); err != nil {
				t.Error(err)
			}
		}
	})
	chain := checkChains(t, b)
	if len(chain) != writers*each {
		t.Fatalf("the chain has %d entries, want %d", len(chain), writers*each)
	}
	last := make(map[string]string)
	for _, e := range chain {
		writer, _, _ := strings.Cut(e.Subject, "/")
		if e.Subject <= last[writer] {
			t.Fatalf("%s comes after %s", e.Subject, last[writer])
		}
		last[writer] = e.Subject
	}
}

func handles(t *testing.T, b *bundle) {
	stores := []store.Store{b, b.another(t), b.another(t)}
	const writers, each = 12, 25
	together(writers, func(w int) {
		for i := range each {
			if err := stores[w%len(stores)].Write(ctx(), appendNote(fmt.Sprintf("%d/%03d", w, i))); err != nil {
				t.Error(err)
			}
		}
	})
	chains := checkChains(t, b)
	if got := len(chains); got != writers*each {
		t.Errorf("there are %d entries, want %d", got, writers*each)
	}
	// A writer's entries keep their order, and are in one chain.
	last, where := make(map[string]string), make(map[string]int64)
	for _, e := range chains {
		writer, _, _ := strings.Cut(e.Subject, "/")
		if e.Subject <= last[writer] || where[writer] != 0 && where[writer] != e.Chain {
			t.Fatalf("%s in chain %d comes after %s in chain %d", e.Subject, e.Chain, last[writer], where[writer])
		}
		last[writer], where[writer] = e.Subject, e.Chain
	}
	want := 1
	if b.engine.Chains {
		want = len(stores)
	}
	if heads, err := b.Chains(t.Context()); err != nil || len(heads) != want {
		t.Errorf("the chains are %+v, %v, want %d", heads, err, want)
	}
}

var errRefused = errors.New("refused")

func failingClosure(t *testing.T, b *bundle) {
	const n = 40
	rows := make([]store.CallRow, n)
	for i := range rows {
		rows[i] = newCall()
	}
	together(n, func(i int) {
		err := b.Write(ctx(), func(tx store.Tx) error {
			if err := insert(rows[i])(tx); err != nil {
				return err
			}
			tx.Append(note(rows[i].ID))
			if i%4 == 0 {
				return fmt.Errorf("call %d: %w", i, errRefused)
			}
			return nil
		})
		if (i%4 == 0) != errors.Is(err, errRefused) || i%4 != 0 && err != nil {
			t.Errorf("write %d ended with %v", i, err)
		}
	})
	if got, want := len(checkChains(t, b)), n*3/4; got != want {
		t.Errorf("the chain has %d entries, want %d", got, want)
	}
	for i, row := range rows {
		got, err := b.Call(t.Context(), row.Tenant, row.ID)
		if err != nil {
			t.Fatal(err)
		}
		if (got != nil) != (i%4 != 0) {
			t.Errorf("the row of write %d is there: %t", i, got != nil)
		}
	}
}

func panickingClosure(t *testing.T, b *bundle) {
	together(8, func(i int) {
		err := b.Write(ctx(), func(tx store.Tx) error {
			tx.Append(note("n"))
			if i == 3 {
				panic("at the disco")
			}
			return nil
		})
		switch {
		case i != 3 && err != nil:
			t.Errorf("a neighbour got %v", err)
		case i == 3 && (err == nil || !strings.Contains(err.Error(), "at the disco")):
			t.Errorf("the panic became %v", err)
		}
	})
	if got := len(checkChains(t, b)); got != 7 {
		t.Errorf("the chain has %d entries, want 7", got)
	}
}

func unstorableEntry(t *testing.T, b *bundle) {
	for _, e := range []plugin.Entry{{Subject: "no kind"}, {Kind: "k", Subject: "nul\x00"}, {Kind: "k", Principal: "\xff"}, {Kind: "k", Body: []byte("\"\xff\"")}} {
		if err := b.Write(t.Context(), func(tx store.Tx) error { tx.Append(e); return nil }); err == nil {
			t.Errorf("%+v was kept", e)
		}
	}
	write(t, b, appendNote("one"))
	checkChains(t, b)
}

func unstorableText(t *testing.T, b *bundle) {
	call := newCall()
	write(t, b, insert(call))
	for _, text := range []string{"nul\x00", "\xff"} {
		for name, put := range map[string]func(store.Tx){
			"call":         func(tx store.Tx) { row := newCall(); row.Principal = text; tx.InsertCall(row) },
			"label":        func(tx store.Tx) { row := newCall(); row.Labels = []string{text}; tx.InsertCall(row) },
			"cancellation": func(tx store.Tx) { tx.CancelCall("t", text) },
			"effect":       func(tx store.Tx) { tx.InsertEffect(call.Fence(), newEffect(call, text)) },
			"fence":        func(tx store.Tx) { tx.InsertEffect(store.Fence{Lease: text}, newEffect(call, "sha256:q")) },
			"late effect":  func(tx store.Tx) { tx.LateEffect(store.EffectRow{Tenant: text}) },
			"approval":     func(tx store.Tx) { row := newApproval(); row.Why = text; tx.InsertApproval(row) },
			"decision":     func(tx store.Tx) { tx.UpdateApproval(store.ApprovalOpen, store.ApprovalRow{Reason: text}) },
			"plan":         func(tx store.Tx) { row := newPlan(); row.Message = text; tx.InsertPlan(row, nil) },
			"plan's label": func(tx store.Tx) { row := newPlan(); row.Labels = []string{text}; tx.InsertPlan(row, nil) },
			"step":         func(tx store.Tx) { tx.InsertPlan(newPlan(), []store.StepRow{{N: 1, Input: text}}) },
			"step's need":  func(tx store.Tx) { tx.InsertPlan(newPlan(), []store.StepRow{{N: 1, Needs: []string{text}}}) },
			"policy":       func(tx store.Tx) { tx.PutPolicy(store.PolicyRow{Tenant: "t", Text: text}) },
			"identity":     func(tx store.Tx) { tx.PutIdentity(store.IdentityRow{Tenant: "t", ExternalID: text}) },
			"scope":        func(tx store.Tx) { tx.PutIdentity(store.IdentityRow{Tenant: "t", Scopes: []string{text}}) },
		} {
			if err := b.Write(t.Context(), func(tx store.Tx) error { put(tx); return nil }); err == nil {
				t.Errorf("%q was kept in a %s", text, name)
			}
		}
	}
	write(t, b, func(tx store.Tx) error { // nor does asking for it do any harm
		for _, text := range []string{"nul\x00", "\xff"} {
			if got, err := tx.Call(ctx(), "t", text); got != nil || err != nil {
				t.Errorf("asked for %q: %+v, %v", text, got, err)
			}
			if got, err := tx.Approvals(ctx(), store.ApprovalFilter{SubjectID: text}); got != nil || err != nil {
				t.Errorf("asked for %q: %+v, %v", text, got, err)
			}
		}
		return nil
	})
	checkEffects(t, b, call)
	calls, err := b.Calls(t.Context(), store.CallFilter{})
	if err != nil || len(calls) != 1 {
		t.Errorf("the calls are %+v, %v", calls, err)
	}
	plans, err := b.Plans(t.Context(), store.PlanFilter{})
	if err != nil || len(plans) != 0 {
		t.Errorf("the plans are %+v, %v", plans, err)
	}
	if got, err := b.Identities(t.Context(), "t"); err != nil || len(got) != 0 {
		t.Errorf("the identities are %+v, %v", got, err)
	}
}

func passedOver(t *testing.T, b *bundle) {
	row := newCall()
	again := row
	again.Key = "another" // the key is new, the id is not
	write(t, b, insert(row))
	err := b.Write(t.Context(), func(tx store.Tx) error {
		tx.InsertCall(again)
		return nil
	})
	if err == nil {
		t.Error("the write succeeded after one of its statements had failed")
	}
	write(t, b, appendNote("one"))
}

// blocked keeps the committer busy until release is called.
func blocked(t *testing.T, st store.Store) (release func()) {
	t.Helper()
	running, gate, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	begun := sync.OnceFunc(func() { close(running) })
	go func() {
		done <- st.Write(ctx(), func(tx store.Tx) error { begun(); <-gate; return nil })
	}()
	<-running
	return func() {
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func cancelledBefore(t *testing.T, b *bundle) {
	cause := errors.New("gone")
	gone, cancel := context.WithCancelCause(t.Context())
	release := blocked(t, b)
	done := make(chan error, 1)
	waits := make(chan struct{})
	go func() { done <- b.Write(watched{gone, sync.OnceFunc(func() { close(waits) })}, appendNote("never")) }()
	testwait.Receive(t, "the write that waits", waits)
	cancel(cause)
	if err := testwait.Receive(t, "the end of the write", done); !errors.Is(err, cause) {
		t.Errorf("the write ended with %v, want %v", err, cause)
	}
	release()
	if err := b.Write(gone, appendNote("never")); !errors.Is(err, cause) {
		t.Errorf("the next write ended with %v, want %v", err, cause)
	}
	write(t, b, appendNote("one"))
	if got := len(checkChains(t, b)); got != 1 {
		t.Errorf("the chain has %d entries, want 1", got)
	}
}

// A watched context calls done when a caller is about to wait for its end.
type watched struct {
	context.Context
	done func()
}

func (w watched) Done() <-chan struct{} {
	w.done()
	return w.Context.Done()
}

func cancelledDuring(t *testing.T, b *bundle) {
	gone, cancel := context.WithCancel(t.Context())
	err := b.Write(gone, func(tx store.Tx) error {
		cancel()
		tx.Append(note("one"))
		_, err := tx.Call(gone, "t", "x")
		return err
	})
	if err != nil {
		t.Errorf("the write ended with %v", err)
	}
	if got := len(checkChains(t, b)); got != 1 {
		t.Errorf("the chain has %d entries, want 1", got)
	}
}
