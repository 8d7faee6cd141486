package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

const artifactColumns = `tenant, session_id, id, n, type, name, sha256, size, source_tool, source_call, parents, labels, metadata, storage_uri, created_at, data IS NOT NULL`

const insertArtifact = `INSERT INTO artifacts (tenant, session_id, id, n, type, name, sha256, size, source_tool, source_call, parents, labels, metadata,
	storage_uri, created_at, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

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
	return bytesOf(one(rows(ctx, r, q, func(rows *sql.Rows, data *[]byte) error { return rows.Scan(data) })))
}

// Registered implements [store.Reader].
func (r *reader) Registered(ctx context.Context, sha256 string) (bool, error) {
	q := selectFrom("id", "artifacts")
	q.where("sha256 = ?", sha256)
	q.where("data IS NULL")
	q.limit(1)
	id, err := one(rows(ctx, r, q, func(rows *sql.Rows, id *string) error { return rows.Scan(id) }))
	return id != nil, err
}

// ArtifactBytes implements [store.Reader].
func (r *reader) ArtifactBytes(ctx context.Context, tenant, session string) (int64, error) {
	q := selectFrom("CAST(COALESCE(SUM(size), 0) AS BIGINT)", "artifacts")
	q.where("tenant = ?", tenant)
	if session != "" {
		q.where("session_id = ?", session)
	}
	sum, err := one(rows(ctx, r, q, func(rows *sql.Rows, sum *int64) error { return rows.Scan(sum) }))
	if sum == nil || err != nil {
		return 0, err
	}
	return *sum, nil
}

// ArtifactLabels implements [store.Reader].
func (r *reader) ArtifactLabels(ctx context.Context, tenant, session string, ids []string) (map[string][]string, error) {
	found := map[string][]string{}
	if len(ids) == 0 {
		return found, nil
	}
	q := selectFrom("id, labels", "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	q.where("id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", values...)
	_, err := all(rows(ctx, r, q, func(rows *sql.Rows, id *string) error {
		var labels string
		if err := rows.Scan(id, &labels); err != nil {
			return err
		}
		var wrong error
		if found[*id], wrong = fromArray(labels); wrong != nil {
			return fmt.Errorf("labels of artifact %s: %w", *id, wrong)
		}
		return nil
	}))
	return found, err
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
	// This holds the session until the end of the transaction: nobody else adds
	// to it meanwhile, nor closes or deletes it.
	var had string
	open, err = t.Row([]any{&r.N, &had}, `UPDATE sessions SET updated_at = ? WHERE tenant = ? AND id = ? AND state = ? RETURNING artifacts, labels`,
		micros(r.CreatedAt), r.Tenant, r.SessionID, string(store.SessionOpen))
	if err != nil || !open {
		return nil, nil, false, err
	}
	if !r.Promised {
		if prior, err = t.equalArtifact(r, labels); err != nil || prior != nil {
			return nil, prior, err == nil, err
		}
	}
	all, err := fromArray(had)
	if err != nil {
		return nil, nil, false, t.fail(fmt.Errorf("labels of session %s: %w", r.SessionID, err))
	}
	grown, err := t.array(plugin.Labels(all, r.Labels))
	if err != nil {
		return nil, nil, false, err
	}
	r.N++
	var kept any // NULL, and not empty, where they are elsewhere
	if r.Inline = data != nil; r.Inline {
		kept = data
	}
	_, err = t.Exec(insertArtifact, r.Tenant, r.SessionID, r.ID, r.N, r.Type, r.Name, r.SHA256, r.Size, r.SourceTool, r.SourceCall, parents, labels,
		r.Metadata, r.StorageURI, micros(r.CreatedAt), kept)
	if err != nil {
		return nil, nil, false, err
	}
	_, err = t.Exec(`UPDATE sessions SET artifacts = ?, labels = ? WHERE tenant = ? AND id = ?`, r.N, grown, r.Tenant, r.SessionID)
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

func scanArtifact(rows *sql.Rows, r *store.ArtifactRow) error {
	var parents, labels string
	var created int64
	if err := rows.Scan(&r.Tenant, &r.SessionID, &r.ID, &r.N, &r.Type, &r.Name, &r.SHA256, &r.Size, &r.SourceTool, &r.SourceCall, &parents, &labels,
		&r.Metadata, &r.StorageURI, &created, &r.Inline); err != nil {
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
