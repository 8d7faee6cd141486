package store

import (
	"context"
	"fmt"
)

// A ClassError says that a value has not the storage class that its column declares:
// SQLite keeps whatever it is given. Such a value has the same bytes, and so every hash
// and MAC holds, while no comparison with it does: a query passes over its row.
type ClassError struct {
	Table, Column string
	Row           string // which one it is, where that can be told
	Have, Want    string
}

// Error says what to do as well.
func (e *ClassError) Error() string {
	row := ""
	if e.Row != "" {
		row = fmt.Sprintf(" of the row %.200s", e.Row)
	}
	return fmt.Sprintf("%s.%s%s holds %s in the database, and the column is declared %s: it was changed from outside; "+
		"nothing that rests on it is used until that is undone, or a backup is restored", e.Table, e.Column, row, e.Have, e.Want)
}

// Unwrap says that the rows of the table are not the ledger's.
func (e *ClassError) Unwrap() error { return &AuthorityError{e.Table} }

// A ClassReader checks what an engine lets through that keeps any value in any column.
type ClassReader interface {
	// CheckClasses refuses with a [*ClassError] a value of any table whose storage class
	// is not the one that its column declares. It reads all rows, those too that no
	// query with a condition would find. Where the engine holds types it reads nothing.
	CheckClasses(ctx context.Context) error
}
