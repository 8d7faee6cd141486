package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// scrubEvery is how soon a checkpoint is tried again that a reader held up.
const scrubEvery = 50 * time.Millisecond

// Scrub implements store.Scrubber. Connections that write overwrite what they delete
// (secure_delete). What is left of it then is in segments of the full-text index, which are
// merged here, and in the write-ahead log, which is copied into the database and cut off.
// For that it waits until no reader needs the log, up to the end of ctx.
func (s *Store) Scrub(ctx context.Context) (err error) {
	db, err := sql.Open("sqlite", dsn(s.dir, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "INSERT INTO kb_index (kb_index) VALUES ('optimize')"); err != nil {
		return fmt.Errorf("merging the index of words of %s: %w", filepath.Join(s.dir, File), err)
	}
	for {
		var busy, log, done int64
		if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil {
			return fmt.Errorf("cutting off the log of %s: %w", filepath.Join(s.dir, File), err)
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the log of %s still has what was deleted: a reader holds it: %w", filepath.Join(s.dir, File), context.Cause(ctx))
		case <-time.After(scrubEvery):
		}
	}
}
