package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/plugin"
)

// A Series is the scheduled backups of one host: what mortise.yaml says under backups, and the
// files that were written by it.
//
// The directory is the only state of the schedule. The newest backup in it says when the next
// one is due, so a host that was down catches up once, and hosts that share a directory and a
// name write one backup between them.
type Series struct {
	Home     string
	Config   string // the configuration file, if it is not in Home
	Database config.Database
	Settings config.Backups
}

// A Scheduled is one backup of a series.
type Scheduled struct {
	File   string    `json:"file"`
	MadeAt time.Time `json:"made_at"`
	Bytes  int64     `json:"bytes"`
}

// A SeriesStatus is the state of a series.
type SeriesStatus struct {
	Schedule  string      `json:"schedule"`
	Directory string      `json:"directory"`
	Keep      int         `json:"keep"`
	Backups   []Scheduled `json:"backups"`       // the newest first
	Next      time.Time   `json:"next,omitzero"` // when the next one is due
	Failed    *Failure    `json:"failed"`        // the last attempt, if it failed
	Overdue   bool        `json:"overdue"`       // more than an hour after its time
}

// A Failure is an attempt to write a backup that failed.
type Failure struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

const (
	lookEvery    = 30 * time.Second // how often a host looks whether a backup is due
	retryAfter   = 15 * time.Minute // how long it waits after a failure
	overdueAfter = time.Hour
	failureFile  = "backups.failed" // in the data directory: the last attempt, if it failed
	stampFormat  = "20060102T150405Z"
	maxListed    = 100_000 // directory entries that are looked at
)

// Status lists the backups of the series and says when the next one is due.
func (s Series) Status(now time.Time) (SeriesStatus, error) {
	st := SeriesStatus{Schedule: s.Settings.Schedule, Directory: s.Settings.Directory, Keep: s.Settings.Keep, Backups: []Scheduled{}, Failed: s.failed()}
	if s.Settings.Directory == "" {
		return st, nil
	}
	var err error
	if st.Backups, err = s.list(); err != nil || s.Settings.Schedule == "" {
		return st, err
	}
	spec, err := s.Settings.Spec()
	if err != nil {
		return st, err
	}
	newest := s.newest(st.Backups)
	if newest.IsZero() {
		st.Next, st.Overdue = now, st.Failed != nil
		return st, nil
	}
	st.Next = spec.Next(newest, newest)
	st.Overdue = !st.Next.IsZero() && now.Sub(st.Next) > overdueAfter
	return st, nil
}

// Make writes one backup of the series now and deletes those beyond the number that is kept.
// It returns the file and what was deleted. Only files that a series of this name wrote, by
// their exact form, are ever deleted.
func (s Series) Make(ctx context.Context, doing func(what string, written int64)) (file string, m backup.Manifest, deleted []string, err error) {
	lock, err := s.lock()
	if err != nil {
		return "", m, nil, err
	}
	defer lock.Remove()
	return s.make(ctx, doing)
}

func (s Series) make(ctx context.Context, doing func(what string, written int64)) (file string, m backup.Manifest, deleted []string, err error) {
	defer func() { s.note(ctx, err) }()
	recipients, err := Recipients(s.Settings.Recipients, s.Settings.PassphraseFile)
	if err != nil {
		return "", m, nil, &setup.Error{Err: fmt.Errorf("backups in mortise.yaml: %w", err)}
	}
	file = filepath.Join(s.Settings.Directory, s.Settings.Name+"-"+time.Now().UTC().Format(stampFormat)+s.suffix())
	m, err = Backup(ctx, BackupOptions{Home: s.Home, Config: s.Config, Database: s.Database, File: file, Recipients: recipients, Keys: s.Settings.WithKeys, Doing: doing})
	if err != nil {
		return file, m, nil, err
	}
	deleted, err = s.prune()
	return file, m, deleted, err
}

// Surplus returns the backups that the next one makes superfluous.
func (s Series) Surplus() ([]Scheduled, error) {
	all, err := s.list()
	if err != nil || len(all) < s.Settings.Keep {
		return nil, err
	}
	return all[s.Settings.Keep-1:], nil
}

// lock makes the directory, and takes its turn in it.
func (s Series) lock() (*filelock.Lock, error) {
	if s.Settings.Directory == "" {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "mortise.yaml names no backups.directory, so there is nowhere to write scheduled backups to")
	}
	home, err := filepath.Abs(s.Home)
	if err != nil {
		return nil, err
	}
	if within, err := filepath.Rel(home, s.Settings.Directory); err == nil && filepath.IsLocal(within) {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "backups.directory %s is inside the data directory: what is lost with it would take its backups along; name another", s.Settings.Directory)
	}
	if err := os.MkdirAll(s.Settings.Directory, 0o700); err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("backups.directory cannot be used: %w", err)}
	}
	lock, err := filelock.Try(filepath.Join(s.Settings.Directory, "."+s.Settings.Name+".lock"))
	switch {
	case err != nil:
		return nil, &setup.Error{Err: fmt.Errorf("backups.directory cannot be used: %w", err)}
	case lock == nil:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "another host writes a backup to %s at the moment; wait for it to end", s.Settings.Directory)
	}
	return lock, nil
}

func (s Series) suffix() string {
	if s.Settings.Encrypted() {
		return ".backup.age"
	}
	return ".backup"
}

// list returns the backups of the series, the newest first.
func (s Series) list() ([]Scheduled, error) {
	dir, err := os.Open(s.Settings.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return []Scheduled{}, nil
	}
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("backups.directory cannot be read: %w", err)}
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxListed)
	if err != nil && len(names) > 0 {
		return nil, err
	}
	all := []Scheduled{}
	for _, name := range names {
		at, ok := s.madeAt(name)
		if !ok {
			continue
		}
		path := filepath.Join(s.Settings.Directory, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, Scheduled{File: path, MadeAt: at, Bytes: info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b Scheduled) int {
		if c := b.MadeAt.Compare(a.MadeAt); c != 0 {
			return c
		}
		return strings.Compare(a.File, b.File)
	})
	return all, nil
}

// madeAt reads the time in the name of a backup of this series; false for any other name.
func (s Series) madeAt(name string) (time.Time, bool) {
	stamp, ok := strings.CutPrefix(name, s.Settings.Name+"-")
	if !ok {
		return time.Time{}, false
	}
	if plain, encrypted := strings.CutSuffix(stamp, ".age"); encrypted {
		stamp = plain
	}
	if stamp, ok = strings.CutSuffix(stamp, ".backup"); !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(stampFormat, stamp)
	return at, err == nil && at.Format(stampFormat) == stamp
}

func (s Series) newest(all []Scheduled) time.Time {
	if len(all) == 0 {
		return time.Time{}
	}
	return all[0].MadeAt
}

// prune deletes the backups beyond the number that is kept.
func (s Series) prune() (deleted []string, err error) {
	all, err := s.list()
	if err != nil || len(all) <= s.Settings.Keep {
		return nil, err
	}
	for _, one := range all[s.Settings.Keep:] {
		if err := os.Remove(one.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return deleted, &setup.Error{Err: fmt.Errorf("the backup is written, and an older one cannot be deleted: %w", err)}
		}
		deleted = append(deleted, one.File)
	}
	return deleted, nil
}

// note records a failed attempt for `mortise doctor`, and forgets it after one that succeeded.
func (s Series) note(ctx context.Context, failure error) {
	path := filepath.Join(s.Home, failureFile)
	if failure == nil {
		_ = os.Remove(path)
		return
	}
	if ctx.Err() != nil { // the host was stopped; the backup is due again when it starts
		return
	}
	text, err := json.Marshal(Failure{At: time.Now().UTC().Truncate(time.Second), Message: failure.Error()})
	if err == nil {
		_ = os.WriteFile(path, text, 0o600) // what cannot be written here is in the log
	}
}

func (s Series) failed() *Failure {
	text, err := os.ReadFile(filepath.Join(s.Home, failureFile))
	var f Failure
	if err != nil || json.Unmarshal(text, &f) != nil {
		return nil
	}
	return &f
}

// due reports whether a backup is to be written now.
func (s Series) due(now time.Time) (bool, error) {
	if s.Settings.Schedule == "" {
		return false, nil
	}
	if f := s.failed(); f != nil && now.Sub(f.At) < retryAfter && !now.Before(f.At) {
		return false, nil
	}
	st, err := s.Status(now)
	return err == nil && !st.Next.IsZero() && !st.Next.After(now), err
}

// KeepBackups writes the backups of a host that serves when they are due, until ctx ends.
// series returns the settings that are in force.
func KeepBackups(ctx context.Context, series func() Series, log *slog.Logger) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if s := series(); s.Settings.Schedule != "" {
			s.Advance(ctx, log)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// Advance writes a backup if one is due and no other host is writing it. It logs errors.
func (s Series) Advance(ctx context.Context, log *slog.Logger) {
	failed := func(err error) {
		if ctx.Err() == nil {
			log.Error("the scheduled backup failed; it is tried again later", "directory", s.Settings.Directory, "retry_after", retryAfter.String(), "cause", err.Error())
		}
	}
	due, err := s.due(time.Now())
	if err != nil {
		s.note(ctx, err)
		failed(err)
		return
	}
	if !due {
		return
	}
	lock, err := s.lock()
	if plugin.CodeOf(err) == plugin.CodeUnavailable {
		return // another host writes it
	}
	if err != nil {
		s.note(ctx, err)
		failed(err)
		return
	}
	defer lock.Remove()
	if due, err := s.due(time.Now()); !due || err != nil { // another host wrote it meanwhile
		return
	}
	begun := time.Now()
	file, _, deleted, err := s.make(ctx, nil)
	if err != nil {
		failed(err)
		return
	}
	log.Info("a scheduled backup was written", "file", file, "took", time.Since(begun).String(), "deleted", len(deleted))
}
