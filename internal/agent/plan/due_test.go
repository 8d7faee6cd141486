package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// TestTheOldestPlanIsFoundHoweverManyWait: a person has answered it, and more plans
// than one look goes through were asked about since.
func TestTheOldestPlanIsFoundHoweverManyWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	err := r.Store.Write(t.Context(), func(tx store.Tx) error {
		for n := range 1100 {
			id, state := fmt.Sprintf("%05d", n), store.ApprovalOpen
			if n == 0 {
				state = store.ApprovalApproved
			}
			if _, err := tx.InsertPlan(store.PlanRow{Tenant: "local", ID: id, Key: "c:" + id, Labels: []string{}, CreatedAt: now, State: store.PlanPending, UpdatedAt: now}, nil); err != nil {
				return err
			}
			asked := store.ApprovalRow{Tenant: "local", ID: "a" + id, SubjectKind: store.SubjectPlan, SubjectID: id, TokenHash: id, State: state, CreatedAt: now}
			if err := tx.InsertApproval(asked); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	due, err := r.Due(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != "00000" {
		t.Errorf("%v, %v", due, err)
	}
}
