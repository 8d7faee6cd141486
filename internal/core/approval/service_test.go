package approval_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nodes are two nodes on one database. What the first does in a transaction
// stops at a read, while the second does something.
func nodes(t *testing.T) (first *halting, second store.Store) {
	t.Helper()
	url, home := pgtest.Open(t), t.TempDir()
	var open [2]*postgres.Store
	for i := range open {
		st, err := postgres.Open(t.Context(), url, postgres.Options{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		open[i] = st
	}
	return &halting{Store: open[0]}, open[1]
}

// A halting store stops its transactions after one of their reads.
type halting struct {
	store.Store
	after     int // how many reads more
	meanwhile func()
}

func (h *halting) Write(ctx context.Context, fn func(store.Tx) error) error {
	return h.Store.Write(ctx, func(tx store.Tx) error { return fn(haltingTx{tx, h}) })
}

func (h *halting) read() {
	if h.after--; h.after == 0 {
		h.meanwhile()
	}
}

type haltingTx struct {
	store.Tx
	h *halting
}

func (t haltingTx) Call(ctx context.Context, tenant, id string) (*store.CallRow, error) {
	defer t.h.read()
	return t.Tx.Call(ctx, tenant, id)
}

func (t haltingTx) Approval(ctx context.Context, tenant, id string) (*store.ApprovalRow, error) {
	defer t.h.read()
	return t.Tx.Approval(ctx, tenant, id)
}

const id = "0192aaaa-0000-7000-8000-000000000001"

// waiting puts a call that waits for an approval, and returns the approval's id.
func waiting(t *testing.T, st store.Store) string {
	t.Helper()
	at := time.Now().UTC().Truncate(time.Microsecond)
	asked := approval.New(approval.Question{
		Tenant: "t", SubjectKind: store.SubjectCall, SubjectID: id, Requester: "ann", Asker: "os:1", Binding: "sha256:b", At: at, Expires: at.Add(time.Hour),
	})
	err := st.Write(t.Context(), func(tx store.Tx) error {
		if _, err := tx.InsertCall(store.CallRow{Tenant: "t", ID: id, Operation: "mail/send", Key: "c:" + id, State: store.CallPending, CreatedAt: at, UpdatedAt: at}); err != nil {
			return err
		}
		return asked.Put(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked.Row.ID
}

func service(st store.Store) *approval.Service {
	return &approval.Service{Store: st, May: func(context.Context, *store.ApprovalRow, plugin.Principal) error { return nil }}
}

func answer(approvalID, by string, yes bool) approval.Answer {
	return approval.Answer{Tenant: "t", ID: approvalID, Approve: yes, By: plugin.Principal{Type: "user", ID: by}, Asker: "os:2"}
}

// Of two people on two nodes one decides, and the other hears what was decided.
func TestTwoNodesTakeOneAnswer(t *testing.T) {
	t.Parallel()
	first, second := nodes(t)
	asked := waiting(t, second)
	first.after, first.meanwhile = 1, func() {
		if _, err := service(second).Decide(t.Context(), answer(asked, "eve", false)); err != nil {
			t.Error(err)
		}
	}
	row, err := service(first).Decide(t.Context(), answer(asked, "bob", true))
	if plugin.CodeOf(err) != plugin.CodeApprovalUsed || row.State != store.ApprovalDenied || row.DecidedBy != "eve" {
		t.Errorf("%+v, %v", row, err)
	}
	call, err := second.Call(t.Context(), "t", id)
	if err != nil || call.State != store.CallFailed {
		t.Errorf("%+v, %v", call, err)
	}
}

// A call that is approved on one node while it is cancelled on another does not
// run, and its approval is worth nothing.
func TestACallIsCancelledWhileAnotherNodeApprovesIt(t *testing.T) {
	t.Parallel()
	for reads := 1; reads <= 2; reads++ {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			t.Parallel()
			first, second := nodes(t)
			asked := waiting(t, second)
			l, err := ledger.Open(t.Context(), first, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			first.after, first.meanwhile = reads, func() {
				if _, err := service(second).Decide(t.Context(), answer(asked, "bob", true)); err != nil {
					t.Error(err)
				}
			}
			_, err = l.Cancel(t.Context(), "t", id, "ann", "", time.Now(), func(tx store.Tx) error {
				row, err := tx.Approval(t.Context(), "t", asked)
				return errors.Join(err, approval.Void(tx, *row, "cancelled", time.Now()))
			})
			if err != nil {
				t.Fatal(err)
			}
			call, err := second.Call(t.Context(), "t", id)
			if err != nil || call.State != store.CallFailed && !call.Cancelled {
				t.Errorf("%+v, %v", call, err)
			}
		})
	}
}

// delivered reports whether one who answers is one of two who asked.
func delivered(asker, answers string) bool {
	who, by, both := strings.Cut(asker, " by ")
	return both && (answers == who || answers == by)
}

// One user under two names is no second person: an answer counts only if the
// user who gives it is authenticated, and known to be another than the
// requester. Only the configuration can accept a name instead, and then the
// entry says so.
func TestOneWhoActsUnderTwoNamesIsNoSecondPerson(t *testing.T) {
	t.Parallel()
	ways := []string{"os:0", "os:1000", "os:1001", "link:chat/slack/U1", "link:chat/slack/U2", "link:other/slack/U1", "channel:support/U1", "",
		approval.Delivered("link:chat/slack/U1", "os:1000"), // the one who is linked, by the word of the one who delivered it
	}
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	type said struct {
		asker, decider, by string
		same               bool
	}
	approved := map[string]said{}
	n := 0
	for _, asker := range ways {
		for _, answers := range ways {
			for _, trust := range []bool{false, true} {
				for _, name := range []string{"ann", "bob"} {
					n++
					callID := fmt.Sprintf("0192aaaa-0000-7000-8000-%012d", n+100)
					at := time.Now().UTC().Truncate(time.Microsecond)
					asked := approval.New(approval.Question{
						Tenant: "t", SubjectKind: store.SubjectCall, SubjectID: callID, Requester: "ann", Asker: asker, Binding: "sha256:b", At: at, Expires: at.Add(time.Hour),
					})
					if err := st.Write(t.Context(), func(tx store.Tx) error {
						_, err := tx.InsertCall(store.CallRow{Tenant: "t", ID: callID, Operation: "mail/send", Key: "c:" + callID, State: store.CallPending, CreatedAt: at, UpdatedAt: at})
						return errors.Join(err, asked.Put(tx))
					}); err != nil {
						t.Fatal(err)
					}
					d := service(st)
					d.TrustAs = trust
					_, err := d.Decide(t.Context(), approval.Answer{Tenant: "t", ID: asked.Row.ID, Approve: true, By: plugin.Principal{Type: "user", ID: name}, Asker: answers})
					same := asker == "" || answers == "" || asker == answers || delivered(asker, answers)
					want := plugin.Code("")
					if name == "ann" || same && !trust {
						want = plugin.CodeApprovalSelf
					}
					if plugin.CodeOf(err) != want {
						t.Errorf("%q asked as ann, %q answers as %s, trusted %v: %v, want %q", asker, answers, name, trust, err, want)
					}
					if want != "" {
						continue
					}
					approved[callID] = said{asker, answers, name, same}
				}
			}
		}
	}
	err = st.Snapshot(t.Context(), func(r store.Reader) error {
		for e, err := range r.Entries(t.Context(), store.EntryFilter{Tenant: "t", Kind: string(plugin.EntryApprovalApproved)}) {
			if err != nil {
				return err
			}
			var body struct {
				Requester string `json:"requester"`
				Asker     string `json:"asker"`
				DecidedBy string `json:"decided_by"`
				Decider   string `json:"decider"`
				Trusted   bool   `json:"trust_as"`
			}
			if err := json.Unmarshal(e.Body, &body); err != nil {
				return err
			}
			if got := (said{body.Asker, body.Decider, body.DecidedBy, body.Trusted}); body.Requester != "ann" || got != approved[e.Subject] {
				t.Errorf("the entry says %+v, want %+v", body, approved[e.Subject])
			}
			delete(approved, e.Subject)
		}
		return nil
	})
	if err != nil || len(approved) > 0 {
		t.Errorf("%v; without an entry: %v", err, approved)
	}
}

// Who has seen the secret of another does not approve what that other asked for, nor the
// other way round; two for whom one made secrets are two.
func TestWhoHasSeenASecretIsNoSecondPerson(t *testing.T) {
	t.Parallel()
	const root = "os:1000"
	ann, bob, own := approval.Entrusted("user:ann", root), approval.Entrusted("user:bob", root), approval.Entrusted("user:ann", "user:ann")
	if own != "user:ann" {
		t.Fatalf("who has seen their own secret is %q", own)
	}
	for _, c := range []struct {
		asks, answers string
		same          bool
	}{
		{root, ann, true}, {ann, root, true}, {ann, ann, true}, {ann, bob, false}, {bob, ann, false},
		{own, ann, true}, {ann, own, true}, {root, own, false}, {own, root, false}, {own, bob, false}, {bob, own, false},
		{approval.Delivered("link:slack/U1", ann), ann, true}, {approval.Delivered("link:slack/U1", ann), root, true}, {approval.Delivered("link:slack/U1", ann), bob, false},
	} {
		row := &approval.Row{Requester: "x", Asker: c.asks}
		if got := approval.Same(row, approval.Answer{Approve: true, By: plugin.Principal{ID: "y"}, Asker: c.answers}); got != c.same {
			t.Errorf("%q asked and %q answers: the same person %v, want %v", c.asks, c.answers, got, c.same)
		}
	}
}

// All identities of one person are one, also within the askers of tokens and deliveries;
// where it cannot be told whose they are, nothing is approved.
func TestTheIdentitiesOfAPersonAreOne(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	people := map[string]string{"os:1": "person:ann", "user:ann": "person:ann", "oidc:i/ann": "person:ann", "os:2": "person:bob", "user:bob": "person:bob"}
	var broken error
	d := service(st)
	d.People = func(context.Context, string) (func(string) string, error) {
		return func(identity string) string { return cmp.Or(people[identity], identity) }, broken
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	for n, c := range []struct {
		asks, answers string
		same          bool
	}{
		{"os:1", "oidc:i/ann", true}, {"oidc:i/ann", "os:1", true}, {"user:ann", "oidc:i/ann", true}, {"user:ann from os:2", "oidc:i/ann", true},
		{"os:2", "user:ann from user:bob", true}, {"link:chat/U1 by os:1", "oidc:i/ann", true}, {"link:chat/U1 by user:ann from os:2", "oidc:i/ann", true},
		{"os:1", "os:2", false}, {"oidc:i/ann", "user:bob", false}, {"user:ann from os:9", "user:bob from os:9", false}, {"os:1", "oidc:i/annx", false},
	} {
		asked := approval.New(approval.Question{
			Tenant: "t", SubjectKind: store.SubjectCall, SubjectID: fmt.Sprintf("0192aaaa-0000-7000-8000-%012d", n+100), Requester: "x", Asker: c.asks, Binding: "sha256:b", At: at, Expires: at.Add(time.Hour),
		})
		if err := st.Write(t.Context(), func(tx store.Tx) error {
			_, err := tx.InsertCall(store.CallRow{Tenant: "t", ID: asked.Row.SubjectID, Operation: "mail/send", Key: "c:" + asked.Row.SubjectID, State: store.CallPending, CreatedAt: at, UpdatedAt: at})
			return errors.Join(err, asked.Put(tx))
		}); err != nil {
			t.Fatal(err)
		}
		decide := func() error {
			_, err := d.Decide(t.Context(), approval.Answer{Tenant: "t", ID: asked.Row.ID, Approve: true, By: plugin.Principal{Type: "user", ID: "y"}, Asker: c.answers})
			return err
		}
		broken = errors.New("the rows of users are not those that were signed")
		if err := decide(); !errors.Is(err, broken) {
			t.Errorf("%q asked and %q answers, and it is not known whose they are: %v", c.asks, c.answers, err)
		}
		broken = nil
		if err := decide(); (plugin.CodeOf(err) == plugin.CodeApprovalSelf) != c.same || !c.same && err != nil {
			t.Errorf("%q asked and %q answers: %v, the same person %v", c.asks, c.answers, err, c.same)
		}
	}
}
