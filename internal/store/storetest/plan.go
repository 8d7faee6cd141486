package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
)

func newPlan() store.PlanRow {
	id := uuid.Must(uuid.NewV7()).String()
	return store.PlanRow{Tenant: "t", ID: id, Key: "c:" + id, Labels: []string{}, CreatedAt: epoch, State: store.PlanQueued, UpdatedAt: epoch}
}

func insertPlan(t *testing.T, st store.Store, row store.PlanRow, steps ...store.StepRow) {
	t.Helper()
	if len(steps) == 0 { // no plan has none
		steps = []store.StepRow{{N: 1, StepID: "only", Operation: "mail/send"}}
	}
	write(t, st, func(tx store.Tx) error {
		prior, err := tx.InsertPlan(row, steps)
		if prior != nil {
			return fmt.Errorf("the key of plan %s was seen", row.ID)
		}
		return err
	})
}

func planRoundTrip(t *testing.T, b *bundle) {
	row := store.PlanRow{
		Tenant: "t", ID: "id", Key: "k:ключ", Agent: "mail.plan/plan", ProposalCall: "call", Hash: "sha256:h", Principal: "user:ada",
		RequestHash: "sha256:q", Labels: []string{"private", "untrusted"}, CreatedAt: epoch,
		State: store.PlanFailed, Node: "node", Lease: "lease", Code: "timeout", Message: "«send»: no answer", UpdatedAt: epoch.Add(time.Microsecond),
	}
	step := store.StepRow{
		Tenant: "t", PlanID: "id", N: 1, StepID: "read", Operation: "mail.read/list", Version: "1.2.3", PackageDigest: "sha256:p",
		Input: `{"to": "é", "n": 1.0}`, Needs: []string{}, Gate: "none", Why: "",
	}
	var steps []store.StepRow
	for n := range 12 { // numbers are not texts
		step.N, step.StepID = int64(n)+1, fmt.Sprintf("s%d", n+1)
		steps = append(steps, step)
	}
	steps[11].Needs, steps[11].Gate, steps[11].Why = []string{"s2", "s1"}, "human_apply", "it sends mail"
	shuffled := slices.Clone(steps)
	slices.Reverse(shuffled)
	insertPlan(t, b, row, shuffled...)
	other := newPlan()
	insertPlan(t, b, other, steps[0]) // a plan's steps are that plan's

	check := func(got *store.PlanRow, err error) {
		t.Helper()
		if err != nil || got == nil || !reflect.DeepEqual(*got, row) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, row)
		}
	}
	check(b.Plan(t.Context(), "t", "id"))
	check(b.PlanByKey(t.Context(), "t", "k:ключ"))
	if got, err := b.Plan(t.Context(), "u", "id"); got != nil || err != nil {
		t.Errorf("another tenant got %+v, %v", got, err)
	}
	if got, err := b.PlanByKey(t.Context(), "t", "k:"); got != nil || err != nil {
		t.Errorf("another key got %+v, %v", got, err)
	}
	if got, err := b.Steps(t.Context(), "t", "id"); err != nil || !sameKept(got, steps...) {
		t.Errorf("the steps are %+v, %v\nwant %+v", got, err, steps)
	}
	if got, err := b.Steps(t.Context(), "u", "id"); len(got) != 0 || err != nil {
		t.Errorf("another tenant got %+v, %v", got, err)
	}
	if got, err := b.Steps(t.Context(), "t", other.ID); err != nil || len(got) != 1 || got[0].PlanID != other.ID {
		t.Errorf("the other plan's steps are %+v, %v", got, err)
	}
}

func planKeyRace(t *testing.T, b *bundle) {
	handles := []store.Store{b, b.another(t), b.another(t)}
	const n = 50
	var mu sync.Mutex
	var winners, told []string
	together(n, func(i int) {
		row := newPlan()
		row.Key = "k:same"
		var prior *store.PlanRow
		err := handles[i%len(handles)].Write(ctx(), func(tx store.Tx) (err error) {
			prior, err = tx.InsertPlan(row, []store.StepRow{{N: 1, StepID: row.ID}})
			return err
		})
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if prior == nil {
			winners = append(winners, row.ID)
		} else {
			told = append(told, prior.ID)
		}
	})
	slices.Sort(told)
	told = slices.Compact(told)
	if len(winners) != 1 || !slices.Equal(told, winners) {
		t.Fatalf("%v burnt the key, and others were told of %v", winners, told)
	}
	plans, err := b.Plans(t.Context(), store.PlanFilter{})
	if err != nil || len(plans) != 1 {
		t.Errorf("the plans are %+v, %v", plans, err)
	}
	steps, err := b.Steps(t.Context(), "t", winners[0])
	if err != nil || len(steps) != 1 || steps[0].StepID != winners[0] {
		t.Errorf("the steps are %+v, %v", steps, err)
	}
	// The key is one tenant's.
	row := newPlan()
	row.Key, row.Tenant = "k:same", "u"
	insertPlan(t, b, row)
}

func planFence(t *testing.T, b *bundle) {
	row := newPlan()
	row.State, row.Lease = store.PlanRunning, "lease"
	insertPlan(t, b, row)
	next := row
	next.State, next.Node, next.Lease, next.Code, next.Message, next.UpdatedAt = store.PlanFailed, "n", "", "timeout", "late", epoch.Add(time.Second)
	update := func(f store.PlanFence, next store.PlanRow) (won bool) {
		write(t, b, func(tx store.Tx) (err error) { won, err = tx.UpdatePlan(f, next); return err })
		return won
	}
	for name, change := range map[string]func(*store.PlanFence){
		"tenant": func(f *store.PlanFence) { f.Tenant = "u" },
		"id":     func(f *store.PlanFence) { f.ID = "x" },
		"state":  func(f *store.PlanFence) { f.State = store.PlanQueued },
		"lease":  func(f *store.PlanFence) { f.Lease = "stolen" },
	} {
		f := row.Fence()
		change(&f)
		if update(f, next) {
			t.Errorf("a wrong %s won", name)
		}
	}
	changed := next
	changed.Key, changed.Hash, changed.Principal, changed.Labels = "k", "h", "p", []string{"x"}
	if !update(row.Fence(), changed) {
		t.Error("the right fence lost")
	}
	if update(row.Fence(), changed) {
		t.Error("the fence won twice")
	}
	if got, err := b.Plan(t.Context(), row.Tenant, row.ID); err != nil || !reflect.DeepEqual(*got, next) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, next)
	}
}

func planFilters(t *testing.T, b *bundle) {
	var all []store.PlanRow
	for range 5 {
		all = append(all, newPlan())
	}
	all[1].State, all[1].Node = store.PlanRunning, "node"
	all[2].State, all[2].Node = store.PlanSucceeded, "node"
	all[4].Tenant = "u"
	for _, row := range all {
		insertPlan(t, b, row)
	}
	for _, test := range []struct {
		filter store.PlanFilter
		want   []int
	}{
		{store.PlanFilter{}, []int{4, 3, 2, 1, 0}},
		{store.PlanFilter{Tenant: "u"}, []int{4}},
		{store.PlanFilter{State: store.PlanQueued}, []int{4, 3, 0}},
		{store.PlanFilter{State: store.PlanSucceeded}, []int{2}},
		{store.PlanFilter{Node: "node"}, []int{2, 1}},
		{store.PlanFilter{Node: "node", State: store.PlanRunning}, []int{1}},
		{store.PlanFilter{Tenant: "t", Before: all[3].ID, Limit: 2}, []int{2, 1}},
		{store.PlanFilter{Tenant: "t", Limit: 1}, []int{3}},
	} {
		got, err := b.Plans(t.Context(), test.filter)
		var want []store.PlanRow
		for _, i := range test.want {
			want = append(want, all[i])
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %+v, %v\nwant %+v", test.filter, got, err, want)
		}
	}
}

// plansReady: every combination of what was asked about a plan and how a step of it
// stands, the oldest first, in pages.
func plansReady(t *testing.T, b *bundle) {
	asked := [][]store.ApprovalState{nil, {store.ApprovalOpen}, {store.ApprovalApproved}, {store.ApprovalDenied, store.ApprovalOpen}, {store.ApprovalOpen, store.ApprovalDenied}}
	steps := []store.CallState{"", store.CallPending, store.CallQueued, store.CallRunning, store.CallInProgress, store.CallSucceeded, store.CallUnknown}
	holds := []store.CallState{store.CallPending, store.CallRunning, store.CallInProgress}
	for _, state := range []store.PlanState{store.PlanPending, store.PlanQueued} {
		var want []string
		for _, answers := range asked {
			for _, step := range steps {
				for _, of := range []string{"the step's", "another call's"} {
					plan := newPlan()
					plan.State = state
					insertPlan(t, b, plan, store.StepRow{N: 1})
					for _, answer := range answers {
						row := newApproval()
						row.SubjectKind, row.SubjectID, row.State = store.SubjectPlan, plan.ID, answer
						insertApproval(t, b, row)
					}
					if len(answers) == 0 { // that of something else which has the same id is none of the plan's
						row := newApproval()
						row.SubjectID = plan.ID
						insertApproval(t, b, row)
					}
					if step != "" {
						call := newCall()
						call.Plan, call.State = plan.ID, step
						if of == "the step's" {
							call.Key = fmt.Sprintf("p:%s/one", plan.ID)
						}
						write(t, b, insert(call))
					}
					open := len(answers) > 0 && answers[len(answers)-1] == store.ApprovalOpen
					if !open && !(of == "the step's" && slices.Contains(holds, step)) {
						want = append(want, plan.ID)
					}
				}
			}
		}
		var got []string
		f := store.PlanFilter{State: state, Ready: true, Limit: 4}
		for {
			rows, err := b.Plans(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				got, f.After = append(got, row.ID), row.ID
			}
			if len(rows) < f.Limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d plans can go on, want %d:\n%q\n%q", state, len(got), len(want), got, want)
		}
	}
}
