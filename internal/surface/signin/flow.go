package signin

import (
	"sync"
	"time"
)

// A flow is a sign-in that a provider has not answered yet.
type flow struct {
	from       string // who began it: see [clientaddr.Group]
	browser    string // hash of the cookie that the answer has to come with
	provider   string
	nonce      string
	verifier   string // of PKCE
	next       string
	invitation string
	began      time.Time
	fresh      bool // the provider was asked to have the person prove who they are
	expires    time.Time
}

// flows are open sign-ins by the hash of their state. Each can be taken once.
type flows struct {
	mu   sync.Mutex
	open map[string]flow
}

func newFlows() *flows { return &flows{open: map[string]flow{}} }

// put keeps a flow. If there are too many, those that expired go, and then the oldest of the
// address that has begun the most: no one ends the sign-ins of others by beginning many.
func (f *flows) put(state string, one flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) >= maxFlows {
		f.makeRoom()
	}
	f.open[hashOf(state)] = one
}

// makeRoom deletes at least one flow. The caller holds the lock.
func (f *flows) makeRoom() {
	begun, busiest := map[string]int{}, ""
	for key, open := range f.open {
		if time.Now().After(open.expires) {
			delete(f.open, key)
			continue
		}
		if begun[open.from]++; begun[open.from] > begun[busiest] {
			busiest = open.from
		}
	}
	if len(f.open) < maxFlows {
		return
	}
	oldest := ""
	for key, open := range f.open {
		if open.from == busiest && (oldest == "" || open.expires.Before(f.open[oldest].expires)) {
			oldest = key
		}
	}
	delete(f.open, oldest)
}

// take returns the flow of a state, once, to the browser that began it.
func (f *flows) take(state, browser string) (flow, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, found := f.open[hashOf(state)]
	if !found || one.browser != "" && !same(one.browser, hashOf(browser)) {
		return flow{}, false
	}
	delete(f.open, hashOf(state))
	return one, time.Now().Before(one.expires)
}
