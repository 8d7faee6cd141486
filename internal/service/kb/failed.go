package kb

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/service/extract"
)

// HashMatchErrorState is why a source is skipped that could not be read the last
// time, has not changed since, and would fail again (Shu).
const HashMatchErrorState = "hash_match_error_state"

// A failed is what is kept of a source that cannot be read, until it changes. The
// hash covers the version of what reads files: a newer one tries again.
type failed struct {
	Hash       string `json:"content_hash"`
	SourceHash string `json:"source_hash,omitempty"`
	Reason     string `json:"reason"`
	Message    string `json:"message"`
}

// failedKey is where it is kept; with no source, where those of a whole base are.
func failedKey(tenant, base, source string) kvKey {
	key := kvKey{Tenant: tenant, Owner: ":host", Scope: "kb:" + base, Namespace: "failed"}
	if source != "" {
		key.Key = documentID(base, source)
	}
	return key
}

// gaveUp returns what is skipped because it failed for good on the same content,
// nil where it has to be read.
func (b *Bases) gaveUp(ctx context.Context, row *documentRow, s *Source) (*Prepared, error) {
	if force, _ := s.Attributes["force_reingest"].(bool); force || !s.ByHash {
		return nil, nil
	}
	kept, err := b.opts.Store.KV(ctx, failedKey(row.Tenant, row.KB, s.ID))
	if err != nil || kept == nil {
		return nil, err
	}
	var was failed
	if err := json.Unmarshal(kept.Value, &was); err != nil {
		return nil, err
	}
	now, _ := s.Attributes["source_hash"].(string)
	same := was.Hash == row.ContentHash
	if now != "" && was.SourceHash != "" {
		same = now == was.SourceHash
	}
	if !same {
		return nil, nil
	}
	return &Prepared{same: true, result: Ingested{
		ObjectID: row.ObjectID, Extraction: Extraction{Method: "none", Details: map[string]any{"reason": was.Reason, "message": was.Message}},
		Skipped: true, SkipReason: HashMatchErrorState,
	}, heard: kept.Labels}, nil
}

// refused is a source of which no text came. What is final is kept, for those who
// ask by hash.
func (b *Bases) refused(row *documentRow, s *Source, why *extract.Refusal) (*Prepared, error) {
	details := map[string]any{"code": string(why.Code), "message": why.Message}
	p := &Prepared{same: true, result: Ingested{
		ObjectID: row.ObjectID, Extraction: Extraction{Method: "none", Details: details}, Skipped: true, SkipReason: why.Reason,
	}}
	if !s.ByHash || !why.Final() {
		return p, nil
	}
	hash, _ := s.Attributes["source_hash"].(string)
	value, err := json.Marshal(failed{Hash: row.ContentHash, SourceHash: hash, Reason: why.Reason, Message: why.Message})
	if err != nil {
		return nil, err
	}
	p.failed = &kvRow{KVKey: failedKey(row.Tenant, row.KB, s.ID), Value: value, Labels: row.Labels, UpdatedAt: b.now()}
	return p, nil
}
