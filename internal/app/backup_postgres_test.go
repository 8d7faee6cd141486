package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// relations counts what is in a database.
func relations(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// postUntil posts as several callers until the function is called, and counts from 20 on.
func postUntil(t *testing.T, a *app.App) (enough <-chan struct{}, acked func() []string, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	reached := make(chan struct{})
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%d-%d", w, i)
				if _, err := post(context.WithoutCancel(ctx), a, text); err != nil {
					t.Errorf("%s: %v", text, err)
					return
				}
				mu.Lock()
				if all = append(all, text); len(all) == 20 {
					close(reached)
				}
				mu.Unlock()
			}
		})
	}
	return reached, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }, func() { cancel(); wg.Wait() }
}

// TestABackupOfPostgreSQLIsWhole: four callers post while a backup with keys is made. Restored
// into an empty database and an empty data directory, and nothing else, it has every post that
// was acknowledged before it began, its ledger holds under its own key, and no effect
// happens before a person has said so.
func TestABackupOfPostgreSQLIsWhole(t *testing.T) {
	t.Parallel()
	needPython(t)
	url, home := pgtest.Open(t), t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\nblobs: "+t.TempDir()+"\n")
	a := openOn(t, home, url)
	register(t, a, posting(t), false)
	if _, err := post(t.Context(), a, "canary"); err != nil {
		t.Fatal(err)
	}
	enough, acked, stop := postUntil(t, a)
	select {
	case <-enough:
	case <-t.Context().Done():
		t.Fatal("no 20 posts")
	}
	before := append(acked(), "canary")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "state.backup")
	o := archive.BackupOptions{Home: home, Database: config.Database(url), File: file, Keys: true}
	if _, err := archive.Backup(t.Context(), o); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "--recipient") {
		t.Errorf("keys in clear: %v", err)
	}
	o.Recipients = []age.Recipient{id.Recipient()}
	m, err := archive.Backup(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	during := len(acked())
	stop()
	t.Logf("%d posts before the backup, %d when it was done, %d tables", len(before), during, len(m.Tables))
	if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, []byte("canary")) {
		t.Errorf("it is readable: %v", err)
	}

	empty, to := pgtest.Open(t), filepath.Join(t.TempDir(), "again")
	r, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: to, Database: config.Database(empty), Identities: []age.Identity{id}, Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(to + "*"); len(left) != 1 {
		t.Errorf("beside it: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); slices.ContainsFunc(left, func(p string) bool {
		return slices.Contains([]string{"keys", "database"}, filepath.Base(p))
	}) {
		t.Errorf("in it: %v", left)
	}
	again := openOn(t, to, empty)
	key, err := store.ReadKey(to)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := ledger.Verify(t.Context(), again.Store, key); err != nil || report.Fault != nil || report.Entries < r.Entries || r.Entries < int64(len(before)) {
		t.Errorf("%+v, %v; the restore found %d", report, err, r.Entries)
	}
	if _, err := post(t.Context(), again, "fresh"); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "mortise recovery confirm") {
		t.Errorf("an effect: %v", err)
	}
	for _, text := range before {
		if res, err := post(t.Context(), again, text); err != nil || !res.Replayed {
			t.Errorf("%s: %+v, %v", text, res, err)
		}
	}
	if _, err := again.As(again.Principal).Admin().ConfirmRecovery(t.Context(), "nothing was done since"); err != nil {
		t.Fatal(err)
	}
	if _, err := post(t.Context(), again, "fresh"); err != nil {
		t.Errorf("after it was confirmed: %v", err)
	}
	for text, want := range map[string]string{"canary": "true", "fresh": "true", "never": "false"} {
		if res, err := call(t, again, "posting/look", `{"text":"`+text+`"}`); err != nil || string(res.Data) != want {
			t.Errorf("%s: %s, %v", text, res.Data, err)
		}
	}
}

// TestARefusedBackupOfPostgreSQLChangesNothing: neither the database nor the data directory,
// whether the file is damaged, or its ledger is not the one that its manifest names.
func TestARefusedBackupOfPostgreSQLChangesNothing(t *testing.T) {
	t.Parallel()
	url, home, dir := pgtest.Open(t), t.TempDir(), t.TempDir()
	a, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	register(t, a, upper(t), false)
	if _, err := call(t, a, "upper", `{"text":"x"}`); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, Database: config.Database(url), File: file}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	// A backup with one table changed, whole in itself.
	changed := func(table string, change func(text string) (string, int64)) []byte {
		t.Helper()
		inside, at := t.TempDir(), filepath.Join(t.TempDir(), "changed")
		m, err := backup.Extract(t.Context(), file, inside)
		if err != nil {
			t.Fatal(err)
		}
		w, err := backup.Create(at, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, of := range m.Tables {
			name := "database/" + of.Name + ".copy"
			raw, err := os.ReadFile(filepath.Join(inside, name))
			if err != nil {
				t.Fatal(err)
			}
			if of.Name == table {
				text, less := change(string(raw))
				if text == string(raw) {
					t.Fatalf("%s is what it was", table)
				}
				raw, m.Tables[i].Rows = []byte(text), of.Rows-less
			}
			if err := w.Add(t.Context(), name, 0o600, int64(len(raw)), bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	empty, into := pgtest.Open(t), filepath.Join(t.TempDir(), "to")
	restore := func(o archive.RestoreOptions) error {
		_, err := archive.Restore(t.Context(), o)
		return err
	}
	for what, raw := range map[string][]byte{
		"cut":           whole[:len(whole)/2],
		"flipped":       flipped,
		"an entry less": changed("entries", func(s string) (string, int64) { _, rest, _ := strings.Cut(s, "\n"); return rest, 1 }),
		"another entry": changed("entries", func(s string) (string, int64) { return strings.Replace(s, "local:owner", "mallory", 1), 0 }),
		"another head":  changed("chains", func(s string) (string, int64) { return strings.Replace(s, "1\t", "2\t", 1), 0 }),
	} {
		at := filepath.Join(t.TempDir(), "refused")
		if err := os.WriteFile(at, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := restore(archive.RestoreOptions{File: at, Home: into, Database: config.Database(empty)}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := restore(archive.RestoreOptions{File: file, Home: into}); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "--database") {
		t.Errorf("nowhere: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Restore(cancelled, archive.RestoreOptions{File: file, Home: into, Database: config.Database(empty)}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if n := relations(t, empty); n != 0 {
		t.Errorf("the database has %d relations", n)
	}
	if left, err := filepath.Glob(into + "*"); err != nil || len(left) > 0 {
		t.Errorf("%v is there, %v", left, err)
	}
	// Into the one that the host has open: not without force, and with it only once it is closed.
	for force, code := range map[bool]plugin.Code{false: plugin.CodeInvalidInput, true: plugin.CodeUnavailable} {
		if err := restore(archive.RestoreOptions{File: file, Home: into, Database: config.Database(url), Force: force}); plugin.CodeOf(err) != code {
			t.Errorf("force %t: %v", force, err)
		}
	}
	if res, err := call(t, a, "upper", `{"text":"y"}`); err != nil || string(res.Data) == "" {
		t.Errorf("the host goes on: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := restore(archive.RestoreOptions{File: file, Home: into, Database: config.Database(url), Force: true}); err != nil {
		t.Errorf("with force: %v", err)
	}
}

// TestAPlannedBackupWritesNothing, on either store, and says how large it is.
func TestAPlannedBackupWritesNothing(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{"sqlite": func() string { return "" }, "postgresql": func() string { return pgtest.Open(t) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, url := t.TempDir(), url()
			a := openOn(t, home, url)
			register(t, a, upper(t), false)
			p, err := archive.PlanBackup(t.Context(), archive.BackupOptions{Home: home, Database: config.Database(url)})
			if err != nil {
				t.Fatal(err)
			}
			var sum int64
			var parts []string
			for _, part := range p.Parts {
				sum, parts = sum+part.Bytes, append(parts, part.Name)
				if part.Bytes == 0 || part.Files == 0 {
					t.Errorf("%+v", part)
				}
			}
			if want := map[string]string{"sqlite": "mortise.db", "postgresql": "database"}[name]; p.Database != name || sum != p.Bytes || !slices.Contains(parts, want) || !slices.Contains(parts, "packages") {
				t.Errorf("%+v", p)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "backup*")); len(left) > 0 {
				t.Errorf("%v is there", left)
			}
		})
	}
}
