package sqlite

import (
	"strings"

	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// textIndex is FTS5: ranked by BM25.
var textIndex = sqlstore.TextIndex{
	Add:  `INSERT INTO kb_index (terms, rowid) SELECT ?, id FROM kb_chunks WHERE tenant = ? AND kb_id = ? AND document_id = ? AND n = ?`,
	Drop: `DELETE FROM kb_index WHERE rowid IN (SELECT id FROM kb_chunks WHERE tenant = ? AND kb_id = ? AND document_id = ?)`,
	From: `kb_index JOIN kb_chunks c ON c.id = kb_index.rowid
		JOIN kb_documents d ON d.tenant = c.tenant AND d.kb_id = c.kb_id AND d.id = c.document_id`,
	Match: `kb_index MATCH ?`,
	Score: `-bm25(kb_index)`,
	Any:   func(terms []string) string { return `"` + strings.Join(terms, `" OR "`) + `"` },
}
