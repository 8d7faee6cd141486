package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// The store tells the time of its database, however far that is from the time of this machine.
func TestTheStoreTellsTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"0", "2 hours", "-2 hours"} {
		url := pgtest.Open(t)
		pgtest.Shift(t, url, off)
		for _, o := range []postgres.Options{{Home: t.TempDir()}, {ReadOnly: true}} {
			st, err := postgres.Open(t.Context(), url, o)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			var is time.Time
			before := st.Now()
			if err := conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&is); err != nil {
				t.Fatal(err)
			}
			after := st.Now()
			if is.Add(time.Minute).Before(before) || is.Add(-time.Minute).After(after) {
				t.Errorf("the store says %s to %s, and its database, which is off by %s, %s", before, after, off, is)
			}
			for _, close := range []func() error{st.Close, func() error { return conn.Close(t.Context()) }} {
				if err := close(); err != nil && !strings.Contains(err.Error(), "closed") {
					t.Error(err)
				}
			}
		}
	}
}
