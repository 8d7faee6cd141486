package kernel

import (
	"bytes"
	"container/list"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of the cache of results.
const (
	maxCached      = 16 << 20 // bytes in all
	maxCachedValue = 1 << 20  // bytes of one
)

// A cache keeps the answers of pure tools (kernel contracts, 5.4: "Tools are
// the perfect caching layer because they're pure"). What was used least
// recently goes first when it is full.
type cache struct {
	mu      sync.Mutex // guards the rest
	entries map[cacheKey]*list.Element
	recent  *list.List // of *cached, the last used first
	size    int
}

// A cacheKey names one input of one operation in one exact package, for one principal: a tool
// is told who asks and with which scopes, so its answer may depend on that.
type cacheKey struct{ tenant, digest, operation, input, principal, scopes string }

type cached struct {
	key cacheKey
	res plugin.Result
}

func newCache() *cache {
	return &cache{entries: map[cacheKey]*list.Element{}, recent: list.New()}
}

// cacheable reports whether an operation's answer follows from its input and
// its code alone: a tool that asks the host for nothing, outside any session,
// about which the host decides nothing, and no artifacts, whose files may change.
func cacheable(t *plugin.Target, call *plugin.Call) bool {
	return t.Operation.Kind == plugin.Tool && !t.Operation.NoCache && len(t.Operation.Effects) == 0 &&
		len(t.Manifest.Capabilities) == 0 && len(t.Manifest.Requires.Tools) == 0 &&
		call.Session == "" && call.Key == "" && len(call.Overlay) == 0 && len(call.Files) == 0 && !bytes.Contains(call.Input, []byte(`"artifacts"`))
}

func (c *cache) get(key cacheKey) (plugin.Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[key]
	if !found {
		return plugin.Result{}, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*cached).res, true
}

func (c *cache) put(key cacheKey, res plugin.Result) {
	if len(res.Data) > maxCachedValue {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.entries[key]; found {
		return
	}
	c.entries[key] = c.recent.PushFront(&cached{key, res})
	c.size += sizeOf(&res)
	for c.size > maxCached {
		oldest := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.entries, oldest.key)
		c.size -= sizeOf(&oldest.res)
	}
}

// sizeOf is about what an answer takes.
func sizeOf(res *plugin.Result) int {
	return 512 + len(res.Data) + len(res.Summary) + len(res.Diagnostics) + len(res.Skips) + len(res.Citations) + len(res.Members)
}

// reuse looks for the earlier answer of a pure tool to the same input. A call that could not
// run now gets none: what policy puts before a person, no earlier caller has let out.
func (a *attempt) reuse() (plugin.Result, bool) {
	if a.phase != phaseNew || a.call.Fresh || a.open || a.call.Dry != nil || !cacheable(a.target, a.call) {
		return plugin.Result{}, false
	}
	res, found := a.k.cache.get(a.cacheKey())
	if found {
		res.Cached = true
		a.made = res.Labels            // of the answer; those of the other call are not among them
		res.Metrics = plugin.Metrics{} // this call cost nothing of what that one did
	}
	return res, found
}

// keep keeps the answer of a pure tool for later callers, with its own labels and without those
// of this call.
func (a *attempt) keep(res plugin.Result) {
	if a.target == nil || a.prior != nil || res.Status != plugin.Succeeded || res.Cached || a.call.Dry != nil || a.open ||
		!cacheable(a.target, a.call) || isNondeterministic(&res) {
		return
	}
	res.Labels = a.made
	a.k.cache.put(a.cacheKey(), res)
}

func (a *attempt) cacheKey() cacheKey {
	p := a.call.Principal
	return cacheKey{a.call.Tenant, a.target.Package.Digest, a.target.Name(), a.record.InputHash, p.Type + "::" + p.ID, strings.Join(p.Scopes, "\x00")}
}
