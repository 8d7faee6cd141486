package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

const artifactColumns = `tenant, session_id, id, n, type, name, sha256, size, source_tool, source_call, parents, labels, metadata, storage_uri, created_at, mac, data IS NOT NULL`

const insertArtifact = `INSERT INTO artifacts (tenant, session_id, id, n, type, name, sha256, size, source_tool, source_call, parents, labels, metadata,
	storage_uri, created_at, mac, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Artifact implements [store.Reader].
func (r *reader) Artifact(ctx context.Context, tenant, session, id string) (*store.ArtifactRow, error) {
	q := selectFrom(artifactColumns, "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanArtifact))
}

// Artifacts implements [store.Reader].
func (r *reader) Artifacts(ctx context.Context, tenant, session string) ([]store.ArtifactRow, error) {
	q := selectFrom(artifactColumns, "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	q.orderBy("n")
	return all(rows(ctx, r, q, scanArtifact))
}

// ArtifactData implements [store.Reader].
func (r *reader) ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error) {
	q := selectFrom("data", "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	q.where("id = ?", id)
	q.where("data IS NOT NULL")
	return bytesOf(one(rows(ctx, r, q, func(rows *record, data *[]byte) error { return rows.Scan(data) })))
}

// Registered implements [store.Reader].
func (r *reader) Registered(ctx context.Context, sha256 string) (bool, error) {
	q := selectFrom("id", "artifacts")
	q.where("sha256 = ?", sha256)
	q.where("data IS NULL")
	q.limit(1)
	id, err := one(rows(store.Everywhere(ctx), r, q, func(rows *record, id *string) error { return rows.Scan(id) }))
	return id != nil, err
}

// ArtifactBytes implements [store.Reader].
func (r *reader) ArtifactBytes(ctx context.Context, tenant, session string) (int64, error) {
	q := selectFrom("CAST(COALESCE(SUM(size), 0) AS BIGINT)", "artifacts")
	q.where("tenant = ?", tenant)
	if session != "" {
		q.where("session_id = ?", session)
	}
	sum, err := one(rows(ctx, r, q, func(rows *record, sum *int64) error { return rows.Scan(sum) }))
	if sum == nil || err != nil {
		return 0, err
	}
	return *sum, nil
}

// ArtifactLabels implements [store.Reader].
func (r *reader) ArtifactLabels(ctx context.Context, tenant, session string, ids []string) (map[string][]string, error) {
	rows, err := r.artifactsOf(ctx, tenant, session, ids)
	return labelsOf(rows), err
}

func labelsOf(rows []store.ArtifactRow) map[string][]string {
	found := make(map[string][]string, len(rows))
	for i := range rows {
		found[rows[i].ID] = rows[i].Labels
	}
	return found
}

// artifactsOf returns those artifacts of a session that there are of some ids.
func (r *reader) artifactsOf(ctx context.Context, tenant, session string, ids []string) ([]store.ArtifactRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	q := selectFrom(artifactColumns, "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	q.where("id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", values...)
	return all(rows(ctx, r, q, scanArtifact))
}

// ArtifactLabels implements [store.Reader].
func (t *tx) ArtifactLabels(ctx context.Context, tenant, session string, ids []string) (map[string][]string, error) {
	rows, err := t.reader.artifactsOf(ctx, tenant, session, ids)
	if err != nil || len(rows) == 0 {
		return map[string][]string{}, err
	}
	return labelsOf(rows), t.Verify(ctx, store.UnsignedLife, func(key *store.Key) error { return store.CheckKept(key, store.ProofsOf(rows...)...) })
}

// InsertArtifact implements [store.Tx].
func (t *tx) InsertArtifact(r store.ArtifactRow, data []byte) (inserted, prior *store.ArtifactRow, open bool, err error) {
	parents, err := t.array(r.Parents)
	if err != nil {
		return nil, nil, false, err
	}
	labels, err := t.array(r.Labels)
	if err != nil {
		return nil, nil, false, err
	}
	// This holds the session until the end of the transaction: no other transaction adds to
	// it meanwhile, nor closes or deletes it.
	in := store.SessionRow{Tenant: r.Tenant, ID: r.SessionID}
	var created int64
	var had string
	open, err = t.Row([]any{&in.Artifacts, &had, &in.Kind, &in.Owner, &created, &in.MAC},
		`UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ? AND state = ? RETURNING artifacts, labels, kind, owner, created_at, mac`,
		micros(r.CreatedAt), r.Tenant, r.SessionID, string(store.SessionOpen))
	if err != nil || !open {
		return nil, nil, false, err
	}
	in.CreatedAt = fromMicros(created)
	if in.Labels, err = fromArray(had); err != nil {
		return nil, nil, false, t.fail(fmt.Errorf("labels of session %s: %w", r.SessionID, err))
	}
	if err := t.Verify(context.Background(), store.UnsignedLife, func(key *store.Key) error { return store.CheckKept(key, store.ProofsOf(in)...) }); err != nil {
		return nil, nil, false, err
	}
	if !r.Promised {
		if prior, err = t.equalArtifact(r, labels); err == nil && prior != nil {
			err = t.Verify(context.Background(), store.UnsignedLife, func(key *store.Key) error { return store.CheckKept(key, store.ProofsOf(*prior)...) })
		}
		if err != nil || prior != nil {
			return nil, prior, err == nil, err
		}
	}
	in.Labels = plugin.Labels(in.Labels, r.Labels)
	grown, err := t.array(in.Labels)
	if err != nil {
		return nil, nil, false, err
	}
	in.Artifacts++
	r.N, r.CreatedAt = in.Artifacts, fromMicros(micros(r.CreatedAt))
	key, err := t.signer()
	if err != nil {
		return nil, nil, false, t.fail(err)
	}
	r.MAC = key.SignKept(r.Digest())
	var kept any // NULL, and not empty, where they are elsewhere
	if r.Inline = data != nil; r.Inline {
		kept = data
	}
	_, err = t.Exec(insertArtifact, r.Tenant, r.SessionID, r.ID, r.N, r.Type, r.Name, r.SHA256, r.Size, r.SourceTool, r.SourceCall, parents, labels,
		r.Metadata, r.StorageURI, micros(r.CreatedAt), r.MAC, kept)
	if err != nil {
		return nil, nil, false, err
	}
	_, err = t.Exec(`UPDATE sessions SET artifacts = ?, labels = ?, mac = ? WHERE tenant = ? AND id = ?`, in.Artifacts, grown, key.SignKept(in.Digest()), r.Tenant, r.SessionID)
	return &r, nil, err == nil, err
}

// equalArtifact returns the artifact that has the same bytes from the same
// source as r, nil if there is none.
func (t *tx) equalArtifact(r store.ArtifactRow, labels string) (*store.ArtifactRow, error) {
	q := selectFrom(artifactColumns, "artifacts")
	q.where("tenant = ?", r.Tenant)
	q.where("session_id = ?", r.SessionID)
	q.where("sha256 = ?", r.SHA256)
	q.where("name = ?", r.Name)
	q.where("type = ?", r.Type)
	q.where("source_tool = ?", r.SourceTool)
	q.where("source_call = ?", r.SourceCall)
	q.where("labels = ?", labels)
	return one(rows(context.Background(), &t.reader, q, scanArtifact))
}

func scanArtifact(rows *record, r *store.ArtifactRow) error {
	var parents, labels string
	var created int64
	if err := rows.Scan(&r.Tenant, &r.SessionID, &r.ID, &r.N, &r.Type, &r.Name, &r.SHA256, &r.Size, &r.SourceTool, &r.SourceCall, &parents, &labels,
		&r.Metadata, &r.StorageURI, &created, &r.MAC, &r.Inline); err != nil {
		return err
	}
	var wrong [2]error
	r.Parents, wrong[0] = fromArray(parents)
	r.Labels, wrong[1] = fromArray(labels)
	if err := errors.Join(wrong[:]...); err != nil {
		return fmt.Errorf("parents and labels of artifact %s: %w", r.ID, err)
	}
	r.CreatedAt = fromMicros(created)
	return nil
}
