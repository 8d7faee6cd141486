package session

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A quota bounds the bytes of the artifacts of sessions and tenants, in their
// length: a file that is sparse is not, once it is kept. What is being read
// counts from the moment it is read, so that no number of registrations at a
// time fills the disk. The sums are kept in memory and read again each minute,
// and before anything is refused: other nodes and processes register too.
type quota struct {
	mu   sync.Mutex // guards the rest, and is held while a sum is read
	uses map[useKey]*use
}

// A useKey is a session or, where that is empty, all sessions of a tenant.
type useKey struct{ tenant, session string }

// A use is what one of them has.
type use struct {
	kept int64 // bytes that are registered
	held int64 // bytes that are being registered here
	at   time.Time
}

const (
	sumAge   = time.Minute // how old a sum may be
	fullAge  = time.Second // how old one may be that refuses
	maxKnown = 1000        // how many are known; then all are read again
)

// take counts n bytes more that are being registered.
func (s *Sessions) take(ctx context.Context, tenant, session string, n int64) error {
	q := s.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, bound := range []struct {
		key useKey
		max int64
	}{{useKey{tenant, session}, s.MaxSession}, {useKey{tenant: tenant}, s.MaxTenant}} {
		if bound.max <= 0 {
			continue
		}
		u, err := s.use(ctx, bound.key, sumAge)
		if err == nil && u.kept+u.held+n > bound.max {
			u, err = s.use(ctx, bound.key, fullAge)
		}
		switch {
		case err != nil:
			return err
		case u.kept+u.held+n <= bound.max:
		case bound.key.session != "":
			return plugin.Errorf(plugin.CodeLimitExceeded, "session %s has artifacts of %d bytes, and at most %d are kept for one session (limits.session_artifact_bytes in mortise.yaml); "+
				"'mortise sessions create' begins another", session, u.kept, bound.max)
		default:
			return plugin.Errorf(plugin.CodeLimitExceeded, "the sessions of tenant %s have artifacts of %d bytes, and at most %d are kept for one tenant (limits.tenant_artifact_bytes in mortise.yaml); "+
				"'mortise sessions delete' makes room", tenant, u.kept, bound.max)
		}
	}
	for _, key := range []useKey{{tenant, session}, {tenant: tenant}} {
		if u := q.uses[key]; u != nil {
			u.held += n
		}
	}
	return nil
}

// use returns what a session or tenant has, as it was no longer than that ago.
// The lock is held.
func (s *Sessions) use(ctx context.Context, key useKey, age time.Duration) (*use, error) {
	u := s.quota.uses[key]
	if u != nil && time.Since(u.at) < age {
		return u, nil
	}
	sum, err := s.Store.ArtifactBytes(ctx, key.tenant, key.session)
	if err != nil {
		return nil, err
	}
	if u == nil {
		s.quota.trim()
		u = &use{}
		s.quota.uses[key] = u
	}
	u.kept, u.at = sum, time.Now()
	return u, nil
}

// trim forgets what is not in use once there is much. The lock is held.
func (q *quota) trim() {
	if len(q.uses) < maxKnown {
		return
	}
	for key, u := range q.uses {
		if u.held == 0 {
			delete(q.uses, key)
		}
	}
}

// give ends the registration of n bytes, which are kept or not.
func (q *quota) give(tenant, session string, n int64, kept bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range []useKey{{tenant, session}, {tenant: tenant}} {
		u := q.uses[key]
		if u == nil {
			continue
		}
		u.held = max(0, u.held-n)
		if kept {
			u.kept += n
		}
	}
}

// forget has the sums read again that a deleted session was part of.
func (q *quota) forget(tenant, session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.uses, useKey{tenant, session})
	if u := q.uses[useKey{tenant: tenant}]; u != nil {
		u.at = time.Time{}
	}
}

// A metered reader counts what is read from it, and fails where it is too much.
type metered struct {
	io.Reader
	s               *Sessions
	ctx             context.Context
	tenant, session string
	taken           int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		if refused := m.s.take(m.ctx, m.tenant, m.session, int64(n)); refused != nil {
			return 0, refused
		}
		m.taken += int64(n)
	}
	return n, err
}

// done ends the count: the bytes are an artifact, or not.
func (m *metered) done(kept bool) {
	if m.taken > 0 {
		m.s.quota.give(m.tenant, m.session, m.taken, kept)
	}
}
