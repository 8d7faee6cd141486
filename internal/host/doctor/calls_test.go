package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// A call that is due and waits, and one that a node with a wrong clock accepted, are named; calls
// that wait for their time, run or have ended are not.
func TestOverdueCallsAreNamed(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	now, want := st.Now(), map[string]string{}
	for _, c := range []struct {
		state         store.CallState
		created, wake time.Duration // from now; no wake for 0
		says          string
	}{
		{store.CallQueued, -time.Hour, -time.Hour, "is due since"},
		{store.CallInProgress, -time.Hour, -6 * time.Minute, "is due since"},
		{store.CallQueued, time.Hour, time.Hour, "clock was ahead"},
		{store.CallQueued, -time.Second, -time.Second, ""},
		{store.CallQueued, -time.Hour, time.Hour, ""},
		{store.CallRunning, -time.Hour, 0, ""},
		{store.CallFailed, time.Hour, 0, ""},
	} {
		row := store.CallRow{Tenant: "t", ID: uuid.Must(uuid.NewV7()).String(), Operation: "mail/send", State: c.state, Attempt: 1, CreatedAt: now.Add(c.created), UpdatedAt: now}
		row.Key = "c:" + row.ID
		if c.wake != 0 {
			row.WakeAt = now.Add(c.wake)
		}
		want[row.ID] = c.says
		if err := st.Write(t.Context(), func(tx store.Tx) error { _, err := tx.InsertCall(row); return err }); err != nil {
			t.Fatal(err)
		}
	}
	late, err := overdue(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	for id, says := range want {
		named := ""
		for _, line := range late {
			if strings.Contains(line, id) {
				named = line
			}
		}
		if says == "" && named != "" || says != "" && !strings.Contains(named, says) {
			t.Errorf("call %s is named by %q, want %q", id, named, says)
		}
	}
}

// A machine whose clock is not that of its database is told.
func TestAClockThatIsOffIsNamed(t *testing.T) {
	t.Parallel()
	for off, want := range map[string]string{"0": "", "-2 hours": "2h0m0s ahead of", "2 hours": "2h0m0s behind"} {
		url := pgtest.Open(t)
		pgtest.Shift(t, url, off)
		st, err := postgres.Open(t.Context(), url, postgres.Options{Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		e := new(examination)
		e.clock(st)
		if want == "" && len(e.found) > 0 || want != "" && (len(e.found) != 1 || !strings.Contains(e.found[0].Err.Error(), want)) {
			t.Errorf("a database that is off by %s: %+v, want %q", off, e.found, want)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
