package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
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

// rates are token buckets, apart for each tenant and plugin. They are this host's own.
type rates struct {
	now     func() time.Time
	buckets *ratelimit.Limiter[rateKey]
}

type rateKey struct{ tenant, plugin, name string }

func newRates() *rates {
	return &rates{time.Now, ratelimit.New[rateKey](ratePerSecond, rateBurst, rateBuckets)}
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
	wait := r.buckets.Take(rateKey{g.call.Tenant, g.target.Manifest.Name, in.Bucket}, cost, r.now())
	return rated{wait == 0, (wait + time.Millisecond - 1).Milliseconds()}, nil
}
