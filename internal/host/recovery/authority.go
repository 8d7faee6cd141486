package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
)

// Authority refuses to open a host on a database whose rows that decide
// authority are not those that the ledger signs. The rows of a ledger that an
// earlier release wrote are signed as they are, once and on the record.
func (r *Recovery) Authority(ctx context.Context) error {
	key, err := store.ReadKey(r.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &setup.Error{Err: err}
	}
	unsigned := false
	err = r.Store.Snapshot(ctx, func(from store.Reader) (err error) {
		if err = store.CheckAuthority(ctx, from, key); err == nil {
			err = store.CheckLive(ctx, from, key)
		}
		if err == nil {
			unsigned, err = store.Unsigned(ctx, from, key)
		}
		return err
	})
	if errors.Is(err, store.ErrTampered) {
		return &setup.Error{Err: fmt.Errorf("this host does not start: %w; 'mortise ledger verify' says what else was changed", err)}
	}
	if err == nil && unsigned {
		err = r.Store.Write(ctx, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	if err != nil {
		return err
	}
	return r.sign(ctx)
}

// sign signs that the host is in recovery where a copy alone says so: from
// here on none but the host ends it.
func (r *Recovery) sign(ctx context.Context) error {
	rec, err := r.In(ctx)
	if err != nil || rec == nil {
		return err
	}
	row, err := store.RecoveryRow(*rec)
	if err != nil {
		return err
	}
	return r.Store.Write(ctx, func(tx store.Tx) error { return tx.PutKV(row) })
}
