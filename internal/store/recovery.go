package store

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// A Recovery says that a store may not know of everything that was done in its
// name: it is a copy that was put back, or lost its end. While it is there
// nothing that has effects may run.
type Recovery struct {
	Since   time.Time `json:"since"`             // of which time the copy is, or when it was noticed
	Why     string    `json:"why"`               // in a clause
	Anchors []Anchor  `json:"anchors,omitempty"` // heads that were remembered, and that the chains do not pass through
}

// recoveryKey is where it is kept. No plugin has such a name.
var recoveryKey = KVKey{Owner: ":host", Scope: "site", Namespace: "recovery", Key: "recovery"}

// OfHost reports whether what is kept under a key is the host's own and decides what
// may run: then the ledger signs it.
func (k KVKey) OfHost() bool { return k.Owner == recoveryKey.Owner && k.Scope == recoveryKey.Scope }

// RecoveryRow returns the row in which a recovery is kept.
func RecoveryRow(rec Recovery) (KVRow, error) {
	value, err := json.Marshal(rec)
	return KVRow{KVKey: recoveryKey, Value: value, UpdatedAt: time.Now()}, err
}

// ReadRecovery returns why nothing with effects may run; nil if it may.
func ReadRecovery(ctx context.Context, r Reader) (*Recovery, error) {
	row, err := r.KV(ctx, recoveryKey)
	if err != nil || row == nil {
		return nil, err
	}
	var rec Recovery
	if err := json.Unmarshal(row.Value, &rec); err != nil {
		return nil, fmt.Errorf("what says that the host is in recovery cannot be read: %w", err)
	}
	return &rec, nil
}

// EndRecovery reports whether there was a recovery to end.
func EndRecovery(tx Tx) (found bool, err error) { return tx.DeleteKV(recoveryKey) }
