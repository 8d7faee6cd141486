package sqlite

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// What is asked again and again must not read all there ever was.
func TestQuestionsOfSweepersHaveAnIndex(t *testing.T) {
	dir := t.TempDir()
	made, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(dir, "_pragma=query_only(1)"))
	if err != nil {
		t.Fatal(err)
	}
	var asked string
	st := sqlstore.New(sqlstore.Engine{Read: db, Rebind: func(query string) string { asked = query; return query }})
	defer st.Close()

	for _, test := range []struct {
		name string
		ask  func() error
		want string
	}{
		{"queued calls", func() error { _, err := st.Calls(t.Context(), store.CallFilter{State: store.CallQueued}); return err }, "calls_queued"},
		{"calls that are due", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{State: store.CallInProgress, DueBefore: time.Now()})
			return err
		}, "calls_due"},
		{"running calls of a node", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{State: store.CallRunning, Node: "n", Cancelled: true})
			return err
		}, "calls_running"},
		{"calls of a plan", func() error { _, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", Plan: "p"}); return err }, "calls_plan"},
		{"calls of a state", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", State: store.CallUnknown})
			return err
		}, "calls_state"},
		{"calls of a principal", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", Principal: "p"})
			return err
		}, "calls_principal"},
		{"decisions", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", Decisions: true})
			return err
		}, "calls_decision"},
		{"calls of a principal in a state", func() error {
			_, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", Principal: "p", State: store.CallSucceeded})
			return err
		}, "calls_principal"},
		{"calls of a call", func() error { _, err := st.Calls(t.Context(), store.CallFilter{Tenant: "t", Parent: "p"}); return err }, "calls_parent"},
		{"approvals that expire", func() error {
			_, err := st.Approvals(t.Context(), store.ApprovalFilter{State: store.ApprovalOpen, ExpiresBefore: time.Now()})
			return err
		}, "approvals_open"},
		{"approvals of a call", func() error {
			_, err := st.Approvals(t.Context(), store.ApprovalFilter{Tenant: "t", SubjectKind: store.SubjectCall, SubjectID: "c"})
			return err
		}, "approvals_subject"},
		{"the approval of a token", func() error { _, err := st.ApprovalByToken(t.Context(), "t", "h"); return err }, "approvals_token"},
		{"schedules that are due", func() error {
			_, err := st.Schedules(t.Context(), store.ScheduleFilter{DueBefore: time.Now()})
			return err
		}, "schedules_due"},
		{"queued plans", func() error { _, err := st.Plans(t.Context(), store.PlanFilter{State: store.PlanQueued}); return err }, "plans_queued"},
		{"plans that waited", func() error {
			_, err := st.Plans(t.Context(), store.PlanFilter{State: store.PlanPending, Ready: true, Limit: 100})
			return err
		}, "plans_pending"},
		{"what plans that waited were asked", func() error {
			_, err := st.Plans(t.Context(), store.PlanFilter{State: store.PlanPending, Ready: true, Limit: 100})
			return err
		}, "approvals_subject"},
		{"the steps of plans that waited", func() error {
			_, err := st.Plans(t.Context(), store.PlanFilter{State: store.PlanPending, Ready: true, Limit: 100})
			return err
		}, "calls_plan"},
		{"running plans of a node", func() error {
			_, err := st.Plans(t.Context(), store.PlanFilter{State: store.PlanRunning, Node: "n"})
			return err
		}, "plans_running"},
	} {
		if err := test.ask(); err != nil {
			t.Fatal(err)
		}
		if steps := explain(t, db, asked); !strings.Contains(steps, "INDEX "+test.want+"\n") && !strings.Contains(steps, "INDEX "+test.want+" ") {
			t.Errorf("%s: %swant the index %s", test.name, steps, test.want)
		}
	}
}

// explain returns the steps in which SQLite answers a question, a line for each.
func explain(t *testing.T, db *sql.DB, query string) (steps string) {
	t.Helper()
	args := slices.Repeat([]any{"x"}, strings.Count(query, "?"))
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps += step + "\n"
	}
	return steps
}
