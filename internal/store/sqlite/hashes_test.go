package sqlite_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/store/storetest"
)

// TestEveryColumnWithAHashIsKnown keeps the list complete of what can need a body.
func TestEveryColumnWithAHashIsKnown(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	rows, err := raw(t, dir).Query(`SELECT s.name || '.' || c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c
		WHERE s.type = 'table' AND c.name LIKE '%hash%' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	known := slices.Concat(storetest.BodyColumns, storetest.OtherHashes)
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		i := slices.Index(known, column)
		if i < 0 {
			t.Errorf("%s is neither in storetest.BodyColumns nor in storetest.OtherHashes", column)
			continue
		}
		known = slices.Delete(known, i, i+1)
	}
	if err := rows.Err(); err != nil || len(known) > 0 {
		t.Errorf("there is no column %v any more: %v", known, err)
	}
}
