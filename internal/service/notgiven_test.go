package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// What an earlier attempt sent is not sent again because its kept answer could not be
// given to the plugin, for whatever reason: the next equal request gets that answer, and
// until then nothing new is sent.
func TestAnAnswerThatCouldNotBeGivenIsGivenToTheNextRequest(t *testing.T) {
	const garbage = "no JSON"
	for _, test := range []struct {
		name   string
		breaks func(t *testing.T, db *sql.DB) (mends func())
	}{
		{"no room", func(t *testing.T, _ *sql.DB) func() {
			_, others := budget.Answering(t.Context(), "others")
			if err := others.Take(t.Context(), 16<<20); err != nil {
				t.Fatal(err)
			}
			return others.Leave
		}},
		{"the answer is gone", func(t *testing.T, db *sql.DB) func() {
			exec(t, db, `UPDATE bodies SET data = NULL, expires_at = 1 WHERE hash = (SELECT response_hash FROM effects)`)
			return nil
		}},
		{"the answer was changed", func(t *testing.T, db *sql.DB) func() {
			exec(t, db, `CREATE TABLE kept AS SELECT * FROM bodies`)
			exec(t, db, `UPDATE bodies SET data = ? WHERE hash = (SELECT response_hash FROM effects)`, []byte(garbage))
			return func() {
				exec(t, db, `UPDATE bodies SET data = (SELECT data FROM kept WHERE kept.hash = bodies.hash)`)
				exec(t, db, `DROP TABLE kept`)
			}
		}},
		{"the answer is none", func(t *testing.T, db *sql.DB) func() {
			exec(t, db, `UPDATE bodies SET data = ?, hash = ? WHERE hash = (SELECT response_hash FROM effects)`, []byte(garbage), canon.Sum([]byte(garbage)))
			exec(t, db, `UPDATE effects SET response_hash = ?`, canon.Sum([]byte(garbage)))
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent atomic.Int32
			c := journalledIn(t, newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
				sent.Add(1)
				_, _ = io.WriteString(w, strings.Repeat("x", 700<<10))
			}))
			db, err := sql.Open("sqlite", filepath.Join(c.dir, sqlite.File)+"?_pragma=busy_timeout(60000)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			args := json.RawMessage(`{"method":"POST","url":"http://api.example.com/pay","body":"a"}`)
			other := json.RawMessage(`{"method":"POST","url":"http://api.example.com/pay","body":"b"}`)
			g, _ := c.attempt()
			first, err := g.Serve(t.Context(), fetchName, args)
			if err != nil {
				t.Fatal(err)
			}
			c.again()
			mends := test.breaks(t, db)
			g, j := c.attempt()
			ask := func(args json.RawMessage) (json.RawMessage, error) { // and give up soon where others have the room
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				ctx, own := budget.Answering(ctx, "own")
				defer own.Leave()
				return g.Serve(ctx, fetchName, args)
			}
			for range 2 {
				if _, err := ask(args); err == nil {
					t.Fatal("it was given")
				}
			}
			if mends != nil {
				mends()
				if again, err := g.Serve(t.Context(), fetchName, args); err != nil || string(again) != string(first) || !j.Whole() {
					t.Errorf("the next request got %d bytes of %d, whole %t: %v", len(again), len(first), j.Whole(), err)
				}
			} else if _, err := g.Serve(t.Context(), fetchName, other); plugin.CodeOf(err) != plugin.CodeOutcomeUnknown || !j.Diverged() {
				t.Errorf("another request before it: %v", err)
			}
			if n := sent.Load(); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if mends == nil {
				return
			}
			if _, err := g.Serve(t.Context(), fetchName, args); err != nil || sent.Load() != 2 {
				t.Errorf("an equal request after it was sent %d times, with the first: %v", sent.Load(), err)
			}
		})
	}
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
