package service

import (
	"container/list"
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	rateName = "rate_limit"
	rateTake = "rate_limit.take"
)

// A bucket holds at most rateBurst tokens and gets ratePerSecond of them back.
const (
	rateBurst     = 60
	ratePerSecond = 1.0

	rateBuckets     = 10_000 // of all plugins
	rateBucketBytes = 200    // of a name
)

// rates are buckets of tokens, apart for each tenant and plugin. Where there are
// too many, the one that was used least recently is forgotten, which is full
// again then. They are this host's own.
type rates struct {
	now func() time.Time

	mu      sync.Mutex // guards the rest
	buckets map[rateKey]*list.Element
	recent  list.List // of *bucket, the last used first
}

type rateKey struct{ tenant, plugin, name string }

type bucket struct {
	key    rateKey
	tokens float64
	at     time.Time
}

func newRates() *rates { return &rates{now: time.Now, buckets: map[rateKey]*list.Element{}} }

// take takes cost tokens, or says how long it takes until there are so many.
func (r *rates) take(key rateKey, cost float64) (ok bool, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	e := r.buckets[key]
	if e == nil {
		e = r.recent.PushFront(&bucket{key, rateBurst, now})
		r.buckets[key] = e
		if len(r.buckets) > rateBuckets {
			last := r.recent.Back()
			delete(r.buckets, last.Value.(*bucket).key)
			r.recent.Remove(last)
		}
	}
	r.recent.MoveToFront(e)
	b := e.Value.(*bucket)
	b.tokens = min(rateBurst, b.tokens+max(0, now.Sub(b.at).Seconds())*ratePerSecond)
	b.at = now
	if b.tokens < cost {
		return false, time.Duration(math.Ceil((cost-b.tokens)/ratePerSecond*1000)) * time.Millisecond
	}
	b.tokens -= cost
	return true, 0
}

// A rated is the value of rate_limit.take.
type rated struct {
	Allowed    bool  `json:"allowed"`
	RetryAfter int64 `json:"retry_after_ms"`
}

func rateTaken(g *grant, _ context.Context, args json.RawMessage) (any, error) {
	return g.takeFrom(g.broker.rates, args)
}

// rateTakenDry takes out of full buckets that end with the call.
func rateTakenDry(g *grant, _ context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	answer, err := g.takeFrom(g.dryRates, args)
	return answer, nil, err
}

func (g *grant) takeFrom(r *rates, args json.RawMessage) (any, error) {
	in := struct {
		Bucket string   `json:"bucket"`
		Cost   *float64 `json:"cost"`
	}{}
	if err := decode(rateTake, args, &in); err != nil {
		return nil, err
	}
	cost := 1.0
	if in.Cost != nil {
		cost = *in.Cost
	}
	switch {
	case in.Bucket == "" || len(in.Bucket) > rateBucketBytes:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: bucket has 1 to %d bytes", rateTake, rateBucketBytes)
	case !(cost >= 0 && cost <= rateBurst): // nor NaN
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: cost is 0 to %d, as much as a bucket holds", rateTake, rateBurst)
	}
	ok, wait := r.take(rateKey{g.call.Tenant, g.target.Manifest.Name, in.Bucket}, cost)
	return rated{ok, wait.Milliseconds()}, nil
}
