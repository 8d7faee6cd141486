package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// What a plugin caches outlives its call, and each command line is a host of its
// own. So a host finds what the last one had, and leaves what it has to the next:
// one row of the store for each plugin that uses the cache, read when the plugin
// first asks and written some time after it changed, and at the end. It is a
// cache: a host that is killed leaves what it had written by then.

const (
	cacheKeepAfter = 30 * time.Second // a host that stays writes what has changed
	cacheKeepTime  = 5 * time.Second  // at the end
	cacheDropped   = 1000             // keys that are remembered as deleted
)

// A cacheKept is what is known of the row of one plugin.
type cacheKept struct {
	changed bool
	dropped map[cacheEntryName]time.Time // deleted here since it was read
	whole   bool                         // too many were: the row is what is here, and nothing else
}

func (k *cacheKept) drop(name cacheEntryName) {
	k.changed = true
	if len(k.dropped) == cacheDropped {
		k.whole = true
	}
	if k.whole {
		k.dropped = nil
		return
	}
	if k.dropped == nil {
		k.dropped = map[cacheEntryName]time.Time{}
	}
	k.dropped[name] = time.Now()
}

// A cacheRow is an entry as the row has it.
type cacheRow struct {
	Subject string          `json:"subject"` // whose call it was; "" for an entry of an earlier release, which no one reads
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Labels  []string        `json:"labels,omitempty"`
	Set     time.Time       `json:"set"`
	Expires time.Time       `json:"expires"`
}

func (r *cacheRow) name() cacheEntryName { return cacheEntryName{r.Subject, r.Key} }

func (r *cacheRow) size() int { return len(r.Value) + len(r.Subject) + len(r.Key) + cacheEntryBytes }

func cachePlace(owner cacheOwner) kvKey {
	return kvKey{Tenant: owner.tenant, Owner: ":host", Scope: "cache", Namespace: "cache", Key: owner.plugin}
}

// recall brings in what the last host had of a plugin, once. What cannot be read
// is not there.
func (g *grant) recall(ctx context.Context, owner cacheOwner) {
	b, c := g.broker, g.broker.cache
	if b.Store == nil {
		return
	}
	c.mu.Lock()
	known := c.kept[owner] != nil
	c.mu.Unlock()
	if known {
		return
	}
	row, err := b.Store.KV(ctx, cachePlace(owner))
	if err != nil {
		b.uncached(err)
		return
	}
	rows, err := readCacheRow(row)
	if err != nil {
		b.uncached(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[owner] != nil {
		return
	}
	c.kept[owner] = &cacheKept{}
	now := c.now()
	for _, r := range rows { // the last used is at the end
		key := cacheKey{owner, r.name()}
		if _, newer := c.entries[key]; !newer && now.Before(r.Expires) {
			c.put(&cacheEntry{key: key, value: r.Value, labels: r.Labels, set: r.Set, expires: r.Expires})
		}
	}
}

func readCacheRow(row *kvRow) (rows []cacheRow, err error) {
	if row == nil {
		return nil, nil
	}
	if err := json.Unmarshal(row.Value, &rows); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r cacheRow) bool { return r.Subject == "" }), nil
}

// keepCacheSoon has what changed written after a while.
func (b *Broker) keepCacheSoon() {
	c := b.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Store == nil || c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(cacheKeepAfter, func() {
		ctx, cancel := context.WithTimeout(context.Background(), cacheKeepAfter)
		defer cancel()
		b.keepCache(ctx)
	})
}

// keepCache writes what has changed.
func (b *Broker) keepCache(ctx context.Context) {
	c := b.cache
	if b.Store == nil {
		return
	}
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	var changed []cacheOwner
	for owner, kept := range c.kept {
		if kept.changed {
			changed = append(changed, owner)
		}
	}
	c.mu.Unlock()
	var errs []error
	for _, owner := range changed {
		here, kept := c.snapshot(owner)
		err := b.Store.Write(ctx, func(tx ledger.Tx) error {
			key := cachePlace(owner)
			was, err := tx.KV(ctx, key)
			if err != nil {
				return err
			}
			there, _ := readCacheRow(was) // one that cannot be read is replaced
			rows := mergeCache(there, here, kept, c.now())
			if len(rows) == 0 {
				_, err := tx.DeleteKV(key)
				return err
			}
			value, err := json.Marshal(rows)
			if err != nil {
				return err
			}
			return tx.PutKV(kvRow{KVKey: key, Value: value, Labels: []string{}, UpdatedAt: c.now().UTC()})
		})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		b.uncached(err)
	}
}

// snapshot returns what is cached of a plugin, the last used at the end, and what
// was deleted, and counts its changes as written.
func (c *cache) snapshot(owner cacheOwner) (rows []cacheRow, kept cacheKept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept = *c.kept[owner]
	c.kept[owner] = &cacheKept{}
	if list := c.owners[owner]; list != nil {
		for e := list.recent.Back(); e != nil; e = e.Prev() {
			entry := e.Value.(*cacheEntry)
			rows = append(rows, cacheRow{entry.key.subject, entry.key.key, entry.value, entry.labels, entry.set, entry.expires})
		}
	}
	return rows, kept
}

// mergeCache is what the row holds from now on: of each key what was set last,
// here or by another host, within the share of one plugin.
func mergeCache(there, here []cacheRow, kept cacheKept, now time.Time) []cacheRow {
	newest := map[cacheEntryName]cacheRow{}
	if !kept.whole {
		for _, r := range there {
			if gone, dropped := kept.dropped[r.name()]; !dropped || r.Set.After(gone) {
				newest[r.name()] = r
			}
		}
	}
	used := map[cacheEntryName]int{}
	for i, r := range here {
		used[r.name()] = i + 1
		if was, found := newest[r.name()]; found && now.Before(was.Expires) {
			labels := plugin.Labels(was.Labels, r.Labels) // they only grow, whichever value stays
			if was.Set.After(r.Set) {
				r = was
			}
			r.Labels = labels
		}
		newest[r.name()] = r
	}
	rows := make([]cacheRow, 0, len(newest))
	for _, r := range newest {
		if now.Before(r.Expires) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b cacheRow) int { // what another host alone had used goes first
		return cmp.Or(cmp.Compare(used[a.name()], used[b.name()]), a.Set.Compare(b.Set))
	})
	size := 0
	for i, r := range slices.Backward(rows) {
		if size += r.size(); size > cacheShare {
			return rows[i+1:]
		}
	}
	return rows
}

// uncached says that the cache is not what it could be.
func (b *Broker) uncached(err error) {
	if b.Uncached != nil && !errors.Is(err, context.Canceled) {
		b.Uncached(err)
	}
}
