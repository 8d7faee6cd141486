package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/store/chain"
)

// Digest returns the hash of what a session decides: whose it is, and what its
// labels are.
func (r *SessionRow) Digest() string {
	h := newRowHash("session")
	h.text(r.Tenant, r.ID, r.Kind, r.Owner)
	h.number(r.CreatedAt.UnixMicro(), r.Artifacts)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept].
func (r SessionRow) Proofs() []Proof { return []Proof{{"sessions", r.Digest(), r.MAC}} }

// Digest returns the hash of all that is known of an artifact but where its bytes
// are, which have its hash wherever they are.
func (r *ArtifactRow) Digest() string {
	h := newRowHash("artifact")
	h.text(r.Tenant, r.SessionID, r.ID, r.Type, r.Name, r.SHA256, r.SourceTool, r.SourceCall, r.Metadata, r.StorageURI)
	h.number(r.N, r.Size, r.CreatedAt.UnixMicro(), int64(len(r.Parents)), int64(len(r.Labels)))
	h.text(slices.Concat(r.Parents, r.Labels)...)
	return h.sum()
}

// Proofs implements [Kept].
func (r ArtifactRow) Proofs() []Proof { return []Proof{{"artifacts", r.Digest(), r.MAC}} }

// A Proof is what a row of a table is held against: the hash of what it says, and the
// MAC that the host gave it.
type Proof struct{ Table, Digest, MAC string }

// A Kept row bears a MAC of its own. Each [Authorised] store checks it at each read.
type Kept interface{ Proofs() []Proof }

// A KeptReader reads all such rows that are not of a session's artifacts.
type KeptReader interface {
	// CheckKept refuses messages, conversations, steps of plans, knowledge bases, their
	// documents and passages, stored values and memories that are not as the host wrote them.
	CheckKept(ctx context.Context, key *Key) error
}

// CheckKept refuses rows that are not as the host wrote them.
func CheckKept(key *Key, proofs ...Proof) error {
	for _, p := range proofs {
		if !chain.Holds(p.MAC, key.SignKept(p.Digest)) {
			return &AuthorityError{p.Table}
		}
	}
	return nil
}

// ProofsOf returns those of some rows.
func ProofsOf[T Kept](rows ...T) (proofs []Proof) {
	for _, row := range rows {
		proofs = append(proofs, row.Proofs()...)
	}
	return proofs
}

// Digest returns the hash of all of a message: who said what in which conversation,
// and what that is tainted with.
func (r *MessageRow) Digest() string {
	h := newRowHash("message")
	h.text(r.Tenant, r.SessionID, r.Role, string(r.Body), r.CallID)
	h.number(r.N)
	h.time(r.At)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept].
func (r MessageRow) Proofs() []Proof { return []Proof{{"messages", r.Digest(), r.MAC}} }

// Digest returns the hash of where and with whom a conversation takes place.
func (r *ConversationRow) Digest() string {
	h := newRowHash("conversation")
	h.text(r.Tenant, r.SessionID, r.Agent, r.Channel, r.Room, r.Peer)
	h.time(r.CreatedAt)
	return h.sum()
}

// Proofs implements [Kept].
func (r ConversationRow) Proofs() []Proof { return []Proof{{"conversations", r.Digest(), r.MAC}} }

// DigestOf returns the hash of all of a step of a plan that has so many.
func (r *StepRow) DigestOf(steps int64) string {
	h := newRowHash("step")
	h.text(r.Tenant, r.PlanID, r.StepID, r.Operation, r.Version, r.PackageDigest, r.Input, r.Gate, r.Why)
	h.number(r.N, steps, int64(len(r.Needs)))
	h.text(r.Needs...)
	return h.sum()
}

// StepProofs returns what the steps of one plan are held against. With one missing the
// others do not hold.
func StepProofs(rows []StepRow) []Proof {
	proofs := make([]Proof, len(rows))
	for i := range rows {
		proofs[i] = Proof{"steps", rows[i].DigestOf(int64(len(rows))), rows[i].MAC}
	}
	return proofs
}

// Digest returns the hash of all of a knowledge base.
func (r *KBRow) Digest() string {
	h := newRowHash("knowledge base")
	h.text(r.Tenant, r.ID, r.Name, r.Description, r.CreatedBy)
	h.time(r.CreatedAt)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept].
func (r KBRow) Proofs() []Proof { return []Proof{{"kbs", r.Digest(), r.MAC}} }

// Digest returns the hash of all of a document but when it was first put there.
func (r *DocumentRow) Digest() string {
	h := newRowHash("document")
	h.text(r.Tenant, r.KB, r.ID, r.SourceID, r.SourceType, r.ObjectID, r.Title, r.Filename, r.MIME, r.URL, r.ContentHash, r.Extraction, r.Attributes,
		r.Principal, r.CallID, r.TextHash)
	h.number(r.Words, r.Characters, r.Chunks)
	h.time(r.UpdatedAt)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept].
func (r DocumentRow) Proofs() []Proof { return []Proof{{"kb_documents", r.Digest(), r.MAC}} }

// TextHash returns the hash of the text of a document.
func TextHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// DigestIn returns the hash of a passage of a document: of its text and where it is.
func (r *ChunkRow) DigestIn(tenant, kb, document string) string {
	h := newRowHash("passage")
	h.text(tenant, kb, document, r.Text)
	h.number(r.N, r.Start)
	return h.sum()
}

// ProofIn returns what a passage of a document is held against.
func (r *ChunkRow) ProofIn(tenant, kb, document string) Proof {
	return Proof{"kb_chunks", r.DigestIn(tenant, kb, document), r.MAC}
}

// Proofs implements [Kept].
func (h ChunkHit) Proofs() []Proof { return h.Signed }

// Digest returns the hash of all of a stored value.
func (r *KVRow) Digest() string {
	h := newRowHash("value")
	h.text(r.Tenant, r.Owner, r.Scope, r.Namespace, r.Key, string(r.Value))
	h.time(r.ExpiresAt)
	h.time(r.UpdatedAt)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept]. A head signs the host's own; see [AuthorityTables].
func (r KVRow) Proofs() []Proof {
	if r.OfHost() {
		return nil
	}
	return []Proof{{"kv", r.Digest(), r.MAC}}
}

// Digest returns the hash of all of a memory.
func (r *MemoryRow) Digest() string {
	h := newRowHash("memory")
	h.text(r.Tenant, r.Agent, r.Key, r.Content)
	h.time(r.UpdatedAt)
	h.text(r.Labels...)
	return h.sum()
}

// Proofs implements [Kept].
func (r MemoryRow) Proofs() []Proof { return []Proof{{"memories", r.Digest(), r.MAC}} }

// time adds a time as a table keeps it, 0 for none.
func (h *rowHash) time(t time.Time) {
	if t.IsZero() {
		h.number(0)
		return
	}
	h.number(t.UnixMicro())
}
