package postgres

import (
	"strings"

	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// textIndex is the server's full text search, of words as they are.
var textIndex = sqlstore.TextIndex{
	Add: `UPDATE kb_chunks SET terms = to_tsvector('simple', ?) WHERE tenant = ? AND kb_id = ? AND document_id = ? AND n = ?`,
	From: `to_tsquery('simple', ?) AS asked, kb_chunks c
		JOIN kb_documents d ON d.tenant = c.tenant AND d.kb_id = c.kb_id AND d.id = c.document_id`,
	Match: `c.terms @@ asked`,
	Score: `ts_rank(c.terms, asked, 1)`,
	Any:   func(terms []string) string { return `'` + strings.Join(terms, `' | '`) + `'` },
}
