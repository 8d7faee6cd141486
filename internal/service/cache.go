package service

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

const cacheName = "cache"

// Bounds of the cache.
const (
	cacheValueBytes = 1 << 20
	cacheBytes      = 64 << 20
	cacheKeyBytes   = 512
	cacheTTL        = 300 * time.Second
	cacheMaxTTL     = 24 * time.Hour
)

// A cache keeps values in memory for a while, apart for each tenant and
// plugin. What was used least recently goes first when it is full.
type cache struct {
	now func() time.Time

	mu      sync.Mutex // guards the rest
	entries map[cacheKey]*list.Element
	recent  *list.List // of *cacheEntry, the last used first
	size    int
}

type cacheKey struct{ tenant, plugin, key string }

type cacheEntry struct {
	key     cacheKey
	value   json.RawMessage
	expires time.Time
}

func newCache() *cache {
	return &cache{now: time.Now, entries: map[cacheKey]*list.Element{}, recent: list.New()}
}

func (c *cache) get(key cacheKey) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[key]
	if !found {
		return nil, false
	}
	entry := element.Value.(*cacheEntry)
	if c.now().After(entry.expires) {
		c.remove(element)
		return nil, false
	}
	c.recent.MoveToFront(element)
	return entry.value, true
}

func (c *cache) set(key cacheKey, value json.RawMessage, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, found := c.entries[key]; found {
		c.remove(old)
	}
	c.entries[key] = c.recent.PushFront(&cacheEntry{key, value, c.now().Add(ttl)})
	c.size += len(value) + len(key.key)
	for c.size > cacheBytes {
		c.remove(c.recent.Back())
	}
}

func (c *cache) delete(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, found := c.entries[key]; found {
		c.remove(element)
	}
}

func (c *cache) remove(element *list.Element) {
	entry := c.recent.Remove(element).(*cacheEntry)
	delete(c.entries, entry.key)
	c.size -= len(entry.value) + len(entry.key.key)
}

// key returns where the plugin of a grant keeps what it calls name.
func (g *grant) cacheKey(name string) (cacheKey, error) {
	if name == "" || len(name) > cacheKeyBytes {
		return cacheKey{}, plugin.Errorf(plugin.CodeInvalidInput, "cache: a key has 1 to %d bytes", cacheKeyBytes)
	}
	return cacheKey{g.call.Tenant, g.target.Manifest.Name, name}, nil
}

type cacheFound struct {
	Found bool            `json:"found"`
	Value json.RawMessage `json:"value,omitzero"`
}

func cacheGet(g *grant, _ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Key string `json:"key"`
	}
	if err := decode("cache.get", args, &in); err != nil {
		return nil, err
	}
	key, err := g.cacheKey(in.Key)
	if err != nil {
		return nil, err
	}
	value, found := g.broker.cache.get(key)
	return cacheFound{found, value}, nil
}

func cacheSet(g *grant, _ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
		TTL   *float64        `json:"ttl_seconds"`
	}
	if err := decode("cache.set", args, &in); err != nil {
		return nil, err
	}
	key, err := g.cacheKey(in.Key)
	if err != nil {
		return nil, err
	}
	ttl := cacheTTL
	if in.TTL != nil {
		ttl = time.Duration(min(max(*in.TTL, 0), cacheMaxTTL.Seconds()) * float64(time.Second))
	}
	switch {
	case len(in.Value) == 0:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "cache.set: value is missing")
	case len(in.Value) > cacheValueBytes:
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "cache.set: the value has %d bytes; at most %d are kept", len(in.Value), cacheValueBytes)
	}
	g.broker.cache.set(key, in.Value, ttl)
	return nothing{}, nil
}

func cacheDelete(g *grant, _ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Key string `json:"key"`
	}
	if err := decode("cache.delete", args, &in); err != nil {
		return nil, err
	}
	key, err := g.cacheKey(in.Key)
	if err != nil {
		return nil, err
	}
	g.broker.cache.delete(key)
	return nothing{}, nil
}
