package agent

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/words"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what an agent remembers.
const (
	MaxMemories    = 10_000
	MaxMemoryKey   = 255
	MaxMemoryBytes = 16 << 10
)

// Memory is what one agent remembers.
type Memory struct {
	agents *Agents
	key    Key
}

// Memory returns what an agent remembers.
func (a *Agents) Memory(tenant, id string) Memory { return Memory{a, Key{tenant, id}} }

// Get returns what is kept under a key.
func (m Memory) Get(ctx context.Context, key string) (content string, found bool, err error) {
	row, err := m.agents.Store.Memory(ctx, m.key.Tenant, m.key.Agent, key)
	if row == nil || err != nil {
		return "", false, err
	}
	Taint(ctx, row.Labels)
	return row.Content, true, nil
}

// List returns what the agent remembers, the newest first.
func (m Memory) List(ctx context.Context, limit int) ([]MemoryRow, error) {
	return m.agents.Store.Memories(ctx, m.key.Tenant, m.key.Agent, limit)
}

// Search returns what fits the words of a query best, the newest first among equals.
func (m Memory) Search(ctx context.Context, query string, limit int) ([]MemoryRow, error) {
	return m.find(ctx, words.Asked(query, maxTerms), limit)
}

// Recall is Search for a message that was not written as a query: what has nothing
// in common with it but stop words is not found.
func (m Memory) Recall(ctx context.Context, message string, limit int) ([]MemoryRow, error) {
	return m.find(ctx, words.Telling(message, maxTerms), limit)
}

// candidates is how many memories of the index are looked at, at least.
const candidates = 100

// maxTerms is how many words of a query count.
const maxTerms = 32

func (m Memory) find(ctx context.Context, terms []string, limit int) ([]MemoryRow, error) {
	if len(terms) == 0 || limit < 1 {
		return nil, nil
	}
	// The index finds what has any of the words. Which of that fits is looked at in what
	// is best of it, so that no more is read of a long memory than of a short one.
	rows, err := m.agents.Store.SearchMemories(ctx, memoryQuery{
		Tenant: m.key.Tenant, Agent: m.key.Agent, Terms: terms, Limit: min(max(2*limit, candidates), MaxMemories),
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b MemoryRow) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	best := words.Rank(terms, len(rows), func(i int) []string { return words.Of(rows[i].Key + " " + rows[i].Content) })
	found := make([]MemoryRow, 0, min(len(best), limit))
	for _, i := range best[:min(len(best), limit)] {
		found = append(found, rows[i])
		Taint(ctx, rows[i].Labels)
	}
	return found, nil
}

// Upsert keeps something under a key, in place of what was there, and tells the
// agent's plugins. also shares its transaction.
func (m Memory) Upsert(ctx context.Context, session, key, content string, labels []string, also ...func(Tx) error) error {
	switch {
	case key == "" || len(key) > MaxMemoryKey || strings.ContainsFunc(key, unicode.IsControl):
		return plugin.Errorf(plugin.CodeInvalidInput, "the key of a memory has 1 to %d bytes without control characters", MaxMemoryKey)
	case len(content) > MaxMemoryBytes || strings.ContainsRune(content, 0):
		return plugin.Errorf(plugin.CodeInvalidInput, "a memory has at most %d bytes and no NUL; this one has %d", MaxMemoryBytes, len(content))
	}
	row := MemoryRow{Tenant: m.key.Tenant, Agent: m.key.Agent, Key: key, Content: content, Labels: append([]string{}, labels...), UpdatedAt: m.agents.Now().UTC(), Terms: strings.Join(words.Of(key+" "+content), " ")}
	full, i := false, m.agents.Local(m.key.Tenant, m.key.Agent)
	err := m.agents.Store.Write(ctx, func(tx Tx) error {
		n, err := tx.CountMemories(ctx, m.key.Tenant, m.key.Agent)
		if err != nil {
			return err
		}
		full = n >= MaxMemories
		if full { // of what is there already there may be another version
			was, err := tx.Memory(ctx, m.key.Tenant, m.key.Agent, key)
			if err != nil || was == nil {
				return err
			}
			full = false
		}
		if err := tx.PutMemory(row); err != nil {
			return err
		}
		if i == nil {
			if err := m.agents.notice(tx, m.key, event.MemoryUpsert, upserted(session, &row)); err != nil {
				return err
			}
		}
		return each(tx, also)
	})
	if err != nil {
		return err
	}
	if full {
		return plugin.Errorf(plugin.CodeLimitExceeded, "agent %s remembers %d things, and can remember no more; mortise agents forget takes one away", m.key.Agent, MaxMemories)
	}
	if i == nil {
		m.agents.noticed(ctx, m.key)
		return nil
	}
	return i.happened(ctx, event.MemoryUpsert, upserted(session, &row))
}

// upserted is what memory.upsert@v1 carries.
func upserted(session string, row *MemoryRow) fields {
	return fields{"sessionId": session, "key": row.Key, "content": row.Content, "metadata": map[string]any{"labels": row.Labels}}
}

// Forget reports whether there was something to forget. Where there was, also
// shares its transaction.
func (m Memory) Forget(ctx context.Context, key string, also ...func(Tx) error) (found bool, err error) {
	err = m.agents.Store.Write(ctx, func(tx Tx) (err error) {
		if found, err = tx.DeleteMemory(m.key.Tenant, m.key.Agent, key); err != nil || !found {
			return err
		}
		return each(tx, also)
	})
	return found, err
}

func each(tx Tx, also []func(Tx) error) error {
	for _, do := range also {
		if err := do(tx); err != nil {
			return err
		}
	}
	return nil
}
