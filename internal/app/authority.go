package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mortise-dev/mortise/internal/store"
)

// holdAuthority refuses to open a host on a database whose rows that decide
// authority are not those that the ledger signs. The rows of a ledger that an
// earlier release wrote are signed as they are, once and on the record.
func (a *App) holdAuthority(ctx context.Context) error {
	key, err := store.ReadKey(a.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &SetupError{err}
	}
	unsigned := false
	err = a.Store.Snapshot(ctx, func(r store.Reader) (err error) {
		if err = store.CheckAuthority(ctx, r, key); err == nil {
			err = store.CheckLive(ctx, r, key)
		}
		if err == nil {
			unsigned, err = store.Unsigned(ctx, r, key)
		}
		return err
	})
	if errors.Is(err, store.ErrTampered) {
		return &SetupError{fmt.Errorf("this host does not start: %w; 'mortise ledger verify' says what else was changed", err)}
	}
	if err == nil && unsigned {
		err = a.Store.Write(ctx, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	if err != nil {
		return err
	}
	return a.signRecovery(ctx)
}

// signRecovery signs that the host is in recovery where a copy alone says so: from
// here on none but the host ends it.
func (a *App) signRecovery(ctx context.Context) error {
	rec, err := a.inRecovery(ctx)
	if err != nil || rec == nil {
		return err
	}
	row, err := store.RecoveryRow(*rec)
	if err != nil {
		return err
	}
	return a.Store.Write(ctx, func(tx store.Tx) error { return tx.PutKV(row) })
}
