package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is the version that the newest migration leads to.
const schema = 26

// migrate creates the database if need be and brings it to the newest schema.
// On one that is there already this is a single read: user_version repeats
// what goose keeps in a table.
func (s *Store) migrate(ctx context.Context, e sqlstore.Engine) error {
	path := filepath.Join(s.dir, File)
	have, err := version(ctx, path, e.Read)
	switch {
	case err != nil:
		return err
	case have > schema:
		return &store.NewerError{Database: path, Have: have, Known: schema}
	case have == schema:
		return nil
	case e.Write == nil && have < 0:
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case e.Write == nil:
		return fmt.Errorf("%s has schema version %d and this binary reads %d: open it for writing once, which brings it up to date", path, have, schema)
	}

	if err := makeDir(s.dir); err != nil {
		return err
	}
	// Others may be doing the same; goose has no lock of its own for SQLite.
	lock, err := filelock.Acquire(filepath.Join(s.dir, "migrate.lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	if have > 0 {
		if err := s.alone(path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), store.SyncDir(s.dir)); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, e.Write, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if have, err = p.GetDBVersion(ctx); err != nil {
		return fmt.Errorf("reading the schema version of %s: %w", path, err)
	}
	if have > schema {
		return &store.NewerError{Database: path, Have: have, Known: schema}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrating %s: %w", path, err)
	}
	// Last, so that an interrupted migration is taken up again.
	_, err = e.Write.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schema))
	return err
}

// alone refuses to change the schema under a host that is at work: one of an earlier
// release would go on as it knows the schema, and break the chain.
func (s *Store) alone(path string) error {
	locks, err := filepath.Glob(s.lockPath("*"))
	for _, name := range locks {
		lock, lockErr := filelock.Try(name)
		switch {
		case lockErr != nil:
			err = errors.Join(err, lockErr)
		case lock == nil:
			return fmt.Errorf("%s is of an earlier release, and a host is at work on it: stop that one (as 'mortise serve'), and this one brings the database up to date", path)
		default:
			lock.Release()
		}
	}
	return err
}

// version returns the schema version of the database at path, -1 if there is
// no database.
func version(ctx context.Context, path string, db *sql.DB) (have int64, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	return have, nil
}
