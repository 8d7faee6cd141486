package sqlstore

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A record is the row at hand of an answer. Where the engine keeps values of any storage
// class in any column, Scan takes none but that of its destination, which is the one that
// the column declares: text for a string, a number for an integer or a flag, a blob for
// bytes. No value is converted.
type record struct {
	*sql.Rows
	query string // which was asked
	typed bool   // the engine leaves classes to Scan

	cells    []cell
	dest     []any    // the addresses of cells
	declared []string // types of columns, once they were needed
}

// records are kept for the next question: their cells are as many as its columns.
var records = sync.Pool{New: func() any { return new(record) }}

func newRecord(rows *sql.Rows, query string, typed bool) *record {
	r := records.Get().(*record)
	r.Rows, r.query, r.typed = rows, query, typed
	return r
}

// free gives r back. Its rows are closed by who opened them.
func (r *record) free() {
	clear(r.cells)
	r.Rows, r.query, r.declared, r.cells = nil, "", nil, r.cells[:0]
	records.Put(r)
}

// Scan reads the columns of the row.
func (r *record) Scan(dest ...any) error {
	if !r.typed {
		return r.Rows.Scan(dest...)
	}
	if cap(r.cells) < len(dest) {
		r.cells, r.dest = make([]cell, len(dest)), make([]any, len(dest))
		for i := range r.cells {
			r.dest[i] = &r.cells[i]
		}
	}
	r.cells = r.cells[:len(dest)]
	for i, to := range dest {
		r.cells[i] = cell{to: to}
		if _, is := to.(*sql.RawBytes); is {
			if err := r.declare(); err != nil {
				return err
			}
			r.cells[i].declared = r.declared[i]
		}
	}
	if err := r.Rows.Scan(r.dest[:len(dest)]...); err != nil {
		return err
	}
	if bad := slices.IndexFunc(r.cells, func(c cell) bool { return c.want != "" }); bad >= 0 {
		return r.wrong(bad)
	}
	return nil
}

// declare learns what columns declare.
func (r *record) declare() error {
	if r.declared != nil {
		return nil
	}
	types, err := r.ColumnTypes()
	for _, t := range types {
		r.declared = append(r.declared, t.DatabaseTypeName())
	}
	return err
}

// wrong names a value, and its row by the columns that say which it is.
func (r *record) wrong(bad int) error {
	columns, err := r.Columns()
	if err != nil {
		return err
	}
	e := &classError{Table: from(r.query), Column: columns[bad], Have: r.cells[bad].have, Want: r.cells[bad].want}
	for i, column := range columns {
		if slices.Contains([]string{"id", "name", "key", "subject", "seq", "n"}, column) && r.cells[i].want == "" {
			e.Row = strings.TrimPrefix(e.Row+", "+column+" "+r.cells[i].text(), ", ")
		}
	}
	return e
}

// from returns the first table that a statement names.
func from(query string) string {
	words := strings.Fields(query)
	for i, word := range words[:max(len(words)-1, 0)] {
		if word == "FROM" || word == "INTO" || word == "UPDATE" {
			return strings.Trim(words[i+1], "(")
		}
	}
	return "the database"
}

// The storage classes, as columns declare them.
const (
	classText    = "TEXT"
	classInteger = "INTEGER"
	classReal    = "REAL"
	classBlob    = "BLOB"
)

// A cell takes one value. want stays empty where it has the right class, so that a row is
// read to its end and can be named.
type cell struct {
	to         any
	declared   string // for a destination that says nothing of classes
	have, want string
}

// Scan implements [sql.Scanner].
func (c *cell) Scan(src any) error {
	want, ok := "", false
	switch to := c.to.(type) {
	case *string:
		want = classText
		*to, ok = src.(string)
	case *int64:
		want = classInteger
		*to, ok = src.(int64)
	case *bool:
		var n int64
		want = classInteger
		n, ok = src.(int64)
		*to, ok = n == 1, ok && (n == 0 || n == 1)
	case *float64:
		want = classReal
		*to, ok = src.(float64)
	case *[]byte:
		var data []byte
		want = classBlob
		data, ok = src.([]byte)
		*to = bytes.Clone(data)
	case *sql.Null[[]byte]:
		var data []byte
		want = classBlob
		data, ok = src.([]byte)
		*to, ok = sql.Null[[]byte]{V: bytes.Clone(data), Valid: ok}, ok || src == nil
	case *sql.RawBytes:
		want = c.declared
		*to, ok = raw((*to)[:0], src, want)
	default:
		return fmt.Errorf("a value of a table is read into a %T, of which it is not known what class it wants", c.to)
	}
	if !ok {
		c.have, c.want = class(src), want
	}
	return nil
}

// raw appends the text of a value that has the class that its column declares.
func raw(to sql.RawBytes, src any, declared string) (sql.RawBytes, bool) {
	switch v := src.(type) {
	case string:
		return append(to, v...), declared == classText
	case int64:
		return strconv.AppendInt(to, v, 10), declared == classInteger
	case []byte:
		return append(to, v...), declared == classBlob
	}
	return to, false
}

// class returns what a value is, as a message has it.
func class(src any) string {
	switch v := src.(type) {
	case string:
		return classText
	case int64:
		return classInteger + " " + strconv.FormatInt(v, 10)
	case float64:
		return classReal
	case []byte:
		return classBlob
	}
	return "NULL"
}

func (c *cell) text() string {
	switch to := c.to.(type) {
	case *string:
		return strconv.Quote(*to)
	case *int64:
		return strconv.FormatInt(*to, 10)
	case *sql.RawBytes:
		return strconv.Quote(string(*to))
	}
	return ""
}
