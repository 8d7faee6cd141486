package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// seriesOf is the scheduled backups of a host.
func seriesOf(a *app.App) archive.Series {
	return archive.Series{Home: a.Home, Config: a.ConfigPath, Database: a.Config.Database, Settings: a.Config.Backups}
}

// backdate gives each backup of a directory a name that is older.
func backdate(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	const form = "20060102T150405Z"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), "mortise-")
		if !ok {
			continue
		}
		stamp, rest, _ := strings.Cut(stamp, ".")
		at, err := time.Parse(form, stamp)
		if err != nil || rest != "backup" {
			continue // it only looks like one
		}
		older := "mortise-" + at.Add(-by).Format(form) + "." + rest
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(dir, older)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAScheduledBackupIsWrittenAndRestored: a host that serves writes a backup when one is due,
// keeps as many as it is told to, deletes no other file, and what it wrote can be restored.
func TestAScheduledBackupIsWrittenAndRestored(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	write(t, home, config.FileName, allowAll+fmt.Sprintf("backups: {schedule: every 24h, directory: %s, keep: 2}\n", dir))
	serve := func(backups int) {
		t.Helper()
		a := openOn(t, home, "")
		stop := working(t, a)
		testwait.Until(t, fmt.Sprintf("%d backups", backups), func() bool {
			st, err := seriesOf(a).Status(time.Now())
			return err == nil && len(st.Backups) == backups && st.Next.After(time.Now()) && st.Failed == nil
		})
		stop()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "mortise-20200101T000000Z.backup.part", "of an attempt that was killed", "mortise-notes.backup", "another file", "mortise-20200101T000000Z.backups", "another file")

	serve(1) // the first is due at once
	serve(1) // and none after it for a day
	for range 3 {
		backdate(t, dir, 25*time.Hour)
		serve(2)
	}
	backdate(t, dir, 25*time.Hour)
	serve(2)
	for _, kept := range []string{"mortise-notes.backup", "mortise-20200101T000000Z.backups"} {
		if _, err := os.Stat(filepath.Join(dir, kept)); err != nil {
			t.Errorf("a file of another was deleted: %v", err)
		}
	}
	a := openOn(t, home, "")
	st, err := seriesOf(a).Status(time.Now())
	if err != nil || len(st.Backups) != 2 {
		t.Fatalf("%+v, %v", st, err)
	}
	restored, _ := again(t, st.Backups[0].File, home)
	if verified(t, restored) == 0 {
		t.Error("the restored ledger is empty")
	}
}

// TestAFailedScheduledBackupIsReported: the reason is kept for `mortise doctor` until a backup
// succeeds, and nothing is written in the meantime.
func TestAFailedScheduledBackupIsReported(t *testing.T) {
	t.Parallel()
	home, base := t.TempDir(), t.TempDir()
	write(t, base, "taken", "a file where the directory is to be")
	dir := filepath.Join(base, "taken", "backups")
	write(t, home, config.FileName, fmt.Sprintf("backups: {schedule: cron 0 3 * * *, zone: Europe/Berlin, directory: %s}\n", dir))
	a := openOn(t, home, "")
	stop := working(t, a)
	testwait.Until(t, "a reported failure", func() bool {
		st, _ := seriesOf(a).Status(time.Now())
		return st.Failed != nil && strings.Contains(st.Failed.Message, "backups.directory cannot be")
	})
	stop()
	s := seriesOf(a)
	s.Settings.Directory = filepath.Join(base, "free")
	if _, _, _, err := s.Make(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Status(time.Now()); err != nil || st.Failed != nil || len(st.Backups) != 1 || st.Next.Location() == nil || !st.Next.After(time.Now()) {
		t.Errorf("after a backup that succeeded: %+v, %v", st, err)
	}
}

// TestABackupInsideTheDataDirectoryIsRefused: it would be lost together with the data.
func TestABackupInsideTheDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := openOn(t, home, "")
	for _, dir := range []string{home, filepath.Join(home, "backups")} {
		s := seriesOf(a)
		s.Settings.Directory = dir
		if _, _, _, err := s.Make(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "inside the data directory") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestHostsThatShareADirectoryWriteOneBackup: two nodes of one PostgreSQL database write one
// backup between them, because the second finds the newest backup or the lock of the first.
func TestHostsThatShareADirectoryWriteOneBackup(t *testing.T) {
	t.Parallel()
	dir, blobs, url, first := filepath.Join(t.TempDir(), "backups"), t.TempDir(), pgtest.Open(t), ""
	var hosts []*app.App
	for range 2 {
		home := t.TempDir()
		write(t, home, config.FileName, fmt.Sprintf("blobs: %s\nbackups: {schedule: every 24h, directory: %s}\n", blobs, dir))
		if first == "" {
			first = home
		} else {
			shareKey(t, first, home)
		}
		hosts = append(hosts, openOn(t, home, url))
	}
	var stops []func()
	for _, a := range hosts {
		stops = append(stops, working(t, a))
	}
	testwait.Until(t, "a backup", func() bool {
		st, err := seriesOf(hosts[0]).Status(time.Now())
		return err == nil && len(st.Backups) > 0
	})
	for _, a := range hosts { // now each host has looked after the backup was there
		seriesOf(a).Advance(t.Context(), quiet)
	}
	for _, stop := range stops {
		stop()
	}
	if st, err := seriesOf(hosts[0]).Status(time.Now()); err != nil || len(st.Backups) != 1 {
		t.Errorf("%+v, %v", st.Backups, err)
	}
}
