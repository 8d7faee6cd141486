package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A Table is the rows of a table outside the database, in the text format of COPY: unlike the
// binary one it does not depend on the release of the server.
type Table struct {
	Name    string
	Columns []string // in the order of the values
	Rows    int64
}

// A Dump is what a database was at one moment.
type Dump struct {
	Schema int64
	Key    string // the id of the ledger's key, "" before there is one
	Heads  []Head
	Tables []Table
}

// A Head is the end of a chain.
type Head struct {
	Chain, Seq int64
	Head       string
}

// WriteDump reads all tables as they are at one moment, in one transaction that only reads,
// while others write. Each table is written to a file in dir, which is given to add and then
// removed.
func WriteDump(ctx context.Context, url, dir string, add func(t Table, path string) error) (d Dump, err error) {
	err = reading(ctx, url, func(tx pgx.Tx) error {
		if d.Schema, err = schemaOf(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT value FROM site WHERE name = 'ledger.key'").Scan(&d.Key); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if d.Heads, err = heads(ctx, tx); err != nil {
			return err
		}
		tables, err := tablesOf(ctx, tx)
		if err != nil {
			return err
		}
		for _, t := range tables {
			path := filepath.Join(dir, t.Name)
			if t.Rows, err = copyOut(ctx, tx, t, path); err != nil {
				return fmt.Errorf("copying the table %s: %w", t.Name, err)
			}
			if err := errors.Join(add(t, path), os.Remove(path)); err != nil {
				return err
			}
			d.Tables = append(d.Tables, t)
		}
		return nil
	})
	return d, err
}

// Size returns the schema of a database, how many tables it has and how many bytes the server
// keeps for them, indexes left out.
func Size(ctx context.Context, url string) (schema int64, tables int, bytes int64, err error) {
	err = reading(ctx, url, func(tx pgx.Tx) error {
		if schema, err = schemaOf(ctx, tx); err != nil {
			return err
		}
		all, err := tablesOf(ctx, tx)
		if err != nil {
			return err
		}
		tables = len(all)
		for _, t := range all {
			var size int64
			if err := tx.QueryRow(ctx, "SELECT pg_table_size(to_regclass($1))", t.Name).Scan(&size); err != nil {
				return err
			}
			bytes += size
		}
		return nil
	})
	return schema, tables, bytes, err
}

// reading has do read one moment of a database, on a connection of its own.
func reading(ctx context.Context, url string, do func(pgx.Tx) error) error {
	conn, err := look(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // nothing was written
	if _, err := tx.Exec(ctx, setTenant, everyTenant, true); err != nil {
		return err
	}
	return do(tx)
}

// A querier is a connection or a transaction on it.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// schemaOf returns the version of a database, and refuses one that has none or a newer one.
func schemaOf(ctx context.Context, q querier) (have int64, err error) {
	var name string
	var there bool
	if err := q.QueryRow(ctx, "SELECT current_database(), to_regclass($1) IS NOT NULL", versions).Scan(&name, &there); err != nil {
		return 0, err
	}
	if !there {
		return 0, fmt.Errorf("the database %s has no tables of a host: %w", name, fs.ErrNotExist)
	}
	if err := q.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versions+" WHERE is_applied").Scan(&have); err != nil {
		return 0, err
	}
	if have > schema {
		return have, newer(name, have)
	}
	return have, nil
}

func heads(ctx context.Context, q querier) ([]Head, error) {
	rows, err := q.Query(ctx, "SELECT id, seq, head FROM chains ORDER BY id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Head, err error) {
		return h, row.Scan(&h.Chain, &h.Seq, &h.Head)
	})
}

// tablesOf returns the host's tables that there are, but for the one of the schema's version.
func tablesOf(ctx context.Context, q querier) (all []Table, err error) {
	for _, name := range known() {
		rows, err := q.Query(ctx, "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum", name)
		if err != nil {
			return nil, err
		}
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		if len(columns) > 0 {
			all = append(all, Table{Name: name, Columns: columns})
		}
	}
	return all, nil
}

var creates = pattern.New(`(?m)^CREATE TABLE ([a-z_]+) `)

// known returns the names of the tables of all migrations.
func known() (names []string) {
	for _, text := range upTo(schema) {
		for _, m := range creates.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// upTo returns the migrations, each under its version, up to one.
func upTo(version int64) map[int64]string {
	all := map[int64]string{}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is ours
	}
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(err) // goose would not take it either
		}
		if n > version {
			continue
		}
		text, err := migrations.ReadFile(file)
		if err != nil {
			panic(err)
		}
		all[n] = string(text)
	}
	return all
}

// statement returns the statement that copies a table out of the database or into it.
func (t Table) statement(rest string) string {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = pgx.Identifier{c}.Sanitize()
	}
	return "COPY " + pgx.Identifier{t.Name}.Sanitize() + " (" + strings.Join(columns, ", ") + ") " + rest
}

func copyOut(ctx context.Context, tx pgx.Tx, t Table, path string) (rows int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tag, err := tx.Conn().PgConn().CopyTo(ctx, f, t.statement("TO STDOUT"))
	return tag.RowsAffected(), err
}
