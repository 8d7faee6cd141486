package job

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite" // the driver

	"github.com/mortise-dev/mortise/internal/store"
)

// pollSQLite is how long a wake-up of another process waits at most.
const pollSQLite = 200 * time.Millisecond

// quiet is River's driver without notifications. They would be rows, too, that
// only a host that stays ever deletes, and a read every 50 ms.
type quiet struct{ *riversqlite.Driver }

func (quiet) SupportsListener() bool     { return false }
func (quiet) SupportsListenNotify() bool { return false }

// forgetSQLite deletes wake-ups that nobody came for: where no host stays, there
// is nobody who would do it later.
const forgetSQLite = `DELETE FROM river_job WHERE state IN ('available', 'scheduled') AND scheduled_at < ?`

// timeSQLite is how River writes a time, which is compared as text.
const timeSQLite = "2006-01-02 15:04:05.000"

// openSQLite opens the file. It does not wait for the disk: a wake-up that a
// power cut takes is one that the sweep finds.
func openSQLite(ctx context.Context, o Options) (engine, error) {
	path := filepath.Join(o.Home, File)
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	driver := quiet{riversqlite.New(db)}
	lock := func() (func(), error) {
		l, err := store.AcquireLock(filepath.Join(o.Home, "jobs.lock"))
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
