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
func (s *Store) Watch(fn func()) (stop func(), all bool) {
	others := func() {}
	if s.engine.Others != nil {
		others, all = s.engine.Others(fn)
	}
	if s.committer == nil { // it writes nothing
		return others, all
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
		others()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.tells, id)
	}, all
}
