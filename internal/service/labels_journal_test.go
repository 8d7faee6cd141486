package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// TestAnAnswerFromTheJournalHasItsLabels: an attempt of a call that is given what
// an earlier one was answered inherits the labels too, for every method that tells
// of what was kept and goes through the journal; an answer that an older host kept
// without labels is untrusted.
func TestAnAnswerFromTheJournalHasItsLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), st.Close() })
	vault := secret.New(st, secret.Place{Dir: dir}, secret.NewScrubber())
	bases := kb.New(kb.Options{Store: st, Files: plainFiles})
	tested := 0
	for method, is := range answerings {
		if !slices.ContainsFunc(matrixRows, func(row matrixRow) bool { return row.method == method && row.class == Local }) {
			continue
		}
		for n, w := range is.ways {
			tested++
			s := keeping(t)
			s.broker.Store, s.broker.Secrets, s.broker.Knowledge = st, safeOf(vault), bases
			s.target.Operation.Effects = append(s.target.Operation.Effects, kbWrite)
			s.call.Tenant = fmt.Sprintf("%s/%d", method, n)
			if _, err := bases.Create(t.Context(), s.call.Tenant, kb.Base{ID: "labels"}); err != nil {
				t.Fatal(err)
			}
			if w.scene != nil {
				w.scene(s)
			}
			s.call.Labels = tainted
			s.ask(w.put[0], w.put[1])
			s.call.Labels, s.call.ID = nil, uuid.Must(uuid.NewV7()).String()
			first, got := s.attempts(l, method, w.read)
			if string(first.answer) != string(got.answer) || !slices.Equal(first.labels, tainted) || !slices.Equal(got.labels, tainted) {
				t.Errorf("%s, %s: the first attempt has the labels %q, and the second %q with %s", method, w.name, first.labels, got.labels, got.answer)
			}
		}
	}
	if tested < 20 {
		t.Errorf("%d ways go through the journal", tested)
	}
	g := newScene(t).services().(*grant)
	if raw, err := g.decodeAnswer([]byte(`{"value":{"deleted":true}}`)); err != nil || string(raw) != `{"deleted":true}` || !slices.Equal(g.Labels(), []string{plugin.Untrusted}) {
		t.Errorf("of an older host: %s, %q, %v", raw, g.Labels(), err)
	}
}

// An attempted is what one attempt of a call heard.
type attempted struct {
	answer json.RawMessage
	labels []string
}

// attempts asks for a method in two attempts of one call.
func (s *scene) attempts(l *ledger.Ledger, method, args string) (first, second attempted) {
	s.t.Helper()
	now := time.Now()
	rec := &plugin.CallRecord{CallID: s.call.ID, Operation: s.target.Name(), Principal: "user:ada", Status: plugin.InProgress}
	lease, _, err := l.Claim(s.t.Context(), ledger.Claim{
		Call: s.call, Target: s.target, Record: rec, Fingerprint: "f", InputHash: "i", PolicyVersion: "p", Deadline: now.Add(time.Minute), At: now,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	attempt := func() (is attempted) {
		s.t.Helper()
		journal, err := l.Journal(s.t.Context(), lease)
		if err != nil {
			s.t.Fatal(err)
		}
		g := s.broker.For(s.target, s.call, journal).(*grant)
		if is.answer, err = g.Serve(s.t.Context(), method, json.RawMessage(args)); err != nil {
			s.t.Fatalf("%s: %v", method, err)
		}
		is.labels = g.Labels()
		return is
	}
	first = attempt()
	if err := l.Settle(s.t.Context(), lease, ledger.Outcome{State: store.CallQueued, WakeAt: now}, rec, now); err != nil {
		s.t.Fatal(err)
	}
	row, err := l.Call(s.t.Context(), s.call.Tenant, s.call.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	var won bool
	if lease, won, err = l.Start(s.t.Context(), *row, rec, "p", now.Add(time.Minute), now, nil); err != nil || !won {
		s.t.Fatal(won, err)
	}
	return first, attempt()
}
