package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

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
