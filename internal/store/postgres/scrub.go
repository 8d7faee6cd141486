package postgres

import (
	"context"
	"fmt"
)

// scrubbed are the tables of which erasure deletes rows.
var scrubbed = []string{
	"bodies", "messages", "conversations", "sessions", "artifacts", "steps", "plans", "kv", "secrets", "memories", "schedules", "ticks", "outbox",
	"kb_chunks", "kb_documents", "kbs", "tokens", "browser_sessions", "users", "identities", "erasures", "entry_bodies",
}

// Scrub implements store.Scrubber: it vacuums the tables that erasure deletes rows of. The
// server then has those rows in no table and no index, and uses their space again. What it
// wrote to its own write-ahead log, and to standbys and archives of that, is its
// administrator's.
func (s *Store) Scrub(ctx context.Context) error {
	for _, table := range scrubbed {
		if _, err := s.read.ExecContext(ctx, "VACUUM "+table); err != nil {
			return fmt.Errorf("vacuuming %s: %w", table, err)
		}
	}
	return nil
}
