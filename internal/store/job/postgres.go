package job

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

const (
	dialTimeout = 5 * time.Second  // for a server that does not answer, unless the URL says otherwise
	migrating   = 0x6d6f72746a6f62 // the advisory lock that is held meanwhile
	connections = 6                // at most, one of which listens

	// forgetPostgres deletes stale wake-ups: without a serving host, no other
	// process would delete them.
	forgetPostgres = `DELETE FROM ` + Schema + `.river_job WHERE state IN ('available', 'scheduled') AND scheduled_at < $1`
)

// openPostgres opens the queue's schema in the store's database.
func openPostgres(ctx context.Context, o Options) (_ engine, err error) {
	config, err := pgxpool.ParseConfig(o.Database)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, dialTimeout)
	config.MaxConns = connections
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "mortise jobs"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	shut := func() {
		if err := within(grace, pool.Close); err != nil { // it waits for a server that may be away
			o.Log.Warn("the connections of the queue are left to the end of the process", "cause", err.Error())
		}
	}
	driver := riverpgxv5.New(pool)
	lock := func() (func(), error) { return lockPostgres(ctx, pool) }
	err = migrate(ctx, driver, Schema, o.Log, lock)
	if err == nil {
		_, err = pool.Exec(ctx, forgetPostgres, time.Now().Add(-stale))
	}
	if err != nil {
		shut()
		return nil, fmt.Errorf("opening the queue in database %s on %s: %w", config.ConnConfig.Database, config.ConnConfig.Host, err)
	}
	return newQueue(driver, river.Config{Logger: o.Log, Schema: Schema}, shut)
}

// lockPostgres keeps other nodes from migrating, and makes the schema where
// there is none. The lock ends with its connection, whatever becomes of this
// process.
func lockPostgres(ctx context.Context, pool *pgxpool.Pool) (unlock func(), err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	unlock = func() {
		conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrating))
		conn.Release()
	}
	if _, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrating)); err != nil {
		conn.Release()
		return nil, err
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", Schema).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE SCHEMA "+Schema)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}
