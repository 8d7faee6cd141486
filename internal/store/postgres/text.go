package postgres

import (
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// textIndex is the server's full text search, of words as they are.
var textIndex = sqlstore.TextIndex{
	Add: `UPDATE kb_chunks SET terms = to_tsvector('simple', ?) WHERE tenant = ? AND kb_id = ? AND document_id = ? AND n = ?`,
	Best: func(q store.ChunkQuery) (string, []any) {
		args := []any{`'` + strings.Join(q.Terms, `' | '`) + `'`, q.Tenant}
		for _, kb := range q.KBs {
			args = append(args, kb)
		}
		return `SELECT kb_id, document_id, n, ts_rank(terms, asked, 1) AS score FROM kb_chunks, to_tsquery('simple', ?) AS asked
			WHERE terms @@ asked AND tenant = ? AND kb_id IN (` + strings.TrimPrefix(strings.Repeat(", ?", len(q.KBs)), ", ") + `)
			ORDER BY score DESC, kb_id, document_id, n LIMIT ?`, append(args, q.Limit)
	},
	AddMemory: `UPDATE memories SET terms = to_tsvector('simple', ?) WHERE tenant = ? AND agent = ? AND key = ?`,
	BestMemories: func(q store.MemoryQuery) (string, []any) {
		return `SELECT key, ts_rank(terms, asked, 1) AS score FROM memories, to_tsquery('simple', ?) AS asked
			WHERE terms @@ asked AND tenant = ? AND agent = ? ORDER BY score DESC, updated_at DESC, key LIMIT ?`,
			[]any{`'` + strings.Join(q.Terms, `' | '`) + `'`, q.Tenant, q.Agent, q.Limit}
	},
}
