package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
)

// Schema is the version of a database that this program leaves behind.
const Schema = schema

// Copy writes the database in dir, as it is at one moment, to the directory to, which has none,
// and returns its schema version and the heads of its chains. Others go on writing meanwhile.
// What was deleted and not yet overwritten is not in the copy. The copy is marked as one: a host
// that opens it starts in recovery.
func Copy(ctx context.Context, dir, to string, rec store.Recovery) (version int64, heads []store.ChainRow, err error) {
	if err := CheckFile(ctx, dir, false); err != nil { // a damaged one is not worth keeping
		return 0, nil, err
	}
	from, err := sql.Open("sqlite", dsn(dir, "mode=ro"))
	if err != nil {
		return 0, nil, err
	}
	defer from.Close()
	// The file is created first, with its mode, so that no other user can ever read it.
	path := filepath.Join(to, File)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, nil, err
	}
	if err := f.Close(); err != nil {
		return 0, nil, err
	}
	if _, err := from.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return 0, nil, fmt.Errorf("copying %s: %w", filepath.Join(dir, File), err)
	}
	if err := MarkRecovery(ctx, to, rec); err != nil {
		return 0, nil, err
	}
	return copied(ctx, to)
}

// copied reads what a copy is.
func copied(ctx context.Context, dir string) (have int64, heads []store.ChainRow, err error) {
	db, err := sql.Open("sqlite", dsn(dir, "mode=ro"))
	if err != nil {
		return 0, nil, err
	}
	defer db.Close()
	if have, err = version(ctx, filepath.Join(dir, File), db); err != nil {
		return 0, nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT id, node, seq, head, mac FROM chains ORDER BY id")
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var h store.ChainRow
		if err := rows.Scan(&h.ID, &h.Node, &h.Seq, &h.Head, &h.MAC); err != nil {
			return 0, nil, err
		}
		heads = append(heads, h)
	}
	return have, heads, rows.Err()
}

// MarkRecovery marks a database that no process has open as a copy. It needs no key,
// since it appends nothing.
func MarkRecovery(ctx context.Context, dir string, rec store.Recovery) (err error) {
	row, err := store.RecoveryRow(rec)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(dir, "_pragma=synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `INSERT INTO kv (tenant, owner, scope, namespace, key, value, labels, expires_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, '[]', 0, ?)
		ON CONFLICT DO NOTHING`, row.Tenant, row.Owner, row.Scope, row.Namespace, row.Key, row.Value, row.UpdatedAt.UnixMicro())
	if err != nil {
		return fmt.Errorf("marking the copy: %w", err)
	}
	return nil
}

// CheckFile reads the database in dir from one end to the other and fails if it
// is damaged, or of a schema that this program does not know. thorough holds the
// indexes against the tables too, which takes several times as long.
func CheckFile(ctx context.Context, dir string, thorough bool) (err error) {
	path := filepath.Join(dir, File)
	db, err := sql.Open("sqlite", dsn(dir, "mode=ro"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	have, err := version(ctx, path, db)
	if err != nil {
		return err
	}
	if have > schema {
		return &store.NewerError{Database: path, Have: have, Known: schema}
	}
	pragma := "PRAGMA quick_check"
	if thorough {
		pragma = "PRAGMA integrity_check"
	}
	rows, err := db.QueryContext(ctx, pragma)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	defer rows.Close()
	var wrong []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" && len(wrong) < 3 {
			wrong = append(wrong, line)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s is damaged: %s", path, strings.Join(wrong, "; "))
	}
	return nil
}
