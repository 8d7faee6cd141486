package doctor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// A role of PostgreSQL to which row-level security does not apply is named, with what to do;
// a host works with it all the same.
func TestARoleThatPassesOverRowLevelSecurityIsNamed(t *testing.T) {
	url := pgtest.New(t).Open(t)
	pgtest.Exec(t, url, "CREATE ROLE loose LOGIN BYPASSRLS")
	for of, c := range map[string]struct {
		url  string
		want string // "" where the wall stands
	}{
		"an ordinary role":   {url, ""},
		"a superuser":        {pgtest.Super(url), "the role mortise is a superuser"},
		"one with BYPASSRLS": {strings.Replace(url, "//host@", "//loose@", 1), `ALTER ROLE "loose" NOBYPASSRLS`},
	} {
		found, _ := doctor.Examine(t.Context(), doctor.Subject{
			Home: t.TempDir(), Database: c.url,
			Read: func(context.Context, func(store.Store) error) error { return nil },
			Open: func(context.Context) (*doctor.Host, error) { return nil, errors.New("no further") },
		})
		seen := false
		for _, f := range found {
			if f.What != "row-level security" {
				continue
			}
			seen = true
			if f.Needed || f.OK != (c.want == "") || f.Err != nil && !strings.Contains(f.Err.Error(), c.want) {
				t.Errorf("%s: %+v", of, f)
			}
		}
		if !seen {
			t.Errorf("%s: nothing is said: %+v", of, found)
		}
	}
}
