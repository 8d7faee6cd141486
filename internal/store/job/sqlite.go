package job

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite" // the driver

	"github.com/mortise-dev/mortise/internal/base/filelock"
)

// pollSQLite is how long a wake-up of another process waits at most.
const pollSQLite = 200 * time.Millisecond

// quiet is River's driver without notifications. They would be rows, too, that
// only a host that stays ever deletes, and a read every 50 ms.
type quiet struct{ *riversqlite.Driver }

func (quiet) SupportsListener() bool     { return false }
func (quiet) SupportsListenNotify() bool { return false }

// forgetSQLite deletes stale wake-ups: without a serving host, no other process
// would delete them.
const forgetSQLite = `DELETE FROM river_job WHERE state IN ('available', 'scheduled') AND scheduled_at < ?`

// timeSQLite is how River writes a time, which is compared as text.
const timeSQLite = "2006-01-02 15:04:05.000"

// private makes the file where it is missing, readable by its owner only, and
// takes it from others where an earlier release made it. SQLite gives the files
// beside it the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// openSQLite opens the file. It does not wait for the disk: a wake-up that a
// power cut takes is one that the sweep finds.
func openSQLite(ctx context.Context, o Options) (engine, error) {
	path := filepath.Join(o.Home, File)
	if err := private(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	driver := quiet{riversqlite.New(db)}
	lock := func() (func(), error) {
		l, err := filelock.Acquire(filepath.Join(o.Home, "jobs.lock"))
		if err != nil {
			return nil, err
		}
		return l.Remove, nil
	}
	err = migrate(ctx, driver, "", o.Log, lock)
	if err == nil {
		_, err = db.ExecContext(ctx, forgetSQLite, time.Now().Add(-stale).UTC().Format(timeSQLite))
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("opening the queue in %s, which may be deleted while no host runs: %w", path, err)
	}
	return newQueue(driver, river.Config{Logger: o.Log, FetchPollInterval: pollSQLite}, func() { db.Close() })
}
