package session

import (
	"slices"
	"sync"
)

// A recent remembers the artifacts of sessions that are at work. Artifacts are
// only ever added and never change, so that a list which is as long as the
// session says is the right one, whichever process added to it. It is safe for
// concurrent use.
type recent struct {
	mu   sync.Mutex
	of   map[sessionKey][]Artifact // the oldest first
	held int                       // artifacts in all of them
}

type sessionKey struct{ tenant, id string }

// maxRecent is how many artifacts are remembered; each has up to 256 parents.
const maxRecent = 5000

// list returns the artifacts of a session, nil where they are not known.
func (r *recent) list(in *sessionRow) []Artifact {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of[sessionKey{in.Tenant, in.ID}]
	if int64(len(known)) < in.Artifacts {
		return nil
	}
	return slices.Clone(known)
}

// labels returns the labels of artifacts of a session, false where not all of
// them are known.
func (r *recent) labels(tenant, session string, ids []string) (map[string][]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[string][]string, len(ids))
	for _, id := range ids {
		found[id] = nil
	}
	missing := len(found)
	for _, a := range slices.Backward(r.of[sessionKey{tenant, session}]) { // parents are the newest ones
		if missing == 0 {
			break
		}
		if _, wanted := found[a.ID]; wanted {
			found[a.ID] = a.Labels
			missing--
		}
	}
	return found, missing == 0
}

// keep remembers the artifacts of a session, and forgets others where they
// would be too many.
func (r *recent) keep(in *sessionRow, all []Artifact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := sessionKey{in.Tenant, in.ID}
	if len(all) > maxRecent || len(all) <= len(r.of[key]) {
		return
	}
	r.held += len(all) - len(r.of[key])
	if r.held > maxRecent || r.of == nil {
		r.of, r.held = map[sessionKey][]Artifact{}, len(all)
	}
	r.of[key] = slices.Clone(all)
}

// add remembers one more, if all before it are known.
func (r *recent) add(row *artifactRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := sessionKey{row.Tenant, row.SessionID}
	known := r.of[key]
	if known == nil || int64(len(known)) != row.N-1 {
		return
	}
	if r.held++; r.held > maxRecent {
		r.of, r.held = nil, 0
		return
	}
	r.of[key] = append(known, artifactOf(row))
}
