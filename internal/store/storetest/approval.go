package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
)

func newApproval() store.ApprovalRow {
	id := uuid.Must(uuid.NewV7()).String()
	return store.ApprovalRow{
		Tenant: "t", ID: id, SubjectKind: store.SubjectCall, SubjectID: "call of " + id, TokenHash: "token of " + id, CreatedAt: epoch,
		State: store.ApprovalOpen,
	}
}

func insertApproval(t *testing.T, st store.Store, rows ...store.ApprovalRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		for _, row := range rows {
			if err := tx.InsertApproval(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// unsigned returns approvals without the signatures that the store gives them, which
// those have, and no others, that are closed.
func unsigned(t *testing.T, rows ...store.ApprovalRow) []store.ApprovalRow {
	t.Helper()
	bare := slices.Clone(rows)
	for i := range bare {
		if (bare[i].MAC != "") != bare[i].State.Closed() {
			t.Errorf("approval %s is %s, and its signature is %q", bare[i].ID, bare[i].State, bare[i].MAC)
		}
		bare[i].MAC = ""
	}
	return bare
}

func approvalRoundTrip(t *testing.T, b *bundle) {
	row := store.ApprovalRow{
		Tenant: "t", ID: "id", SubjectKind: store.SubjectPlan, SubjectID: "plan", Binding: "sha256:b", PreviewHash: "sha256:v", TokenHash: "sha256:t",
		Requester: "user:ada", Asker: "os:1000", PackageDigest: "sha256:p", PolicyVersion: "v7", Why: "it sends «mail»", CreatedAt: epoch, ExpiresAt: epoch.Add(time.Hour),
		State: store.ApprovalDenied, DecidedBy: "user:bob", Reason: "no", DecidedAt: epoch.Add(time.Microsecond),
	}
	insertApproval(t, b, row)
	check := func(got *store.ApprovalRow, err error) {
		t.Helper()
		if err != nil || got == nil || unsigned(t, *got)[0] != row {
			t.Errorf("got %+v, %v\nwant %+v", got, err, row)
		}
	}
	check(b.Approval(t.Context(), "t", "id"))
	check(b.ApprovalByToken(t.Context(), "t", "sha256:t"))
	none := func(got *store.ApprovalRow, err error) {
		t.Helper()
		if got != nil || err != nil {
			t.Errorf("got %+v, %v, want nothing", got, err)
		}
	}
	none(b.Approval(t.Context(), "u", "id"))
	none(b.ApprovalByToken(t.Context(), "u", "sha256:t"))
	none(b.ApprovalByToken(t.Context(), "t", "sha256:x"))

	silent := newApproval()
	silent.TokenHash = ""
	another := newApproval()
	another.TokenHash = ""
	insertApproval(t, b, silent, another)
	none(b.ApprovalByToken(t.Context(), "t", ""))
	for name, twin := range map[string]store.ApprovalRow{"an id": {Tenant: "t", ID: "id"}, "a token": {Tenant: "t", ID: "other", TokenHash: "sha256:t"}} {
		if err := b.Write(t.Context(), func(tx store.Tx) error { return tx.InsertApproval(twin) }); err == nil {
			t.Errorf("%s was given to two approvals", name)
		}
	}
	check(b.Approval(t.Context(), "t", "id"))
}

func decide(st store.Store, from store.ApprovalState, next store.ApprovalRow) (won bool, err error) {
	err = st.Write(ctx(), func(tx store.Tx) (err error) { won, err = tx.UpdateApproval(from, next); return err })
	return won, err
}

func approvalUpdate(t *testing.T, b *bundle) {
	row := newApproval()
	insertApproval(t, b, row)
	next := row
	next.State, next.DecidedBy, next.Reason, next.DecidedAt = store.ApprovalApproved, "user:bob", "fine", epoch.Add(time.Minute)
	lost := func(from store.ApprovalState, next store.ApprovalRow) {
		t.Helper()
		if won, err := decide(b, from, next); won || err != nil {
			t.Errorf("from %s: won %t, %v", from, won, err)
		}
	}
	lost(store.ApprovalDenied, next)
	other, none := next, next
	other.Tenant = "u"
	none.ID = "x"
	lost(store.ApprovalOpen, other)
	lost(store.ApprovalOpen, none)
	changed := next
	changed.Binding, changed.SubjectID, changed.TokenHash, changed.ExpiresAt, changed.Requester = "b", "s", "t", epoch, "r"
	if won, err := decide(b, store.ApprovalOpen, changed); !won || err != nil {
		t.Errorf("won %t, %v", won, err)
	}
	lost(store.ApprovalOpen, next)
	if got, err := b.Approval(t.Context(), row.Tenant, row.ID); err != nil || *got != next {
		t.Errorf("got %+v, %v\nwant %+v", got, err, next)
	}
}

func approversRace(t *testing.T, b *bundle) {
	handles := []store.Store{b, b.another(t), b.another(t)}
	outcomes := []store.ApprovalState{store.ApprovalApproved, store.ApprovalDenied, store.ApprovalExpired, store.ApprovalVoid}
	for _, n := range []int{2, 32} {
		row := newApproval()
		insertApproval(t, b, row)
		var mu sync.Mutex
		var winners []store.ApprovalRow
		together(n, func(i int) {
			next := row
			next.State, next.DecidedBy = outcomes[i%len(outcomes)], fmt.Sprint(i)
			won, err := decide(handles[i%len(handles)], store.ApprovalOpen, next)
			if err != nil {
				t.Error(err)
			}
			if won {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, next)
			}
		})
		got, err := b.Approval(t.Context(), row.Tenant, row.ID)
		if err != nil || len(winners) != 1 || unsigned(t, *got)[0] != winners[0] {
			t.Errorf("of %d approvers %+v won, and the approval is %+v, %v", n, winners, got, err)
		}
	}
}

func approvalFilters(t *testing.T, b *bundle) {
	var all []store.ApprovalRow
	for i := range 6 {
		row := newApproval()
		row.SubjectID = [...]string{"a", "b"}[i%2]
		all = append(all, row)
	}
	all[0].ExpiresAt = epoch
	all[1].ExpiresAt = epoch.Add(time.Second)
	all[2].State, all[2].ExpiresAt = store.ApprovalExpired, epoch
	all[3].SubjectKind = store.SubjectPlan
	all[5].Tenant = "u"
	insertApproval(t, b, all...)
	for _, test := range []struct {
		filter store.ApprovalFilter
		want   []int
	}{
		{store.ApprovalFilter{}, []int{5, 4, 3, 2, 1, 0}},
		{store.ApprovalFilter{Tenant: "u"}, []int{5}},
		{store.ApprovalFilter{Tenant: "t", State: store.ApprovalOpen}, []int{4, 3, 1, 0}},
		{store.ApprovalFilter{State: store.ApprovalExpired}, []int{2}},
		{store.ApprovalFilter{Tenant: "t", SubjectKind: store.SubjectCall, SubjectID: "b"}, []int{1}},
		{store.ApprovalFilter{SubjectKind: store.SubjectPlan}, []int{3}},
		{store.ApprovalFilter{State: store.ApprovalOpen, ExpiresBefore: epoch.Add(time.Second)}, []int{0}},
		{store.ApprovalFilter{ExpiresBefore: epoch.Add(time.Hour)}, []int{2, 1, 0}},
		{store.ApprovalFilter{ExpiresBefore: epoch}, nil},
		{store.ApprovalFilter{Tenant: "t", Limit: 2}, []int{4, 3}},
		{store.ApprovalFilter{Tenant: "t", Before: all[3].ID, Limit: 2}, []int{2, 1}},
	} {
		got, err := b.Approvals(t.Context(), test.filter)
		var want []store.ApprovalRow
		for _, i := range test.want {
			want = append(want, all[i])
		}
		if err != nil || !slices.Equal(unsigned(t, got...), want) {
			t.Errorf("%+v: got %+v, %v\nwant %+v", test.filter, got, err, want)
		}
	}
}
