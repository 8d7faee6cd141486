package kernel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// A halting store stops the first transaction that reads a plan right after it.
type halting struct {
	store.Store
	once      sync.Once
	meanwhile func()
}

func (h *halting) Write(ctx context.Context, fn func(store.Tx) error) error {
	return h.Store.Write(ctx, func(tx store.Tx) error { return fn(haltingTx{tx, h}) })
}

type haltingTx struct {
	store.Tx
	h *halting
}

func (t haltingTx) Plan(ctx context.Context, tenant, id string) (*store.PlanRow, error) {
	defer t.h.once.Do(t.h.meanwhile)
	return t.Tx.Plan(ctx, tenant, id)
}

// A step does not begin on one node while its plan is cancelled on another.
func TestAStepDoesNotBeginWhileAnotherNodeCancelsItsPlan(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	var nodes [2]*postgres.Store
	for i := range nodes {
		st, err := postgres.Open(t.Context(), url, postgres.Options{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		nodes[i] = st
	}
	const id = "0192aaaa-0000-7000-8000-000000000009"
	at := time.Now().UTC().Truncate(time.Microsecond)
	row := store.PlanRow{Tenant: "local", ID: id, Key: "c:" + id, Principal: "ann", State: store.PlanRunning, Node: nodes[0].Node(), Lease: "l", CreatedAt: at, UpdatedAt: at}
	if err := nodes[1].Write(t.Context(), func(tx store.Tx) error {
		_, err := tx.InsertPlan(row, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	st := &halting{Store: nodes[0], meanwhile: func() {
		next := row
		next.State, next.Node, next.Lease = store.PlanCancelled, "", ""
		if err := nodes[1].Write(context.Background(), func(tx store.Tx) error {
			_, err := tx.UpdatePlan(row.Fence(), next)
			return err
		}); err != nil {
			t.Error(err)
		}
	}}
	l, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rules := []policy.Rule{{Effects: []string{"*"}}}
	b := newBundle(t, rules, target(t, "mail", "send", operator("a")))
	b.Kernel = kernel.New(kernel.Options{Registry: b, Policy: b.Kernel.Policy, Ledger: l, Runner: b, Services: b.broker})
	call := asking("mail/send", `{}`)
	call.Plan, call.Trace.Step = id, "s1"
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeCancelled)
	if n := b.runs.Load(); n != 0 {
		t.Errorf("it ran %d times", n)
	}
}
