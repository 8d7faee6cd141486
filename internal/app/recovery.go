package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// noticeOlder puts a host into recovery whose database is older than what the
// anchors in its data directory remember: a copy that was put back by hand, or a
// standby that had not heard of everything. So it does where the data directory
// was restored and the database is elsewhere.
func (a *App) noticeOlder(ctx context.Context) error {
	rec := store.Recovery{Since: now(), Why: "the database is an older copy than the ledger's anchor remembers"}
	var err error
	if rec.Anchors, err = store.Missed(ctx, a.Store, a.Home); err != nil {
		return err
	}
	at, err := os.ReadFile(a.dir(restoredFile))
	restored := err == nil
	switch {
	case restored:
		rec.Why = "restored from a backup"
		if since, err := time.Parse(timeFormat, strings.TrimSpace(string(at))); err == nil {
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
	err = a.Store.Write(ctx, func(tx store.Tx) error {
		known, err := store.ReadRecovery(ctx, tx)
		if err != nil || known != nil {
			return err
		}
		if err := tx.PutKV(row); err != nil {
			return err
		}
		return a.guard.Note(tx, a.Principal, plugin.EntryRecoveryEntered, "recovery", map[string]any{"why": rec.Why, "since": rec.Since, "anchors": rec.Anchors})
	})
	if err == nil && restored {
		err = os.Remove(a.dir(restoredFile))
	}
	return err
}

// hold refuses whatever has effects while the host is in recovery, and while
// there is no room on the disk for the record of how they end.
func (a *App) hold(ctx context.Context) error {
	if a.reserve != nil {
		if err := a.reserve.Ensure(); err != nil {
			e := plugin.Errorf(plugin.CodeUnavailable, "nothing with effects runs while the disk of %s has no room for the record of it: %w; free some room, and it goes on by itself", a.Home, err)
			e.Retryable = true
			return e
		}
	}
	rec, err := a.inRecovery(ctx)
	if err != nil || rec == nil {
		return err
	}
	return plugin.Errorf(plugin.CodeUnavailable, "this host is in recovery (%s, %s): what was done since then is not known here and could be done again, so nothing with effects runs; "+
		"'mortise recovery status' shows what waits, and 'mortise recovery confirm --reason TEXT' ends it", rec.Why, rec.Since.UTC().Format(time.RFC3339))
}

// inRecovery returns the recovery that the host is in, nil where it is in none. Who
// knew of one believes that it ended only where the ledger signs that.
func (a *App) inRecovery(ctx context.Context) (rec *store.Recovery, err error) {
	rec, err = store.ReadRecovery(ctx, a.Store)
	if err != nil || rec != nil {
		a.recovering.Store(a.recovering.Load() || rec != nil)
		return rec, err
	}
	if !a.recovering.Load() {
		return nil, nil
	}
	key, err := store.ReadKey(a.Home)
	if err != nil {
		return nil, err
	}
	err = a.Store.Snapshot(ctx, func(r store.Reader) (err error) {
		if rec, err = store.ReadRecovery(ctx, r); err == nil {
			err = store.CheckAuthority(ctx, r, key, "kv")
		}
		return err
	})
	if err == nil && rec == nil {
		a.recovering.Store(false)
	}
	return rec, err
}

// held sweeps nothing while the host is in recovery: neither queued calls nor
// plans nor feeds go on by themselves.
type held struct {
	worker.Sweeper
	app *App
}

// Due implements [worker.Sweeper].
func (h held) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	if rec, err := h.app.inRecovery(ctx); err != nil || rec != nil {
		return nil, err
	}
	return h.Sweeper.Due(ctx, limit)
}

// Do implements [worker.Sweeper].
func (h held) Do(ctx context.Context, item worker.Item) error {
	if rec, err := h.app.inRecovery(ctx); err != nil || rec != nil {
		return err
	}
	return h.Sweeper.Do(ctx, item)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// An anchorMover is a store that notes outside of itself where its chains end.
type anchorMover interface {
	MoveAnchors(ctx context.Context) error
}

// anchorEvery is how often a host that stays moves its anchors.
const anchorEvery = 15 * time.Second

// moveAnchors moves the anchors now and then until the function is called, so that
// an older copy of the database is noticed also where this host is killed.
func moveAnchors(st anchorMover, every time.Duration, log *slog.Logger) (stop func() error) {
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
