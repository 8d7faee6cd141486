// Package ratelimit holds token buckets by key.
package ratelimit

import (
	"container/list"
	"math"
	"sync"
	"time"
)

// A Limiter has a token bucket for each key. Where there are too many keys, the one that
// was used least recently is forgotten: its bucket is full again then. All methods are
// safe for concurrent use.
type Limiter[K comparable] struct {
	keys int

	mu          sync.Mutex // guards the rest
	rate, burst float64
	buckets     map[K]*list.Element
	recent      list.List // of *bucket[K], the last used first
}

type bucket[K comparable] struct {
	key    K
	tokens float64
	at     time.Time
}

// New returns a limiter whose buckets hold burst tokens and get rate of them back in a
// second. It remembers that many keys.
func New[K comparable](rate, burst float64, keys int) *Limiter[K] {
	return &Limiter[K]{rate: rate, burst: burst, keys: keys, buckets: map[K]*list.Element{}}
}

// Set has buckets hold other numbers from now on. What was taken from them stays taken.
func (l *Limiter[K]) Set(rate, burst float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate, l.burst = rate, burst
}

// Bounds returns the numbers that buckets hold.
func (l *Limiter[K]) Bounds() (rate, burst float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate, l.burst
}

// Take takes cost tokens from the bucket of key and returns 0, or takes none and returns
// how long it is until there are so many. A clock that is set back gives none.
func (l *Limiter[K]) Take(key K, cost float64, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(key, now)
	b.tokens = min(l.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.rate)
	b.at = now
	if b.tokens < cost {
		return time.Duration(math.Ceil((cost - b.tokens) / l.rate * float64(time.Second)))
	}
	b.tokens -= cost
	return 0
}

// Give puts cost tokens that were taken back into the bucket of key, as far as it is known.
func (l *Limiter[K]) Give(key K, cost float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.buckets[key]; e != nil {
		b := e.Value.(*bucket[K])
		b.tokens = min(l.burst, b.tokens+cost)
	}
}

// Left returns how many tokens the bucket of key holds.
func (l *Limiter[K]) Left(key K, now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.buckets[key]
	if e == nil {
		return l.burst
	}
	b := e.Value.(*bucket[K])
	return min(l.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.rate)
}

// Len is how many keys are remembered.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

func (l *Limiter[K]) bucket(key K, now time.Time) *bucket[K] {
	if e := l.buckets[key]; e != nil {
		l.recent.MoveToFront(e)
		return e.Value.(*bucket[K])
	}
	if len(l.buckets) >= l.keys {
		last := l.recent.Back()
		delete(l.buckets, l.recent.Remove(last).(*bucket[K]).key)
	}
	b := &bucket[K]{key, l.burst, now}
	l.buckets[key] = l.recent.PushFront(b)
	return b
}
