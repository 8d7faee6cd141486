package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A failing store fails its nth write and, until it is mended, all later ones:
// before the write is done, or after.
type failing struct {
	store.Store
	at     atomic.Int64 // 0 is never
	writes atomic.Int64
	after  bool
	with   error
}

func (f *failing) Write(ctx context.Context, fn func(store.Tx) error) error {
	n, at := f.writes.Add(1), f.at.Load()
	if at == 0 || n < at {
		return f.Store.Write(ctx, fn)
	}
	if f.after {
		return errors.Join(f.Store.Write(ctx, fn), f.with)
	}
	return f.with
}

// Whatever write fails, before it reaches the disk or after, and for whatever
// reason: a call whose effect reached the other side is not called failed.
func TestACallWithAnEffectIsNeverCalledFailedWhereItCannotBeRecorded(t *testing.T) {
	t.Parallel()
	raw := func(t *plugin.Target) { t.Operation.Brokered = false }
	for name, cause := range map[string]error{"a full disk": fmt.Errorf("%w: %w", store.ErrFull, syscall.ENOSPC), "a failed sync": fmt.Errorf("%w: %w", store.ErrFailed, syscall.EIO)} {
		for _, after := range []bool{false, true} {
			for kind, change := range map[string][]func(*plugin.Target){"brokered": nil, "not brokered": {raw}} {
				for at := int64(1); at <= 7; at++ {
					t.Run(fmt.Sprintf("%s, %s, write %d, after %v", name, kind, at, after), func(t *testing.T) {
						t.Parallel()
						f := &failing{after: after, with: cause}
						m := newMailbox(t)
						b, send := senderOn(t, m, func(st store.Store) store.Store { f.Store = st; return f }, change...)
						b.do = send(2)
						f.writes.Store(0)
						f.at.Store(at)
						res, err := b.Call(t.Context(), asking("mail/send", `{}`))
						switch sent := len(m.all()); {
						case sent == 0 && err == nil && res.Status != plugin.InProgress:
							t.Errorf("nothing was sent, and it is %s", res.Status)
						case sent == 0:
						case err == nil && res.Status == plugin.Failed || err != nil && res.Status != plugin.Unknown:
							t.Errorf("%d were sent, and it is %q: %v", sent, res.Status, err)
						}
						if err != nil && errors.Is(cause, store.ErrFull) && !strings.Contains(err.Error(), "full") {
							t.Errorf("the reason is not given: %v", err)
						}
						f.at.Store(0)
						if _, err := b.Due(t.Context(), 10); err != nil {
							t.Error(err)
						}
						rows, err := b.store.Calls(t.Context(), store.CallFilter{State: store.CallRunning})
						if err != nil || len(rows) > 0 && errors.Is(cause, store.ErrFull) && !after {
							t.Errorf("once the disk had room: %d calls are still running, %v", len(rows), err)
						}
					})
				}
			}
		}
	}
}

// The entries of tools are written behind. While the disk is full none is
// promised, and none that was is lost.
func TestEntriesThatFindNoRoomAreWrittenOnceThereIsSome(t *testing.T) {
	t.Parallel()
	f := &failing{with: store.ErrFull}
	b := newBundleOn(t, func(st store.Store) store.Store { f.Store = st; return f }, policy.Default, target(t, "text", "count"))
	b.want(t)
	f.writes.Store(0)
	f.at.Store(1)
	call := func() error {
		c := asking("text/count", `{}`)
		c.Fresh = true
		_, err := b.Call(t.Context(), c)
		return err
	}
	var given int
	for range 5 {
		switch err := call(); {
		case err == nil:
			given++
		case plugin.CodeOf(err) != plugin.CodeUnavailable:
			t.Errorf("%v", err)
		}
		_ = b.ledger.Flush(t.Context())
	}
	if given == 5 {
		t.Error("all calls were answered while nothing could be written")
	}
	f.at.Store(0)
	testwait.Until(t, "a call is recorded now that the disk has room", func() bool { return call() == nil })
	if err := b.ledger.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := b.ledger.List(t.Context(), ledger.Filter{Kind: "call."})
	if err != nil || len(entries) != given+1 {
		t.Errorf("%d entries of %d answered calls, %v", len(entries), given+1, err)
	}
}
