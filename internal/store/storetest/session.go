package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func newSession(id string) store.SessionRow {
	return store.SessionRow{
		Tenant: "t", ID: id, Name: "case é", Kind: "investigation", CreatedAt: epoch,
		Pillar: "log_analysis", State: store.SessionOpen, Labels: []string{}, UpdatedAt: epoch,
	}
}

func newArtifact(session, id string) store.ArtifactRow {
	return store.ArtifactRow{
		Tenant: "t", SessionID: session, ID: id, Type: "text", Name: "a b.txt", SHA256: "ab12", Size: 1 << 40, SourceTool: "parse", SourceCall: "call",
		Parents: []string{"art_1"}, Labels: []string{"private"}, Metadata: `{"k": 1}`, StorageURI: "s3://b/ab12", CreatedAt: epoch.Add(time.Second),
	}
}

func insertSessions(t *testing.T, st store.Store, rows ...store.SessionRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		for _, row := range rows {
			if err := tx.InsertSession(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// register adds an artifact that is not there yet, and returns it.
func register(t *testing.T, st store.Store, row store.ArtifactRow) (added store.ArtifactRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		inserted, prior, open, err := tx.InsertArtifact(row, nil)
		if err != nil {
			return err
		}
		if inserted == nil || prior != nil || !open {
			return fmt.Errorf("inserting %s: %+v, prior %+v, open %t", row.ID, inserted, prior, open)
		}
		added = *inserted
		return nil
	})
	return added
}

func checkSession(t *testing.T, st store.Store, want store.SessionRow) {
	t.Helper()
	got, err := st.Session(t.Context(), want.Tenant, want.ID)
	if got != nil && got.MAC != "" { // which the store gives it
		want.MAC = got.MAC
	}
	if err != nil || got == nil || got.MAC == "" || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func checkArtifacts(t *testing.T, st store.Store, tenant, session string, want ...store.ArtifactRow) {
	t.Helper()
	if got, err := st.Artifacts(t.Context(), tenant, session); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("artifacts of %s/%s: got %+v, %v\nwant %+v", tenant, session, got, err, want)
	}
}

func sessionRoundTrip(t *testing.T, b *bundle) {
	row, foreign := newSession("sess_1"), newSession("sess_1")
	foreign.Tenant, foreign.Name = "u", "other"
	insertSessions(t, b, row, foreign)
	checkSession(t, b, row)
	if got, err := b.Session(t.Context(), "t", "sess_2"); got != nil || err != nil {
		t.Errorf("a session that is not there is %+v, %v", got, err)
	}
	later := epoch.Add(time.Minute)
	write(t, b, func(tx store.Tx) error {
		if found, err := tx.SetSessionPillar("t", "sess_1", "threat_modeling", later); !found || err != nil {
			return fmt.Errorf("setting the pillar: %t, %w", found, err)
		}
		if found, err := tx.SetSessionPillar("t", "sess_2", "threat_modeling", later); found || err != nil {
			return fmt.Errorf("setting the pillar of none: %t, %w", found, err)
		}
		return nil
	})
	row.Pillar, row.UpdatedAt = "threat_modeling", later
	checkSession(t, b, row)
	for i, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			won, err := tx.SetSessionState("t", "sess_1", store.SessionOpen, store.SessionClosed, later.Add(time.Duration(i)*time.Second))
			if won != want {
				t.Errorf("closing it: %t, want %t", won, want)
			}
			return err
		})
	}
	row.State = store.SessionClosed
	checkSession(t, b, row)
	checkSession(t, b, foreign)
}

func sessionsNewestFirst(t *testing.T, b *bundle) {
	first, second, third, foreign := newSession("sess_ab1"), newSession("sess_ab2"), newSession("sess_B1"), newSession("sess_ab3")
	second.CreatedAt = epoch.Add(time.Microsecond)
	foreign.Tenant = "u"
	insertSessions(t, b, second, first, foreign, third)
	for _, test := range []struct {
		filter store.SessionFilter
		want   []string
	}{
		{store.SessionFilter{Tenant: "t"}, []string{"sess_ab2", "sess_ab1", "sess_B1"}},
		{store.SessionFilter{Tenant: "t", Limit: 2}, []string{"sess_ab2", "sess_ab1"}},
		{store.SessionFilter{Tenant: "t", Prefix: "sess_ab"}, []string{"sess_ab2", "sess_ab1"}},
		{store.SessionFilter{Tenant: "t", Prefix: "sess_AB"}, nil},
		{store.SessionFilter{Tenant: "t", Prefix: "sess%"}, nil},
	} {
		got, err := b.Sessions(t.Context(), test.filter)
		var ids []string
		for _, row := range got {
			ids = append(ids, row.ID)
		}
		if err != nil || !slices.Equal(ids, test.want) {
			t.Errorf("%+v: got %v, %v, want %v", test.filter, ids, err, test.want)
		}
	}
}

func artifactRoundTrip(t *testing.T, b *bundle) {
	s := newSession("sess_1")
	insertSessions(t, b, s)
	row := register(t, b, newArtifact("sess_1", "art_1"))
	if row.N != 1 {
		t.Errorf("the first has n %d", row.N)
	}
	other := newArtifact("sess_1", "art_0")
	other.Parents, other.Labels, other.SourceTool, other.SourceCall, other.StorageURI = []string{}, []string{"untrusted"}, "", "", ""
	other = register(t, b, other)
	checkArtifacts(t, b, "t", "sess_1", row, other)
	checkArtifacts(t, b, "t", "sess_2")
	checkArtifacts(t, b, "u", "sess_1")
	if got, err := b.Artifact(t.Context(), "t", "sess_1", "art_0"); err != nil || got == nil || !reflect.DeepEqual(*got, other) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, other)
	}
	if got, err := b.Artifact(t.Context(), "u", "sess_1", "art_0"); got != nil || err != nil {
		t.Errorf("another tenant sees %+v, %v", got, err)
	}
	s.Artifacts, s.Labels, s.UpdatedAt = 2, []string{"private", "untrusted"}, other.CreatedAt
	checkSession(t, b, s)

	// Each member of what makes it the same makes it another.
	for i, change := range []func(*store.ArtifactRow){
		func(r *store.ArtifactRow) { r.SHA256 = "cd" }, func(r *store.ArtifactRow) { r.Name = "b" }, func(r *store.ArtifactRow) { r.Type = "image" },
		func(r *store.ArtifactRow) { r.SourceTool = "x" }, func(r *store.ArtifactRow) { r.SourceCall = "x" }, func(r *store.ArtifactRow) { r.Labels = []string{} },
	} {
		another := newArtifact("sess_1", fmt.Sprint("art_x", i))
		change(&another)
		register(t, b, another)
	}
}

func artifactRace(t *testing.T, b *bundle) {
	insertSessions(t, b, newSession("sess_1"))
	const writers = 8
	ids := make([]string, writers)
	stores := []store.Store{b.Store, b.another(t)}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			err := stores[i%2].Write(ctx(), func(tx store.Tx) error {
				inserted, prior, open, err := tx.InsertArtifact(newArtifact("sess_1", fmt.Sprint("art_", i)), nil)
				switch {
				case err != nil:
					return err
				case !open || (inserted == nil) == (prior == nil):
					return fmt.Errorf("inserted %+v, prior %+v, open %t", inserted, prior, open)
				case inserted != nil:
					ids[i] = inserted.ID
				default:
					ids[i] = prior.ID
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := b.Artifacts(t.Context(), "t", "sess_1"); err != nil || len(got) != 1 || slices.ContainsFunc(ids, func(id string) bool { return id != got[0].ID }) {
		t.Errorf("writers heard of %v, and there is %+v, %v", ids, got, err)
	}
}

func artifactsDeleted(t *testing.T, b *bundle) {
	foreign := newSession("sess_1")
	foreign.Tenant = "u"
	insertSessions(t, b, newSession("sess_1"), newSession("sess_2"), foreign)
	register(t, b, newArtifact("sess_1", "art_1"))
	own := newArtifact("sess_1", "art_2")
	own.SHA256 = "cd34"
	register(t, b, own)
	again := newArtifact("sess_1", "art_3")
	again.Name = "again"
	register(t, b, again)
	kept := register(t, b, newArtifact("sess_2", "art_1"))
	theirs := newArtifact("sess_1", "art_1")
	theirs.Tenant = "u"
	theirs = register(t, b, theirs)
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			hashes, found, err := tx.DeleteSession("t", "sess_1")
			if found != want || want && !slices.Equal(hashes, []string{"ab12", "cd34"}) {
				t.Errorf("deleting it: %v, %t, want %t", hashes, found, want)
			}
			return err
		})
	}
	if got, err := b.Session(t.Context(), "t", "sess_1"); got != nil || err != nil {
		t.Errorf("afterwards it is %+v, %v", got, err)
	}
	checkArtifacts(t, b, "t", "sess_1")
	checkArtifacts(t, b, "t", "sess_2", kept)
	checkArtifacts(t, b, "u", "sess_1", theirs)
	for hash, want := range map[string]bool{"ab12": true, "cd34": false} {
		if got, err := b.Registered(t.Context(), hash); got != want || err != nil {
			t.Errorf("%s is registered: %t, %v, want %t", hash, got, err, want)
		}
	}
}

func labelsOfArtifacts(t *testing.T, b *bundle) {
	insertSessions(t, b, newSession("sess_1"), newSession("sess_2"))
	register(t, b, newArtifact("sess_1", "art_1"))
	plain := newArtifact("sess_1", "art_2")
	plain.Labels = []string{}
	plain.Name = "plain"
	register(t, b, plain)
	register(t, b, newArtifact("sess_2", "art_3"))
	for _, test := range []struct {
		tenant string
		ids    []string
		want   map[string][]string
	}{
		{"t", []string{"art_2", "art_1", "art_3", "art_4"}, map[string][]string{"art_1": {"private"}, "art_2": {}}},
		{"t", nil, map[string][]string{}},
		{"u", []string{"art_1"}, map[string][]string{}},
	} {
		sum, err := b.ArtifactBytes(t.Context(), test.tenant, "sess_1")
		if want := int64(len(test.want)) * newArtifact("", "").Size; err != nil || test.ids != nil && sum != want {
			t.Errorf("%s: %d bytes, %v, want %d", test.tenant, sum, err, want)
		}
		whole, err := b.ArtifactBytes(t.Context(), test.tenant, "")
		if err != nil || test.tenant == "t" && whole <= sum && sum > 0 || test.tenant == "u" && whole != 0 {
			t.Errorf("%s: %d bytes in all sessions, %d in one: %v", test.tenant, whole, sum, err)
		}
		got, err := b.ArtifactLabels(t.Context(), test.tenant, "sess_1", test.ids)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %q: %v, %v, want %v", test.tenant, test.ids, got, err, test.want)
		}
	}
}

func closedSession(t *testing.T, b *bundle) {
	closed := newSession("sess_1")
	closed.State = store.SessionClosed
	insertSessions(t, b, closed)
	for _, session := range []string{"sess_1", "sess_2"} {
		write(t, b, func(tx store.Tx) error {
			inserted, prior, open, err := tx.InsertArtifact(newArtifact(session, "art_1"), nil)
			if inserted != nil || prior != nil || open {
				t.Errorf("adding to %s: %+v, %+v, %t", session, inserted, prior, open)
			}
			return err
		})
	}
	checkSession(t, b, closed)
	checkArtifacts(t, b, "t", "sess_1")
}

// bytesOfArtifacts are kept with some, and are nothing to the others.
func bytesOfArtifacts(t *testing.T, b *bundle) {
	insertSessions(t, b, newSession("sess_1"), newSession("sess_2"))
	elsewhere := register(t, b, newArtifact("sess_1", "art_0"))
	want := []store.ArtifactRow{elsewhere}
	kept := map[string][]byte{"art_1": {}, "art_2": {0}, "art_3": bytes.Repeat([]byte{0xff, 0, 'a', 0x80}, 16<<10)}
	for _, id := range []string{"art_1", "art_2", "art_3"} {
		row := newArtifact("sess_1", id)
		row.Name, row.StorageURI = id, ""
		write(t, b, func(tx store.Tx) error {
			inserted, prior, open, err := tx.InsertArtifact(row, kept[id])
			if err != nil || inserted == nil || !inserted.Inline || prior != nil || !open {
				return fmt.Errorf("inserting %s: %+v, prior %+v, open %t, %v", id, inserted, prior, open, err)
			}
			row = *inserted
			return nil
		})
		want = append(want, row)
	}
	checkArtifacts(t, b, "t", "sess_1", want...)
	for id, data := range kept {
		if got, err := b.ArtifactData(t.Context(), "t", "sess_1", id); err != nil || got == nil || !bytes.Equal(got, data) {
			t.Errorf("%s has %d bytes (nil: %t), %v, want %d", id, len(got), got == nil, err, len(data))
		}
	}
	for _, of := range [][3]string{{"t", "sess_1", "art_0"}, {"t", "sess_1", "art_9"}, {"t", "sess_2", "art_1"}, {"u", "sess_1", "art_1"}} {
		if got, err := b.ArtifactData(t.Context(), of[0], of[1], of[2]); got != nil || err != nil {
			t.Errorf("%v has %d bytes, %v", of, len(got), err)
		}
	}
	// An equal one is there, wherever its bytes are.
	write(t, b, func(tx store.Tx) error {
		again := newArtifact("sess_1", "art_x")
		inserted, prior, _, err := tx.InsertArtifact(again, []byte("x"))
		if inserted != nil || prior == nil || prior.ID != "art_0" || prior.Inline {
			t.Errorf("again it is %+v, prior %+v", inserted, prior)
		}
		return err
	})
	// Only the rows need what is kept with them.
	only := newArtifact("sess_2", "art_1")
	only.SHA256 = "ef56"
	write(t, b, func(tx store.Tx) error {
		_, _, _, err := tx.InsertArtifact(only, []byte("only"))
		return err
	})
	if got, err := b.Registered(t.Context(), "ef56"); got || err != nil {
		t.Errorf("bytes of a row are needed elsewhere: %t, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error {
		hashes, found, err := tx.DeleteSession("t", "sess_2")
		if !found || len(hashes) != 0 {
			t.Errorf("deleting it: %v, %t", hashes, found)
		}
		return err
	})
	if got, err := b.ArtifactData(t.Context(), "t", "sess_2", "art_1"); got != nil || err != nil {
		t.Errorf("deleted, it has %d bytes, %v", len(got), err)
	}
}
