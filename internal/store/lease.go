package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"time"

	"github.com/google/uuid"
)

const (
	leaseLife  = time.Minute           // a holder that is gone keeps others waiting for so long at most
	leaseLook  = 50 * time.Millisecond // how often one who waits looks
	leaseGrace = 10 * time.Second      // for giving it back
	leaseScope = "lease"
)

// A LeaseStore is what leases are kept in.
type LeaseStore interface {
	KVReader
	Clock
	Write(ctx context.Context, fn func(Tx) error) error
}

// Lease waits until the caller is the only holder of a name in a tenant, among all processes of the
// store, wherever they run. The lease is a row of the database, and ends by its clock after a
// minute: what takes longer has to be safe without, by compare-and-set on what it changes. release
// gives the lease back. The error is the cause of ctx, or that of the store.
func Lease(ctx context.Context, st LeaseStore, tenant, name string) (release func(), err error) {
	sum := sha256.Sum256([]byte(name))
	key := KVKey{Tenant: tenant, Owner: ":host", Scope: leaseScope, Namespace: leaseScope, Key: hex.EncodeToString(sum[:])}
	holder := uuid.NewString()
	free := func(row *KVRow) bool { return row == nil || !st.Now().Before(row.ExpiresAt) }
	for {
		row, err := st.KV(ctx, key)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if free(row) {
			won := false
			err := st.Write(ctx, func(tx Tx) error {
				won = false
				// A row that is not there cannot be locked: this one is, by all who take a lease.
				if _, _, err := tx.Spend(tenant, leaseScope, "", 0, math.MaxInt64); err != nil {
					return err
				}
				row, err := tx.KV(ctx, key)
				if err != nil || !free(row) {
					return err
				}
				won = true
				now := st.Now().UTC()
				return tx.PutKV(KVRow{KVKey: key, Value: []byte(holder), Labels: []string{}, ExpiresAt: now.Add(leaseLife), UpdatedAt: now})
			})
			if err != nil {
				return nil, err
			}
			if won {
				return func() { endLease(context.WithoutCancel(ctx), st, key, holder) }, nil
			}
		}
		timer := time.NewTimer(leaseLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// endLease gives a lease back, unless it ended and another has it. One that cannot be given back
// ends by itself.
func endLease(ctx context.Context, st LeaseStore, key KVKey, holder string) {
	ctx, cancel := context.WithTimeout(ctx, leaseGrace)
	defer cancel()
	_ = st.Write(ctx, func(tx Tx) error {
		row, err := tx.KV(ctx, key)
		if err != nil || row == nil || string(row.Value) != holder {
			return err
		}
		_, err = tx.DeleteKV(key)
		return err
	})
}
