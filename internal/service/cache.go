package service

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
)

const cacheName = "cache"

// Bounds of the cache.
const (
	cacheValueBytes = 1 << 20
	cacheBytes      = 16 << 20 // of all together
	cacheShare      = 8 << 20  // of one plugin in one tenant, so that none drives out the others
	cacheEntryBytes = 512      // that an entry takes beside its key and value
	cacheKeyBytes   = 512
	cacheTTL        = 300 * time.Second
	cacheMaxTTL     = 24 * time.Hour
)

// A cache keeps values in memory for a while, apart for each tenant, plugin and
// principal. What was used least recently goes first when it, or the share of one
// plugin, is full. What it holds is handed on to the next host: see cache_kept.go.
type cache struct {
	now func() time.Time

	mu      sync.Mutex // guards the rest
	kept    map[cacheOwner]*cacheKept
	timer   *time.Timer // until what changed is written; nil where nothing has
	entries map[cacheKey]*cacheEntry
	all     cacheList
	owners  map[cacheOwner]*cacheList // those that keep something
}

type cacheOwner struct{ tenant, plugin string }

type cacheKey struct {
	cacheOwner
	cacheEntryName
}

// A cacheEntryName is a key of one plugin: the principal of the call, as [grant.subject] has it,
// and what the plugin calls the value.
type cacheEntryName struct{ subject, key string }

// A cacheList is entries, the last used first, and their size.
type cacheList struct {
	recent list.List // of *cacheEntry
	size   int
}

type cacheEntry struct {
	key     cacheKey
	value   json.RawMessage
	labels  []string // labels of the sources of the value; each reader inherits them
	set     time.Time
	expires time.Time

	owner       *cacheList
	inAll, inIt *list.Element // where it stands in the list of all, and in its owner's
}

func (e *cacheEntry) size() int {
	return len(e.value) + len(e.key.subject) + len(e.key.key) + cacheEntryBytes
}

func newCache() *cache {
	return &cache{now: time.Now, entries: map[cacheKey]*cacheEntry{}, kept: map[cacheOwner]*cacheKept{}, owners: map[cacheOwner]*cacheList{}}
}

func (c *cache) get(key cacheKey) (value json.RawMessage, labels []string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.entries[key]
	if !found {
		return nil, nil, false
	}
	if c.now().After(entry.expires) {
		c.remove(entry)
		return nil, nil, false
	}
	c.all.recent.MoveToFront(entry.inAll)
	entry.owner.recent.MoveToFront(entry.inIt)
	return entry.value, entry.labels, true
}

// size is how many bytes are kept under a key.
func (c *cache) size(key cacheKey) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.entries[key]; entry != nil {
		return len(entry.value)
	}
	return 0
}

func (c *cache) set(key cacheKey, value json.RawMessage, labels []string, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, found := c.entries[key]; found {
		if !c.now().After(was.expires) {
			labels = plugin.Labels(labels, was.labels) // they only grow
		}
		c.remove(was)
	}
	now := c.now()
	c.put(&cacheEntry{key: key, value: value, labels: labels, set: now, expires: now.Add(ttl)})
	if kept := c.kept[key.cacheOwner]; kept != nil {
		delete(kept.dropped, key.cacheEntryName)
		kept.changed = true
	}
}

// put adds an entry, and takes out what there is no room for. The lock is held.
func (c *cache) put(entry *cacheEntry) {
	key := entry.key
	owner := c.owners[key.cacheOwner]
	if owner == nil {
		owner = &cacheList{}
		c.owners[key.cacheOwner] = owner
	}
	entry.owner = owner
	entry.inAll, entry.inIt = c.all.recent.PushFront(entry), owner.recent.PushFront(entry)
	c.entries[key] = entry
	c.all.size += entry.size()
	owner.size += entry.size()
	for owner.size > cacheShare {
		c.remove(owner.recent.Back().Value.(*cacheEntry))
	}
	for c.all.size > cacheBytes {
		c.remove(c.all.recent.Back().Value.(*cacheEntry))
	}
}

func (c *cache) delete(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.entries[key]
	if !found {
		return
	}
	c.remove(entry)
	if kept := c.kept[key.cacheOwner]; kept != nil {
		kept.drop(key.cacheEntryName)
	}
}

// remove takes an entry out. The lock is held.
func (c *cache) remove(entry *cacheEntry) {
	delete(c.entries, entry.key)
	c.all.recent.Remove(entry.inAll)
	c.all.size -= entry.size()
	entry.owner.recent.Remove(entry.inIt)
	if entry.owner.size -= entry.size(); entry.owner.recent.Len() == 0 {
		delete(c.owners, entry.key.cacheOwner)
	}
}

// cacheKey returns where the plugin of a grant keeps, for the principal of the call, what it
// calls name.
func (g *grant) cacheKey(name string) (cacheKey, error) {
	if name == "" || len(name) > cacheKeyBytes {
		return cacheKey{}, plugin.Errorf(plugin.CodeInvalidInput, "cache: a key has 1 to %d bytes", cacheKeyBytes)
	}
	return cacheKey{cacheOwner{g.call.Tenant, g.target.Manifest.Name}, cacheEntryName{g.subject(), name}}, nil
}

type cacheFound struct {
	Found bool            `json:"found"`
	Value json.RawMessage `json:"value,omitzero"`
}

// cacheNamed reads the arguments of cache.get and cache.delete.
func (g *grant) cacheNamed(name string, args json.RawMessage) (cacheKey, error) {
	var in struct {
		Key string `json:"key"`
	}
	if err := decode(name, args, &in); err != nil {
		return cacheKey{}, err
	}
	return g.cacheKey(in.Key)
}

func cacheGet(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	key, err := g.cacheNamed("cache.get", args)
	if err != nil {
		return nil, err
	}
	g.recall(ctx, key.cacheOwner)
	size := 2 * g.broker.cache.size(key)
	if err := take(ctx, "cache.get", size); err != nil {
		return nil, err
	}
	found := g.cached(ctx, key)
	if 2*len(found.Value) > size+budget.AnswerFree { // it was set to a larger one meanwhile
		return nil, noRoom("cache.get", budget.ErrNoRoom)
	}
	return found, nil
}

// cached returns what is kept under a key; in a dry run, what would be.
func (g *grant) cached(ctx context.Context, key cacheKey) cacheFound {
	if would, changed := keptDry[cacheValue](g, key); changed {
		g.heard(would.labels)
		return cacheFound{would.value != nil, would.value}
	}
	g.recall(ctx, key.cacheOwner)
	value, labels, found := g.broker.cache.get(key)
	g.heard(labels)
	return cacheFound{found, value}
}

func cacheGetDry(g *grant, ctx context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	found, err := cacheGet(g, ctx, args)
	return found, nil, err
}

// A cacheValue is what a dry run would have kept.
type cacheValue struct {
	value  json.RawMessage // nil for nothing
	labels []string
}

// A cacheEdit is the arguments of cache.set.
type cacheEdit struct {
	key   cacheKey
	value json.RawMessage
	ttl   time.Duration
}

func (g *grant) cacheEdit(args json.RawMessage) (edit cacheEdit, err error) {
	var in struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
		TTL   *float64        `json:"ttl_seconds"`
	}
	if err := decode("cache.set", args, &in); err != nil {
		return edit, err
	}
	if edit.key, err = g.cacheKey(in.Key); err != nil {
		return edit, err
	}
	edit.value, edit.ttl = in.Value, cacheTTL
	if in.TTL != nil {
		edit.ttl = time.Duration(min(max(*in.TTL, 0), cacheMaxTTL.Seconds()) * float64(time.Second))
	}
	switch {
	case len(in.Value) == 0:
		return edit, plugin.Errorf(plugin.CodeInvalidInput, "cache.set: value is missing")
	case len(in.Value) > cacheValueBytes:
		return edit, plugin.Errorf(plugin.CodeInputTooLarge, "cache.set: the value has %d bytes; at most %d are kept", len(in.Value), cacheValueBytes)
	}
	return edit, nil
}

func cacheSet(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	edit, err := g.cacheEdit(args)
	if err != nil {
		return nil, err
	}
	g.recall(ctx, edit.key.cacheOwner)
	g.broker.cache.set(edit.key, edit.value, plugin.Labels(g.call.Labels, g.Labels()), edit.ttl)
	g.broker.keepCacheSoon()
	return nothing{}, nil
}

func cacheSetDry(g *grant, ctx context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	edit, err := g.cacheEdit(args)
	if err != nil {
		return nil, nil, err
	}
	was := g.cached(ctx, edit.key) // whose labels are the call's from here on
	would := cacheValue{edit.value, plugin.Labels(g.call.Labels, g.Labels())}
	if err := g.keep("cache.set", edit.key, would, len(edit.value)); err != nil {
		return nil, nil, err
	}
	return nothing{}, &plugin.Change{Target: edit.key.key, Before: was.Value, After: edit.value, Summary: "kept for " + edit.ttl.String()}, nil
}

func cacheDelete(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	key, err := g.cacheNamed("cache.delete", args)
	if err != nil {
		return nil, err
	}
	g.recall(ctx, key.cacheOwner)
	g.broker.cache.delete(key)
	g.broker.keepCacheSoon()
	return nothing{}, nil
}

func cacheDeleteDry(g *grant, ctx context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	key, err := g.cacheNamed("cache.delete", args)
	if err != nil {
		return nil, nil, err
	}
	was := g.cached(ctx, key)
	if err := g.keep("cache.delete", key, cacheValue{}, 0); err != nil || !was.Found {
		return nothing{}, nil, err
	}
	return nothing{}, &plugin.Change{Target: key.key, Before: was.Value, Summary: "dropped"}, nil
}
