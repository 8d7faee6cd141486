package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/datadir"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A RestoreOptions says what is restored, and where.
type RestoreOptions struct {
	File       string
	Home       string
	Force      bool            // in place of a data directory that is not empty
	Identities []age.Identity  // to open it with
	Database   config.Database // an empty one for that of the backup, where it is of PostgreSQL; with Force, one in use by no host
	Keys       bool            // takes the keys of the backup where the data directory has none
}

// A Restored is what came of it.
type Restored struct {
	Manifest backup.Manifest
	Entries  int64    // of the ledger that were verified; -1 where that was not possible yet
	Missing  []string // keys that the host needs and that are not there
	Before   string   // where the data directory is now that was there before; "" where there was none
}

// backedKeys are the keys that a data directory has.
var backedKeys = names(datadir.With(datadir.Key))

func names(entries []datadir.Entry) (names []string) {
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// Restore puts a backup into a data directory, in one step and in recovery. All
// of it is checked before that; where something is wrong the data directory is
// what it was.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return r, err
	}
	there, err := others(home)
	if err != nil {
		return r, &setup.Error{Err: err}
	}
	if len(there) > 0 && !o.Force {
		return r, plugin.Errorf(plugin.CodeInvalidInput, "%s has files (%s); name an empty data directory, or put the backup in its place with --force", home, strings.Join(there[:min(3, len(there))], ", "))
	}
	if r.Manifest, err = backup.Check(ctx, o.File, o.Identities...); err != nil {
		return r, refusedBackup(o.File, err)
	}
	for _, m := range r.Manifest.Members {
		inside := strings.HasPrefix(m.Name+"/", tablesDir+"/")
		if !inBackup(m.Name) || inside && r.Manifest.Database != "postgresql" {
			return r, refusedBackup(o.File, fmt.Errorf("it has %.100q, which is in no backup; nothing was restored", m.Name))
		}
	}
	if err := r.placed(o.Database); err != nil {
		return r, err
	}
	leave, err := alone(home)
	if err != nil {
		return r, err
	}
	defer leave()
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		return r, &setup.Error{Err: err}
	}
	staged, err := os.MkdirTemp(filepath.Dir(home), "."+filepath.Base(home)+".restore-")
	if err != nil {
		return r, &setup.Error{Err: fmt.Errorf("the backup cannot be put beside %s: %w", home, err)}
	}
	defer func() { err = errors.Join(err, rmtree.Remove(staged)) }()
	if _, err := backup.Extract(ctx, o.File, staged, o.Identities...); err != nil {
		return r, refusedBackup(o.File, err)
	}
	if err := keep(home, staged); err != nil {
		return r, err
	}
	if err := r.takeKeys(staged, o.Keys); err != nil {
		return r, err
	}
	tables, err := tablesApart(staged)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rmtree.Remove(tables)) }()
	if err := r.check(ctx, staged); err != nil {
		return r, err
	}
	if err := syncAll(staged); err != nil {
		return r, err
	}
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	// What could still fail after the database is committed is a rename; it can be done again.
	loaded, err := r.load(ctx, o, staged, tables)
	if err != nil {
		return r, err
	}
	if err = r.put(staged, home, len(there) > 0); err != nil && loaded {
		err = fmt.Errorf("the database was restored and %s was not, so restore again with --force: %w", home, err)
	}
	return r, err
}

func refusedBackup(file string, err error) error {
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk), errors.Is(err, context.Canceled):
		return err
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", file, err)
}

// others returns what a data directory has beside what a restore keeps.
func others(home string) (names []string, err error) {
	entries, err := os.ReadDir(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if of, known := datadir.Find(e.Name()); !known || of.Care != datadir.Key && of.Care != datadir.Kept {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// alone makes sure that no host has a data directory open, and keeps others from
// serving it until leave is called.
func alone(home string) (leave func(), err error) {
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	locks, err := filepath.Glob(filepath.Join(home, "nodes", "*.lock"))
	if err != nil {
		return nil, err
	}
	var held []*filelock.Lock
	leave = func() {
		for _, lock := range held {
			lock.Release()
		}
	}
	for _, path := range append(locks, filepath.Join(home, "backup.lock"), filepath.Join(home, setup.ServeLock)) {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		lock, err := filelock.Try(path)
		if err != nil {
			leave()
			return nil, err
		}
		if lock == nil {
			leave()
			return nil, plugin.Errorf(plugin.CodeUnavailable, "%s is in use; stop what has it open, 'mortise serve' among them", home)
		}
		held = append(held, lock)
	}
	return leave, nil
}

// keep takes along what the data directory has and no backup does: its keys, and
// what is remembered of its ledger.
func keep(home, staged string) error {
	var paths []string
	for _, e := range datadir.With(datadir.Key, datadir.Kept) {
		found, err := filepath.Glob(filepath.Join(home, e.Name))
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return &setup.Error{Err: fmt.Errorf("%s is no regular file", path)}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(staged, filepath.Base(path)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// check holds what was extracted against what it should be.
func (r *Restored) check(ctx context.Context, staged string) error {
	key, err := store.ReadKey(staged)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if key != nil && r.Manifest.Key != "" && key.ID() != r.Manifest.Key {
		return plugin.Errorf(plugin.CodeInvalidInput, "the %s that is there is not the one that the backup's ledger is signed with; put that one in its place", store.KeyFile)
	}
	if key == nil && r.Manifest.Key != "" {
		r.Missing = append(r.Missing, store.KeyFile)
	}
	if _, err := os.Stat(filepath.Join(staged, secret.KeyFile)); errors.Is(err, fs.ErrNotExist) {
		r.Missing = append(r.Missing, secret.KeyFile)
	}
	r.Entries = -1
	// The first host makes sure by it that it is in recovery, whatever the database says.
	if err := os.WriteFile(filepath.Join(staged, setup.RestoredFile), []byte(r.Manifest.MadeAt.Format(setup.TimeFormat)+"\n"), 0o600); err != nil || r.Manifest.Database != "sqlite" {
		return err
	}
	if err := sqlite.CheckFile(ctx, staged, true); err != nil {
		if err := newer(r.Manifest, err); err != nil {
			return err
		}
		return plugin.Errorf(plugin.CodeInvalidInput, "the backup cannot be used: %w; nothing was restored", err)
	}
	if err := sqlite.MarkRecovery(ctx, staged, asCopy(r.Manifest.MadeAt)); err != nil {
		return err
	}
	return r.verify(ctx, staged, key)
}

// newer returns what is said of a backup whose schema this program does not know, nil for any
// other error.
func newer(m backup.Manifest, err error) error {
	var known *store.NewerError
	if !errors.As(err, &known) {
		return nil
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "the backup is of a newer mortise (%s), and this is %s: restore it with that one", m.Version, version.Host)
}

// verify walks the ledger of the copy. One of an older schema can be read only
// once a host has brought it up to date.
func (r *Restored) verify(ctx context.Context, staged string, key *store.Key) (err error) {
	if r.Manifest.Schema < sqlite.Schema {
		return nil
	}
	st, err := sqlite.Open(ctx, staged, sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return r.walk(ctx, st, key)
}

// load puts the tables of a backup into a database, in recovery. It reports whether there was
// one to put there.
func (r *Restored) load(ctx context.Context, o RestoreOptions, staged, tables string) (loaded bool, err error) {
	m := r.Manifest
	if len(m.Tables) == 0 {
		return false, nil
	}
	key, err := store.ReadKey(staged)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	l := postgres.Loading{
		Schema:   m.Schema,
		Open:     func(table string) (io.ReadCloser, error) { return os.Open(filepath.Join(tables, table+".copy")) },
		Recovery: asCopy(m.MadeAt),
		Replace:  o.Force,
		Check:    func(ctx context.Context, st store.Store) error { return r.walk(ctx, st, key) },
	}
	for _, t := range m.Tables {
		l.Tables = append(l.Tables, postgres.Table(t))
	}
	err = postgres.Load(ctx, o.Database.URL(), l)
	var said *plugin.Error
	switch {
	case err == nil, errors.As(err, &said), errors.Is(err, context.Canceled):
		return err == nil, err
	case errors.Is(err, postgres.ErrNotEmpty):
		return false, plugin.Errorf(plugin.CodeInvalidInput, "the database %s: %w; name an empty one, or replace what a host has there with --force", o.Database, err)
	case errors.Is(err, postgres.ErrInUse):
		return false, plugin.Errorf(plugin.CodeUnavailable, "the database %s: %w; stop every host that has it open", o.Database, err)
	}
	if err := newer(m, err); err != nil {
		return false, err
	}
	return false, plugin.Errorf(plugin.CodeInvalidInput, "the database %s cannot be restored: %w; nothing was restored", o.Database, err)
}

// walk holds the ledger of a copy against the manifest and against itself.
func (r *Restored) walk(ctx context.Context, st store.Store, key *store.Key) error {
	heads, err := st.Chains(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(headsOf(heads), r.Manifest.Heads) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the backup cannot be used: its ledger does not end where its manifest says; nothing was restored")
	}
	if err := r.tenants(ctx, st); err != nil {
		return err
	}
	report, err := ledger.VerifyCopy(ctx, st, key)
	if err != nil {
		return err
	}
	if report.Fault != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the backup cannot be used: its ledger does not hold: entry %d of chain %d: %s; nothing was restored", report.Fault.Seq, report.Fault.Chain, report.Fault.What)
	}
	r.Entries = report.Entries
	return nil
}

// tenants says which tenants of the copy have no directory in it: they are not served.
func (r *Restored) tenants(ctx context.Context, st store.Store) error {
	rows, err := st.Tenants(store.Everywhere(ctx))
	for _, row := range rows {
		dir := host.TenantDir("", row.Name) + "/"
		if !slices.ContainsFunc(r.Manifest.Members, func(m backup.Member) bool { return m.Name+"/" == dir || strings.HasPrefix(m.Name, dir) }) {
			r.Manifest.Notes = append(r.Manifest.Notes, fmt.Sprintf("The backup has no %s, so tenant %s is not served. Put its configuration and policies there, or make an empty directory if it has none.", dir, row.Name))
		}
	}
	return err
}

func headsOf(rows []store.ChainRow) []backup.Head {
	heads := []backup.Head{}
	for _, row := range rows {
		heads = append(heads, backup.Head{Chain: row.ID, Seq: row.Seq, Head: row.Head})
	}
	return heads
}

// asCopy says of a database that it is a copy of a time.
func asCopy(at time.Time) store.Recovery {
	return store.Recovery{Since: at, Why: "restored from a backup"}
}

// keyID returns the id of the ledger's key in a data directory, "" where there is none.
func keyID(home string) string {
	key, err := store.ReadKey(home)
	if err != nil {
		return ""
	}
	return key.ID()
}

// put gives the staged directory its name. What had it before keeps its files,
// under another.
func (r *Restored) put(staged, home string, before bool) error {
	aside := ""
	if _, err := os.Lstat(home); err == nil {
		aside = fmt.Sprintf("%s.before-%s", home, now().Format("20060102T150405.000000"))
		if err := os.Rename(home, aside); err != nil {
			return &setup.Error{Err: fmt.Errorf("%s cannot be moved aside: %w; a data directory that is a mount point cannot be restored into: name one below it", home, err)}
		}
	}
	if err := os.Rename(staged, home); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, home))
		}
		return err
	}
	if err := store.SyncDir(filepath.Dir(home)); err != nil {
		return err
	}
	if aside != "" && !before { // it had nothing but the keys, which were taken along
		return rmtree.Remove(aside)
	}
	r.Before = aside
	return nil
}

// syncAll makes the names of all that is below dir durable.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return store.SyncDir(path)
	})
}
