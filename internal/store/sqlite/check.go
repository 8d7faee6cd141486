package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A MalformedError says that the file is no sound database. Nothing is written to
// such a one.
type MalformedError struct {
	Database string
	What     string
}

// Error names the file, what is wrong with it, and the way out.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("%s is malformed: %s; restore it from a backup with 'mortise restore'", e.Database, e.What)
}

// small is how large a database may be that is checked wholly when it is opened.
const small = 1 << 20

// Check reads the whole database in dir and says what is wrong with it; nil if
// nothing is, or if there is none.
func Check(ctx context.Context, dir string) error {
	path := filepath.Join(dir, File)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", dsn(dir, "_pragma=query_only(1)"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := whole(ctx, db, path); err != nil {
		return err
	}
	return pragma(ctx, db, path, "integrity_check(3)")
}

// sound is Check for a database that is about to be used: of a large one it looks
// at the size, and at the first and the last pages of each table.
func sound(ctx context.Context, db *sql.DB, path string) error {
	size, err := whole(ctx, db, path)
	if err != nil {
		return err
	}
	if size <= small {
		return pragma(ctx, db, path, "quick_check(1)")
	}
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
	if err != nil {
		return malformed(path, err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return malformed(path, err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return malformed(path, err)
	}
	for _, name := range names {
		for _, order := range []string{"ASC", "DESC"} {
			var one int
			err := db.QueryRowContext(ctx, `SELECT 1 FROM "`+strings.ReplaceAll(name, `"`, `""`)+`" ORDER BY rowid `+order+` LIMIT 1`).Scan(&one)
			if err != nil && fatal(err) {
				return malformed(path, err)
			}
		}
	}
	return nil
}

// whole returns the size of the file, and says if its end is missing.
func whole(ctx context.Context, db *sql.DB, path string) (size int64, err error) {
	var page, pages int64
	if err := db.QueryRowContext(ctx, "SELECT (SELECT page_size FROM pragma_page_size()), (SELECT page_count FROM pragma_page_count())").Scan(&page, &pages); err != nil {
		return 0, malformed(path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	log, _ := os.Stat(path + "-wal")
	if pages*page > info.Size() && (log == nil || log.Size() == 0) { // else the rest is in the write-ahead log
		return 0, &MalformedError{path, fmt.Sprintf("it has %d bytes, and its header says %d", info.Size(), pages*page)}
	}
	return info.Size(), nil
}

// pragma runs a check of SQLite's own, which answers ok or with what is wrong.
func pragma(ctx context.Context, db *sql.DB, path, check string) error {
	rows, err := db.QueryContext(ctx, "PRAGMA "+check)
	if err != nil {
		return malformed(path, err)
	}
	defer rows.Close()
	var wrong []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return malformed(path, err)
		}
		for line := range strings.Lines(line) {
			if line = strings.TrimSpace(line); line != "ok" && !strings.HasPrefix(line, "***") { // which heads the lines of one file
				wrong = append(wrong, line)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return malformed(path, err)
	}
	if len(wrong) > 0 {
		return &MalformedError{path, strings.Join(wrong[:min(len(wrong), 5)], "; ")}
	}
	return nil
}

// Explain is the error of a database in dir where SQLite says that it is damaged;
// any other err is returned as it is.
func Explain(dir string, err error) error { return malformed(filepath.Join(dir, File), err) }

func malformed(path string, err error) error {
	var named *MalformedError
	var e *sqlite.Error
	if errors.As(err, &named) || !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT:
		return &MalformedError{path, "pages are missing or hold something else"}
	case sqlite3.SQLITE_NOTADB:
		return &MalformedError{path, "it does not begin as a SQLite database does"}
	}
	return err
}

// only refuses a database that is reached by more names than the one in its data
// directory. Its write-ahead log, its locks and the list of its hosts are found by
// name: a host that came by another would take those that are alive for dead.
func only(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file, but %s: name the data directory that the database is in, with --home or MORTISE_HOME", path, info.Mode().Type())
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links), and two hosts that use different ones damage it: delete the other names, or make this one a copy with 'mortise backup' and 'mortise restore'", path, stat.Nlink)
	}
	return nil
}
