package sqlite

import (
	_ "embed"

	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// known are the objects of the newest schema. A test writes the file with -update.
//
//go:embed schema.txt
var known string

// own tells the schema from one that was changed. What SQLite adds by itself, such as
// the tables of a full-text index, is left out.
func own() *sqlstore.Ownership {
	return &sqlstore.Ownership{
		Objects: "sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'kb_index_*'",
		Version: "pragma_schema_version",
		Known:   known,
	}
}
