// Package recovery holds a host whose database is older than what it did, or is not as it
// wrote it: nothing with effects runs until the administrator has looked.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A Recovery watches over one host's database.
type Recovery struct {
	Home      string // the data directory
	Store     store.Store
	Guard     *host.Guard // of the entry that says so
	Principal plugin.Principal
	Reserve   *store.Reserve // of the disk; nil where the database is elsewhere

	known atomic.Bool // the host knew that it was in recovery, when it last looked
}

// Notice puts a host into recovery whose database is older than what the
// anchors in its data directory remember: a copy that was put back by hand, or a
// standby that had not heard of everything. So it does where the data directory
// was restored and the database is elsewhere.
func (r *Recovery) Notice(ctx context.Context) error {
	rec := store.Recovery{Since: now(), Why: "the database is an older copy than the ledger's anchor remembers"}
	var err error
	if rec.Anchors, err = store.Missed(ctx, r.Store, r.Home); err != nil {
		return err
	}
	at, err := os.ReadFile(filepath.Join(r.Home, setup.RestoredFile))
	restored := err == nil
	switch {
	case restored:
		rec.Why = "restored from a backup"
		if since, err := time.Parse(setup.TimeFormat, strings.TrimSpace(string(at))); err == nil {
			rec.Since = since
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case len(rec.Anchors) == 0:
		return nil
	}
	row, err := store.RecoveryRow(rec)
	if err != nil {
		return err
	}
	err = r.Store.Write(ctx, func(tx store.Tx) error {
		known, err := store.ReadRecovery(ctx, tx)
		if err != nil || known != nil {
			return err
		}
		if err := tx.PutKV(row); err != nil {
			return err
		}
		return r.Guard.Note(tx, r.Principal, plugin.EntryRecoveryEntered, "recovery", map[string]any{"why": rec.Why, "since": rec.Since, "anchors": rec.Anchors})
	})
	if err == nil && restored {
		err = os.Remove(filepath.Join(r.Home, setup.RestoredFile))
	}
	return err
}

// Hold refuses whatever has effects while the host is in recovery, and while
// there is no room on the disk for the record of how they end.
func (r *Recovery) Hold(ctx context.Context) error {
	if r.Reserve != nil {
		if err := r.Reserve.Ensure(); err != nil {
			e := plugin.Errorf(plugin.CodeUnavailable, "nothing with effects runs while the disk of %s has no room for the record of it: %w; free some room, and it goes on by itself", r.Home, err)
			e.Retryable = true
			return e
		}
	}
	rec, err := r.In(ctx)
	if err != nil || rec == nil {
		return err
	}
	return plugin.Errorf(plugin.CodeUnavailable, "this host is in recovery (%s, %s): what was done since then is not known here and could be done again, so nothing with effects runs; "+
		"'mortise recovery status' shows what waits, and 'mortise recovery confirm --reason TEXT' ends it", rec.Why, rec.Since.UTC().Format(time.RFC3339))
}

// In returns the recovery that the host is in, nil where it is in none. Who
// knew of one believes that it ended only where the ledger signs that.
func (r *Recovery) In(ctx context.Context) (rec *store.Recovery, err error) {
	rec, err = store.ReadRecovery(ctx, r.Store)
	if err != nil || rec != nil {
		r.known.Store(r.known.Load() || rec != nil)
		return rec, err
	}
	if !r.known.Load() {
		return nil, nil
	}
	key, err := store.ReadKey(r.Home)
	if err != nil {
		return nil, err
	}
	err = r.Store.Snapshot(ctx, func(from store.Reader) (err error) {
		if rec, err = store.ReadRecovery(ctx, from); err == nil {
			err = store.CheckAuthority(ctx, from, key, "kv")
		}
		return err
	})
	if err == nil && rec == nil {
		r.known.Store(false)
	}
	return rec, err
}

// Sweeper returns a sweeper that finds nothing while the host is in recovery: neither
// queued calls nor plans nor feeds go on by themselves.
func (r *Recovery) Sweeper(s worker.Sweeper) worker.Sweeper { return held{s, r} }

type held struct {
	worker.Sweeper
	recovery *Recovery
}

// Due implements [worker.Sweeper].
func (h held) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	if rec, err := h.recovery.In(ctx); err != nil || rec != nil {
		return nil, err
	}
	return h.Sweeper.Due(ctx, limit)
}

// Do implements [worker.Sweeper].
func (h held) Do(ctx context.Context, item worker.Item) error {
	if rec, err := h.recovery.In(ctx); err != nil || rec != nil {
		return err
	}
	return h.Sweeper.Do(ctx, item)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

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

// An AnchorMover is a store that notes outside of itself where its chains end.
type AnchorMover interface {
	MoveAnchors(ctx context.Context) error
}

// AnchorEvery is how often a host that stays moves its anchors.
const AnchorEvery = 15 * time.Second

// MoveAnchors moves the anchors now and then until the function is called, so that
// an older copy of the database is noticed also where this host is killed.
func MoveAnchors(st AnchorMover, every time.Duration, log *slog.Logger) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := st.MoveAnchors(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the anchor of the ledger was not moved", "cause", err.Error())
			}
		}
	})
	return func() error { cancel(); done.Wait(); return nil }
}
