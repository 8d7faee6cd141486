package account

import (
	"context"
	"sync"
)

// locks are one lock for each account that is being changed.
type locks struct {
	mu   sync.Mutex // guards held
	held map[Key]*held
}

// A held is a lock that a goroutine holds or waits for.
type held struct {
	turn chan struct{} // full while the lock is held
	uses int
}

func (l *locks) take(ctx context.Context, k Key) (release func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[Key]*held{}
	}
	h := l.held[k]
	if h == nil {
		h = &held{turn: make(chan struct{}, 1)}
		l.held[k] = h
	}
	h.uses++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.uses--; h.uses == 0 {
			delete(l.held, k)
		}
	}
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// lock makes the caller the only one who changes an account, here and, where the
// options say how, among all hosts of the same data.
func (a *Accounts) lock(ctx context.Context, k Key) (release func(), err error) {
	here, err := a.locks.take(ctx, k)
	if err != nil || a.Lock == nil {
		return here, err
	}
	everywhere, err := a.Lock(ctx, k.Tenant+"\x00"+k.Subject+"\x00"+k.Provider)
	if err != nil {
		here()
		return nil, err
	}
	return func() { everywhere(); here() }, nil
}
