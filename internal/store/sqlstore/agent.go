package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	agentColumns      = `tenant, id, created_by, created_at, brain, tier, prompt, settings, state, updated_at`
	assignmentColumns = `tenant, subject, plugin, versions, enabled, assigned_by, updated_at`
	memoryColumns     = `tenant, agent, key, content, labels, updated_at, mac`
)

const putAssignment = `INSERT INTO assignments (` + assignmentColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, subject, plugin) DO UPDATE SET versions = excluded.versions, enabled = excluded.enabled,
		assigned_by = excluded.assigned_by, updated_at = excluded.updated_at`

const putMemory = `INSERT INTO memories (` + memoryColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, agent, key) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at, mac = excluded.mac RETURNING labels`

// Agent implements [store.Reader].
func (r *reader) Agent(ctx context.Context, tenant, id string) (*store.AgentRow, error) {
	q := selectFrom(agentColumns, "agents")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanAgent))
}

// Agents implements [store.Reader].
func (r *reader) Agents(ctx context.Context, tenant string) ([]store.AgentRow, error) {
	q := selectFrom(agentColumns, "agents")
	q.of(ctx, r, tenant)
	q.orderBy("tenant, id")
	return all(rows(ctx, r, q, scanAgent))
}

// InsertAgent implements [store.Tx].
func (t *tx) InsertAgent(r store.AgentRow) (bool, error) {
	return t.Exec(`INSERT INTO agents (`+agentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING`,
		r.Tenant, r.ID, r.CreatedBy, micros(r.CreatedAt), r.Brain, r.Tier, r.Prompt, r.Settings, string(r.State), micros(r.UpdatedAt))
}

// UpdateAgent implements [store.Tx].
func (t *tx) UpdateAgent(r store.AgentRow) (bool, error) {
	return t.Exec(`UPDATE agents SET brain = ?, tier = ?, prompt = ?, settings = ?, state = ?, updated_at = ? WHERE tenant = ? AND id = ?`,
		r.Brain, r.Tier, r.Prompt, r.Settings, string(r.State), micros(r.UpdatedAt), r.Tenant, r.ID)
}

// DeleteAgent implements [store.Tx].
func (t *tx) DeleteAgent(tenant, id string) (bool, error) {
	if drop := t.reader.text.DropMemories; drop != "" {
		if _, err := t.Exec(drop, tenant, id); err != nil {
			return false, err
		}
	}
	for _, theirs := range []string{`DELETE FROM assignments WHERE tenant = ? AND subject = ?`, `DELETE FROM memories WHERE tenant = ? AND agent = ?`, `DELETE FROM outbox WHERE tenant = ? AND agent = ?`} {
		if _, err := t.Exec(theirs, tenant, id); err != nil {
			return false, err
		}
	}
	return t.Exec(`DELETE FROM agents WHERE tenant = ? AND id = ?`, tenant, id)
}

// Assignments implements [store.Reader].
func (r *reader) Assignments(ctx context.Context, tenant string) ([]store.AssignmentRow, error) {
	q := selectFrom(assignmentColumns, "assignments")
	q.where("tenant = ?", tenant)
	q.orderBy("plugin, subject")
	return all(rows(ctx, r, q, func(rows *record, a *store.AssignmentRow) error {
		var enabled, updated int64
		err := rows.Scan(&a.Tenant, &a.Subject, &a.Plugin, &a.Versions, &enabled, &a.By, &updated)
		a.Enabled, a.UpdatedAt = enabled != 0, fromMicros(updated)
		return err
	}))
}

// PutAssignment implements [store.Tx].
func (t *tx) PutAssignment(r store.AssignmentRow) error {
	_, err := t.Exec(putAssignment, r.Tenant, r.Subject, r.Plugin, r.Versions, flag(r.Enabled), r.By, micros(r.UpdatedAt))
	return err
}

// DeleteAssignment implements [store.Tx].
func (t *tx) DeleteAssignment(tenant, subject, plugin string) (bool, error) {
	return t.Exec(`DELETE FROM assignments WHERE tenant = ? AND subject = ? AND plugin = ?`, tenant, subject, plugin)
}

// Memory implements [store.Reader].
func (r *reader) Memory(ctx context.Context, tenant, agent, key string) (*store.MemoryRow, error) {
	q := selectFrom(memoryColumns, "memories")
	q.where("tenant = ?", tenant)
	q.where("agent = ?", agent)
	q.where("key = ?", key)
	return one(rows(ctx, r, q, scanMemory))
}

// Memories implements [store.Reader].
func (r *reader) Memories(ctx context.Context, tenant, agent string, limit int) ([]store.MemoryRow, error) {
	q := selectFrom(memoryColumns, "memories")
	q.where("tenant = ?", tenant)
	q.where("agent = ?", agent)
	q.orderBy("updated_at DESC, key")
	q.limit(limit)
	return all(rows(ctx, r, q, scanMemory))
}

// SearchMemories implements [store.Reader].
func (r *reader) SearchMemories(ctx context.Context, mq store.MemoryQuery) ([]store.MemoryRow, error) {
	if len(mq.Terms) == 0 || mq.Limit < 1 {
		return nil, nil
	}
	best, args := r.text.BestMemories(mq)
	q := selectFrom("m.tenant, m.agent, m.key, m.content, m.labels, m.updated_at, m.mac", "("+best+") best JOIN memories m ON m.key = best.key")
	q.args = append(q.args, args...)
	q.where("m.tenant = ?", mq.Tenant)
	q.where("m.agent = ?", mq.Agent)
	q.orderBy("best.score DESC, m.updated_at DESC, m.key")
	return all(rows(ctx, r, q, scanMemory))
}

// CountMemories implements [store.Reader].
func (r *reader) CountMemories(ctx context.Context, tenant, agent string) (n int64, err error) {
	q := selectFrom("count(*)", "memories")
	q.where("tenant = ?", tenant)
	q.where("agent = ?", agent)
	_, err = one(rows(ctx, r, q, func(rows *record, _ *struct{}) error { return rows.Scan(&n) }))
	return n, err
}

// PutMemory implements [store.Tx].
func (t *tx) PutMemory(r store.MemoryRow) error {
	labels, err := t.array(r.Labels)
	if err != nil {
		return err
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	if drop := t.reader.text.DropMemory; drop != "" {
		if _, err := t.Exec(drop, r.Tenant, r.Agent, r.Key); err != nil {
			return err
		}
	}
	var had string
	if _, err := t.Row([]any{&had}, putMemory, r.Tenant, r.Agent, r.Key, r.Content, labels, micros(r.UpdatedAt), key.SignKept(r.Digest())); err != nil {
		return err
	}
	if _, err := t.Exec(t.reader.text.AddMemory, r.Terms, r.Tenant, r.Agent, r.Key); err != nil {
		return err
	}
	return t.grow(&r.Labels, labels, had, func() string { return key.SignKept(r.Digest()) },
		`UPDATE memories SET labels = ?, mac = ? WHERE tenant = ? AND agent = ? AND key = ?`, r.Tenant, r.Agent, r.Key)
}

// DeleteMemory implements [store.Tx].
func (t *tx) DeleteMemory(tenant, agent, key string) (bool, error) {
	if drop := t.reader.text.DropMemory; drop != "" {
		if _, err := t.Exec(drop, tenant, agent, key); err != nil {
			return false, err
		}
	}
	return t.Exec(`DELETE FROM memories WHERE tenant = ? AND agent = ? AND key = ?`, tenant, agent, key)
}

// Delivered implements [store.Reader].
func (r *reader) Delivered(ctx context.Context, tenant, place, mark string) (bool, error) {
	q := selectFrom("1", "deliveries")
	q.where("tenant = ?", tenant)
	q.where("place = ?", place)
	q.where("mark = ?", mark)
	found, err := one(rows(ctx, r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
	return found != nil, err
}

// DeliveredBefore implements [store.Reader].
func (r *reader) DeliveredBefore(ctx context.Context, before time.Time, limit int) ([]string, error) {
	q := selectFrom("DISTINCT tenant", "deliveries")
	q.of(ctx, r, "")
	q.where("at < ?", micros(before))
	q.limit(limit)
	return all(rows(ctx, r, q, func(rows *record, tenant *string) error { return rows.Scan(tenant) }))
}

// DeleteDeliveries implements [store.Tx].
func (t *tx) DeleteDeliveries(tenant string, before time.Time, limit int) (bool, error) {
	return t.Exec(`DELETE FROM deliveries WHERE tenant = ? AND (place, mark) IN (SELECT place, mark FROM deliveries WHERE tenant = ? AND at < ? LIMIT ?)`,
		tenant, tenant, micros(before), limit)
}

// InsertDelivery implements [store.Tx].
func (t *tx) InsertDelivery(tenant, place, mark string, at time.Time) (bool, error) {
	return t.Exec(`INSERT INTO deliveries (tenant, place, mark, at) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, place, mark) DO NOTHING`, tenant, place, mark, micros(at))
}

func scanAgent(rows *record, r *store.AgentRow) error {
	var state string
	var created, updated int64
	err := rows.Scan(&r.Tenant, &r.ID, &r.CreatedBy, &created, &r.Brain, &r.Tier, &r.Prompt, &r.Settings, &state, &updated)
	r.State, r.CreatedAt, r.UpdatedAt = store.AgentState(state), fromMicros(created), fromMicros(updated)
	return err
}

func scanMemory(rows *record, r *store.MemoryRow) error {
	var labels string
	var updated int64
	if err := rows.Scan(&r.Tenant, &r.Agent, &r.Key, &r.Content, &labels, &updated, &r.MAC); err != nil {
		return err
	}
	var err error
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of what %s remembers: %w", r.Agent, err)
	}
	r.UpdatedAt = fromMicros(updated)
	return nil
}
