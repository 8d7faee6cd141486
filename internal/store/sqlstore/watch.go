package sqlstore

import "sync"

// watchers are told of each transaction that appended entries.
type watchers struct {
	mu    sync.Mutex
	last  int
	tells map[int]func()
}

func (w *watchers) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fn := range w.tells {
		fn()
	}
}

// Watch implements [store.Store].
func (s *Store) Watch(fn func()) (stop func()) {
	if s.committer == nil { // it writes nothing
		return func() {}
	}
	w := &s.committer.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tells == nil {
		w.tells = map[int]func(){}
	}
	w.last++
	id := w.last
	w.tells[id] = fn
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.tells, id)
	}
}
