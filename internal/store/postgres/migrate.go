package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/mortise-dev/mortise/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	schema    = 25                   // the version that the newest migration leads to
	versions  = "mortise_migrations" // the table in which goose keeps it: others may use goose in this database too
	migrating = 0x6d6f7274697365     // the advisory lock that is held meanwhile
)

// newer is the error of a database whose schema this program does not know.
func newer(name string, have int64) error {
	return &store.NewerError{Database: name, Have: have, Known: schema}
}

// migrated refuses a database of another schema.
func migrated(ctx context.Context, db *sql.DB, name string) error {
	switch have, err := version(ctx, db); {
	case err != nil:
		return fmt.Errorf("opening %s: %w", name, err)
	case have > schema:
		return newer(name, have)
	case have < schema:
		return fmt.Errorf("%s has schema version %d and this binary reads %d: open it for writing once, which brings it up to date", name, have, schema)
	}
	return nil
}

// migrate brings the database to the newest schema. On one that is there
// already this is a single read.
func migrate(ctx context.Context, db *sql.DB, name string) error {
	if have, err := version(ctx, db); err != nil || have == schema {
		return err
	}
	// Others may be doing the same. The lock ends with its connection, whatever
	// becomes of this process.
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrating)); err != nil {
		return fmt.Errorf("waiting to migrate %s: %w", name, err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrating))

	have, err := version(ctx, db)
	if err != nil {
		return err
	}
	if have > schema {
		return newer(name, have)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName(versions))
	if err != nil {
		return err
	}
	if _, err := p.Up(store.Everywhere(ctx)); err != nil {
		return fmt.Errorf("migrating %s: %w", name, err)
	}
	return nil
}

// version returns the schema version of the database, 0 if it has none.
func version(ctx context.Context, db *sql.DB) (have int64, err error) {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", versions).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versions+" WHERE is_applied").Scan(&have)
	return have, err
}
