package server

import (
	"sync"
	"time"
)

// maxRates is how many channels are counted at a time. Beyond that one is
// forgotten: who asks for channels that there are not gains nothing by it.
const maxRates = 4096

// rates count the deliveries of channels: each has a bucket that fills evenly,
// and a delivery takes one out.
type rates struct {
	rate, burst float64

	mu  sync.Mutex // guards the rest
	all map[string]bucket
}

// A bucket is what a channel had left, and when.
type bucket struct {
	left float64
	at   time.Time
}

func newRates(rate, burst float64) *rates {
	return &rates{rate: rate, burst: burst, all: map[string]bucket{}}
}

// take takes one out of a bucket, or returns after how long there will be one.
func (r *rates) take(key string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, known := r.all[key]
	if !known {
		if len(r.all) >= maxRates {
			for other := range r.all { // any
				delete(r.all, other)
				break
			}
		}
		b = bucket{r.burst, now}
	}
	b.left, b.at = min(r.burst, b.left+r.rate*now.Sub(b.at).Seconds()), now
	var wait time.Duration
	if b.left < 1 {
		wait = time.Duration((1 - b.left) / r.rate * float64(time.Second))
	} else {
		b.left--
	}
	r.all[key] = b
	return wait
}
