package sqlite

import (
	"encoding/hex"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// textIndex is FTS5: ranked by BM25.
var textIndex = sqlstore.TextIndex{
	Add: `INSERT INTO kb_index (terms, scope, rowid) SELECT ?, lower('k' || hex(tenant) || 'k' || hex(kb_id)), id FROM kb_chunks
		WHERE tenant = ? AND kb_id = ? AND document_id = ? AND n = ?`,
	Drop: `DELETE FROM kb_index WHERE rowid IN (SELECT id FROM kb_chunks WHERE tenant = ? AND kb_id = ? AND document_id = ?)`,
	Best: func(q store.ChunkQuery) (string, []any) {
		scopes := make([]string, len(q.KBs))
		for i, kb := range q.KBs {
			scopes[i] = "k" + hex.EncodeToString([]byte(q.Tenant)) + "k" + hex.EncodeToString([]byte(kb))
		}
		return foundInIndex + `SELECT c.kb_id, c.document_id, c.n, -found.rank AS score FROM found
			CROSS JOIN kb_chunks c ON c.id = found.rowid`, []any{"scope : (" + anyOf(scopes) + ") AND terms : (" + anyOf(q.Terms) + ")", q.Limit}
	},
	AddMemory: `INSERT INTO kb_index (terms, scope, rowid) SELECT ?, lower('m' || hex(tenant) || 'm' || hex(agent)), -id FROM memories
		WHERE tenant = ? AND agent = ? AND key = ?`,
	DropMemory:   `DELETE FROM kb_index WHERE rowid IN (SELECT -id FROM memories WHERE tenant = ? AND agent = ? AND key = ?)`,
	DropMemories: `DELETE FROM kb_index WHERE rowid IN (SELECT -id FROM memories WHERE tenant = ? AND agent = ?)`,
	BestMemories: func(q store.MemoryQuery) (string, []any) {
		scope := "m" + hex.EncodeToString([]byte(q.Tenant)) + "m" + hex.EncodeToString([]byte(q.Agent))
		return foundInIndex + `SELECT m.key, -found.rank AS score FROM found
			CROSS JOIN memories m ON m.id = -found.rowid WHERE m.tenant = ? AND m.agent = ?`, []any{"scope : (" + anyOf([]string{scope}) + ") AND terms : (" + anyOf(q.Terms) + ")", q.Limit, q.Tenant, q.Agent}
	},
}

// foundInIndex begins a query that searches the index once. Without MATERIALIZED and
// CROSS JOIN, SQLite may search it again for each row of the table that is joined.
const foundInIndex = `WITH found AS MATERIALIZED
	(SELECT rowid, rank FROM kb_index WHERE kb_index MATCH ? AND rank MATCH 'bm25(1.0, 0.0)' ORDER BY rank LIMIT ?)
	`

func anyOf(words []string) string { return `"` + strings.Join(words, `" OR "`) + `"` }
