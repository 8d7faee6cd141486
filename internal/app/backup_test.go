package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// posting writes a plugin with a tool and an operator.
func posting(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: posting
version: 1.0.0
owner: test
description: Posts.
runner: {kind: process, entry: plugin.py}
capabilities: [storage]
operations:
  post: {kind: operator, effects: [storage_write], brokered: true}
  look: {kind: tool}
`, "plugin.py", `
from mortise import Context, Plugin

plugin = Plugin("posting", version="1.0.0")

@plugin.operator(effects=["storage_write"])
def post(text: str, ctx: Context) -> str:
    ctx.service("storage.put", {"key": text, "value": text})
    return text

@plugin.tool
def look(text: str, ctx: Context) -> bool:
    return ctx.service("storage.get", {"key": text})["found"]

plugin.run()
`)
	return dir
}

func post(ctx context.Context, a *app.App, text string) (plugin.Result, error) {
	input, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return plugin.Result{}, err
	}
	return a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "posting/post", Input: input, Key: text})
}

const allowAll = "policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}\n"

// verified fails unless the ledger of a home holds against its key.
func verified(t *testing.T, home string) int64 {
	t.Helper()
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := store.ReadAnchors(home)
	if err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(t.Context(), home, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	r, err := ledger.Verify(t.Context(), st, key, anchors...)
	if err != nil || r.Fault != nil {
		t.Fatalf("%+v, %v", r.Fault, err)
	}
	return r.Entries
}

// again is a restore of a backup into a fresh home, with the keys of another.
func again(t *testing.T, file, keysOf string) (home string, r archive.Restored) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home")
	key, err := os.ReadFile(filepath.Join(keysOf, store.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, store.KeyFile, string(key))
	if r, err = archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: home}); err != nil {
		t.Fatal(err)
	}
	return home, r
}

// TestRestoresOfABusyHost: eight callers post while backups are made. Each of 20
// restores, with -short one of each backup, holds, has every post that was acknowledged before its backup began,
// and repeats none until a person has said so.
func TestRestoresOfABusyHost(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\n")
	a := open(t, home)
	register(t, a, posting(t), false)

	ctx, stop := context.WithCancel(t.Context())
	var posted atomic.Int64
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%d-%d", w, i)
				if _, err := post(context.WithoutCancel(ctx), a, text); err != nil {
					t.Errorf("%s: %v", text, err)
					return
				}
				mu.Lock()
				acked = append(acked, text)
				mu.Unlock()
				posted.Add(1)
			}
		})
	}
	type made struct {
		file   string
		before []string
	}
	var backups []made
	for i := range 4 {
		testwait.Until(t, "20 more posts", func() bool { return posted.Load() >= int64(20*(i+1)) || t.Failed() })
		mu.Lock()
		before := slices.Clone(acked)
		mu.Unlock()
		file := filepath.Join(t.TempDir(), "backup")
		m, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file})
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range m.Members {
			if strings.HasSuffix(member.Name, ".key") || strings.HasSuffix(member.Name, ".anchor") {
				t.Errorf("%s is in the backup", member.Name)
			}
		}
		backups = append(backups, made{file, before})
	}
	stop()
	wg.Wait()
	if posted.Load() < 80 {
		t.Fatalf("only %d posts", posted.Load())
	}

	restores := 20
	if testing.Short() {
		restores = len(backups)
	}
	for i := range restores {
		b := backups[i%len(backups)]
		to, r := again(t, b.file, home)
		if n := verified(t, to); n != r.Entries || n == 0 {
			t.Errorf("%d entries hold, and the restore says %d", n, r.Entries)
		}
		restored, err := app.Open(t.Context(), app.Options{Home: to, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		fresh := fmt.Sprintf("fresh-%d", i)
		if _, err := post(t.Context(), restored, fresh); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "mortise recovery confirm") {
			t.Errorf("restore %d: an effect: %v", i, err)
		}
		for _, text := range b.before {
			// Its first answer is there: nothing is done, and nothing refused.
			if res, err := post(t.Context(), restored, text); err != nil || !res.Replayed {
				t.Errorf("restore %d: %s: %+v, %v", i, text, res, err)
			}
		}
		look := func(text, want string) {
			t.Helper()
			if res, err := call(t, restored, "posting/look", `{"text":"`+text+`"}`); err != nil || string(res.Data) != want {
				t.Errorf("restore %d: %s: %s, %v", i, text, res.Data, err)
			}
		}
		look(b.before[len(b.before)-1], "true")
		look(fresh, "false")
		if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), " "); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("without a reason: %v", err)
		}
		if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), "nothing was done since"); err != nil {
			t.Error(err)
		}
		if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), "twice"); plugin.CodeOf(err) != plugin.CodeNotFound {
			t.Errorf("twice: %v", err)
		}
		if _, err := post(t.Context(), restored, fresh); err != nil {
			t.Errorf("restore %d: after it was confirmed: %v", i, err)
		}
		look(fresh, "true")
		if kinds := entries(t, restored); !slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(k, "recovery.confirmed") }) {
			t.Errorf("the confirmation is not on record: %v", kinds)
		}
		if err := restored.Close(); err != nil {
			t.Error(err)
		}
		verified(t, to)
	}
}

// TestWhatWaitsStaysWhereItIsInRecovery: neither a queued call nor one that was
// running when the copy was made is run, or given up, until it is confirmed.
func TestWhatWaitsStaysWhereItIsInRecovery(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\n")
	a := open(t, home)
	register(t, a, posting(t), false)
	queued, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "posting/post", Input: json.RawMessage(`{"text":"later"}`), NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	to, _ := again(t, file, home)
	restored := open(t, to)
	worksInVain(t, restored)
	if _, err := restored.Kernel.Resume(t.Context(), "local", queued.CallID); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("resumed: %v", err)
	}
	state := func() store.CallState {
		t.Helper()
		row, err := restored.Store.Call(t.Context(), "local", queued.CallID)
		if err != nil || row == nil {
			t.Fatal(err)
		}
		return row.State
	}
	if got := state(); got != store.CallQueued {
		t.Errorf("it is %s", got)
	}
	s, err := restored.As(restored.Principal).Admin().Recovery(t.Context())
	if err != nil || s.Recovery == nil || s.Queued != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), "it was never done"); err != nil {
		t.Fatal(err)
	}
	if res, err := restored.Kernel.Resume(t.Context(), "local", queued.CallID); err != nil || res.Status != plugin.Succeeded {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestAnOlderDatabaseIsNoticed: put back by hand, behind the anchor that a clean
// close left. Confirming takes the anchor back, so that the ledger holds again.
func TestAnOlderDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\n")
	run := func(text string, code plugin.Code) {
		t.Helper()
		a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if text == "one" {
			register(t, a, posting(t), false)
		}
		if _, err := post(t.Context(), a, text); plugin.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", text, err, code)
		}
		if text == "confirmed" {
			return
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run("one", "")
	older, err := os.ReadFile(filepath.Join(home, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	run("two", "")
	for _, name := range []string{sqlite.File + "-wal", sqlite.File + "-shm"} {
		_ = os.Remove(filepath.Join(home, name))
	}
	write(t, home, sqlite.File, string(older))
	run("two", plugin.CodeUnavailable) // it would be done again
	run("two", plugin.CodeUnavailable) // and stays so

	a := open(t, home)
	if n := strings.Count(strings.Join(entries(t, a), "\n"), "recovery.entered"); n != 1 {
		t.Errorf("%d entries say that it began", n)
	}
	rec, err := a.As(a.Principal).Admin().ConfirmRecovery(t.Context(), "two was undone by hand")
	if err != nil || len(rec.Anchors) != 1 {
		t.Fatalf("%+v, %v", rec, err)
	}
	if _, err := post(t.Context(), a, "two"); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, home)
	run("three", "")
}

// sqlEdit changes a database behind everybody's back.
func sqlEdit(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsWrittenOfABackupThatIsRefused: the data directory and what is
// beside it stay as they are.
func TestNothingIsWrittenOfABackupThatIsRefused(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	a := open(t, home)
	register(t, a, upper(t), false)
	if _, err := call(t, a, "upper", `{"text":"x"}`); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("over another: %v", err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	for i := range 16 { // one bit may be of a distance in a row of zeros, and change nothing
		flipped[len(flipped)/2+i] ^= 0xff
	}

	// One that is whole in itself, and has what no backup has, or a database that
	// is none.
	forge := func(name, text string) string {
		t.Helper()
		at := filepath.Join(t.TempDir(), "forged")
		w, err := backup.Create(at, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(t.Context(), name, 0o600, int64(len(text)), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(t.Context(), &backup.Manifest{Database: "sqlite", Schema: sqlite.Schema, MadeAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	// A backup whose ledger was edited, with a manifest to match.
	changed := func(edit string) string {
		t.Helper()
		inside, at := t.TempDir(), filepath.Join(t.TempDir(), "changed")
		m, err := backup.Extract(t.Context(), file, inside)
		if err != nil {
			t.Fatal(err)
		}
		sqlEdit(t, inside, edit)
		w, err := backup.Create(at, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddFile(t.Context(), sqlite.File, filepath.Join(inside, sqlite.File)); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	place := t.TempDir()
	to := filepath.Join(place, "to")
	write(t, to, "mine", "mine")
	for what, text := range map[string]string{
		"cut":               string(whole[:len(whole)/2]),
		"cut at its end":    string(whole[:len(whole)-1]),
		"flipped":           string(flipped),
		"foreign":           "PK\x03\x04",
		"empty":             "",
		"a key":             forge(store.KeyFile, strings.Repeat("k", 32)),
		"a lock":            forge("nodes/x.lock", ""),
		"a journal":         forge(sqlite.File+"-wal", "x"),
		"no database":       forge("mortise.yaml", "{}"),
		"a database of air": forge(sqlite.File, "not a database, but long enough to be taken for one"),
		"an entry less":     changed("DELETE FROM entries WHERE seq = 1"),
		"another entry":     changed("UPDATE entries SET principal = 'mallory' WHERE seq = 1"),
		"another head":      changed("UPDATE chains SET seq = seq - 1"),
	} {
		at := filepath.Join(t.TempDir(), "refused")
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, force := range []bool{true, false} {
			into := to
			if !force {
				into = filepath.Join(place, "fresh")
			}
			if _, err := archive.Restore(t.Context(), archive.RestoreOptions{File: at, Home: into, Force: force}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if _, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: to}); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over files: %v", err)
	}
	if _, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: home, Force: true}); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("over a host at work: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Restore(cancelled, archive.RestoreOptions{File: file, Home: to, Force: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := archive.Backup(cancelled, archive.BackupOptions{Home: home, File: filepath.Join(dir, "other")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup, interrupted: %v", err)
	}
	if left, err := os.ReadDir(place); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("%v, %v", left, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "backup.*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	r, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: to, Force: true})
	if err != nil || !slices.Contains(r.Missing, store.KeyFile) {
		t.Fatalf("%+v, %v", r, err)
	}
	if text, err := os.ReadFile(filepath.Join(r.Before, "mine")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}
