// Package archive puts the state of a host into one file, and back into a data directory.
package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/datadir"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A BackupOptions says what is backed up, and where to.
type BackupOptions struct {
	Home       string
	Config     string // the configuration file, where it is not in Home
	Database   config.Database
	File       string
	Force      bool            // replaces a backup that is there
	Recipients []age.Recipient // age recipients that may decrypt it; none leaves it unencrypted
	Keys       bool            // puts the keys of the data directory in; only where it is encrypted

	// Doing hears from time to time what is being done, and how many bytes were
	// written. It may be nil.
	Doing func(what string, written int64)
}

// A Manifest is what a backup says of itself.
type Manifest = backup.Manifest

// elsewhere is where files of a backup are that belong outside the data
// directory, by their whole paths.
const elsewhere = "elsewhere"

// Backup writes the state of a host to one file, while others may be at work on
// it. Keys are part of it only where that is asked for and it is encrypted.
func Backup(ctx context.Context, o BackupOptions) (m backup.Manifest, err error) {
	b, err := begun(o)
	if err != nil {
		return m, err
	}
	home, temp := b.home, b.temp
	// One at a time, so that what one that died left can be cleared away.
	lock, err := filelock.Try(filepath.Join(home, "backup.lock"))
	if err != nil {
		return m, &setup.Error{Err: err}
	}
	if lock == nil {
		return m, plugin.Errorf(plugin.CodeUnavailable, "another backup of %s is being made; wait for it to end", home)
	}
	defer lock.Remove()
	if err := rmtree.Remove(temp); err != nil {
		return m, err
	}
	w, err := backup.Create(o.File, o.Force, o.Recipients...)
	if told := taken(o.File, err); told != nil {
		return m, told
	}
	if err != nil {
		return m, &setup.Error{Err: fmt.Errorf("the backup cannot be written: %w", err)}
	}
	b.w = w
	m = backup.Manifest{Version: version.Host, MadeAt: now(), Database: "sqlite", Notes: []string{}, Heads: []backup.Head{}}
	if err := errors.Join(b.all(ctx, &m), rmtree.Remove(temp)); err != nil {
		return m, errors.Join(err, w.Abort())
	}
	if err := w.Finish(ctx, &m); err != nil {
		if told := taken(o.File, err); told != nil {
			return m, told
		}
		return m, fmt.Errorf("the backup cannot be written: %w", err)
	}
	return m, nil
}

// begun returns a backup that has nowhere to write to yet.
func begun(o BackupOptions) (*backingUp, error) {
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return nil, err
	}
	if o.Doing == nil {
		o.Doing = func(string, int64) {}
	}
	if o.Keys && len(o.Recipients) == 0 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "keys are only in a backup that is encrypted: add --recipient or --passphrase-file")
	}
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is nothing in %s to back up; --home or MORTISE_HOME names another data directory", home)
	}
	c, at, err := setup.ReadConfig(home, o.Config)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	return &backingUp{BackupOptions: o, home: home, conf: c, confAt: at, temp: filepath.Join(home, "backup.tmp")}, nil
}

// taken is the error of a backup whose file is another's, nil for any other error.
func taken(file string, err error) error {
	switch {
	case errors.Is(err, backup.ErrBusy):
		return plugin.Errorf(plugin.CodeUnavailable, "another backup is being written to %s; wait for it to end, or name another file", file)
	case errors.Is(err, fs.ErrExist):
		return plugin.Errorf(plugin.CodeInvalidInput, "%s is there already; name another file, or replace it with --force", file)
	}
	return nil
}

// A backingUp is one backup on its way.
type backingUp struct {
	BackupOptions
	home   string // absolute
	conf   config.Config
	confAt string
	temp   string // for the copy of the database
	w      sink
}

// A sink takes the members of a backup: into a file, or to count them.
type sink interface {
	Has(name string) bool
	Written() int64
	Add(ctx context.Context, name string, mode fs.FileMode, size int64, r io.Reader) error
	AddFile(ctx context.Context, name, path string) error
}

// all puts everything into the backup. Files that are only ever added or deleted
// are taken before the database and after it: what the database knows of is then
// among them, whatever happens meanwhile.
func (b *backingUp) all(ctx context.Context, m *backup.Manifest) error {
	m.Key = keyID(b.home)
	keys, err := b.keys()
	if err != nil {
		return err
	}
	if err := b.files(ctx); err != nil {
		return err
	}
	if err := b.database(ctx, m); err != nil {
		return err
	}
	if err := b.addKeys(ctx, m, keys); err != nil {
		return err
	}
	if err := b.files(ctx); err != nil {
		return err
	}
	if b.conf.Blobs != "" {
		m.Notes = append(m.Notes, fmt.Sprintf("The bytes of artifacts are in %s and not in here: back that up after this, and put it back before the host is started.", b.conf.Blobs))
	}
	return b.configuration(ctx, m)
}

// database adds a copy of the database.
func (b *backingUp) database(ctx context.Context, m *backup.Manifest) error {
	if b.Database != "" {
		m.Database = "postgresql"
		return b.tables(ctx, m)
	}
	if _, err := os.Stat(filepath.Join(b.home, sqlite.File)); errors.Is(err, fs.ErrNotExist) {
		return plugin.Errorf(plugin.CodeNotFound, "there is no database in %s to back up; --home or MORTISE_HOME names another data directory", b.home)
	}
	if t, counts := b.w.(*tally); counts {
		return t.AddFile(ctx, sqlite.File, filepath.Join(b.home, sqlite.File))
	}
	b.Doing("copying the database", b.w.Written())
	if err := os.Mkdir(b.temp, 0o700); err != nil {
		return err
	}
	m.MadeAt = now()
	version, heads, err := sqlite.Copy(ctx, b.home, b.temp, asCopy(m.MadeAt))
	if err != nil {
		return err
	}
	m.Schema, m.Heads = version, headsOf(heads)
	return b.w.AddFile(ctx, sqlite.File, filepath.Join(b.temp, sqlite.File))
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// files adds what there is in directories that are copied, and is not in the backup yet.
func (b *backingUp) files(ctx context.Context) error {
	for _, dir := range datadir.With(datadir.Copied) {
		err := filepath.WalkDir(filepath.Join(b.home, dir.Name), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted meanwhile
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(b.home, path)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(rel)
			own := dir.Own || strings.Contains(name, "/reference/")                       // which the host writes for a tenant too
			if own && unfinished(d.Name()) || !own && strings.HasPrefix(d.Name(), "..") { // such as volumes of Kubernetes have
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if b.w.Has(name) {
				return nil
			}
			b.Doing("copying "+name, b.w.Written())
			if d.IsDir() {
				info, err := d.Info()
				if err != nil {
					return ignoreGone(err)
				}
				return b.w.Add(ctx, name, info.Mode(), 0, nil)
			}
			if d.Type()&fs.ModeSymlink != 0 && !own {
				return b.linked(ctx, name, path)
			}
			if !d.Type().IsRegular() {
				return fmt.Errorf("%s is neither a file nor a directory, and nothing of the host's", path)
			}
			return ignoreGone(b.w.AddFile(ctx, name, path))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linked adds the file that a person has put a symbolic link to, as its text: what reads the
// configuration follows links too. A directory that is linked has no place in a backup.
func (b *backingUp) linked(ctx context.Context, name, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return ignoreGone(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxLinked {
		return fmt.Errorf("%s is a link to something other than a file of at most %d bytes: a backup would not have it; put the file itself there", path, maxLinked)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ignoreGone(err)
	}
	return b.w.Add(ctx, name, 0o600, int64(len(text)), bytes.NewReader(text))
}

// maxLinked bounds a file that is linked.
const maxLinked = 1 << 20

// unfinished reports whether a file is one that is being written or deleted.
func unfinished(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, ".gone-") || strings.HasSuffix(name, ".lock")
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// configuration adds the files that the host is told by.
func (b *backingUp) configuration(ctx context.Context, m *backup.Manifest) error {
	at, err := filepath.Abs(b.confAt)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the defaults hold
	}
	if err != nil {
		return err
	}
	if err := b.told(ctx, m, at, text); err != nil {
		return err
	}
	dir := filepath.Dir(at)
	documents, err := policy.Files(dir, b.conf.Policy.Files...)()
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("the policies cannot be read: %w", err)}
	}
	for _, d := range documents {
		path := filepath.FromSlash(d.Name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := b.told(ctx, m, path, d.Text); err != nil {
			return err
		}
	}
	return nil
}

// told adds a text of the configuration, in its place or, where that is not in
// the data directory, apart.
func (b *backingUp) told(ctx context.Context, m *backup.Manifest, path string, text []byte) error {
	rel, err := filepath.Rel(b.home, path)
	if err != nil {
		return err
	}
	name := filepath.ToSlash(rel)
	if !datadir.Restorable(name) {
		name = elsewhere + filepath.ToSlash(path)
		m.Notes = append(m.Notes, fmt.Sprintf("%s is not in the data directory: it will be in %s/, from where a person has to take it.", path, elsewhere))
	}
	if b.w.Has(name) {
		return nil
	}
	return b.w.Add(ctx, name, 0o600, int64(len(text)), bytes.NewReader(text))
}

// inBackup reports whether a backup may have a member of that name: what a restore puts into the
// data directory, and the parts of the archive itself.
func inBackup(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return top == elsewhere || top == tablesDir || top == keysDir || datadir.Restorable(name)
}
