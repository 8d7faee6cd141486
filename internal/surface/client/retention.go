package client

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Retention implements [Admin].
func (r remoteAdmin) Retention(ctx context.Context) ([]host.RetentionState, error) {
	var got struct {
		Periods []rest.RetentionState `json:"periods"`
	}
	err := r.get(ctx, &got, nil, "retention")
	return statesOf(got.Periods), err
}

// ApplyRetention implements [Admin].
func (r remoteAdmin) ApplyRetention(ctx context.Context) ([]host.RetentionState, error) {
	var got struct {
		Periods []rest.RetentionState `json:"periods"`
	}
	err := r.post(ctx, struct{}{}, &got, "retention:apply")
	return statesOf(got.Periods), err
}

func statesOf(all []rest.RetentionState) (states []host.RetentionState) {
	for _, s := range all {
		states = append(states, host.RetentionState{
			Kind: s.Kind, Period: time.Duration(s.Days * 24 * float64(time.Hour)), Days: s.Days, Count: s.Count, Bytes: s.Bytes, Oldest: s.Oldest, Done: s.Done,
		})
	}
	return states
}

// Erasures implements [Admin].
func (r remoteAdmin) Erasures(ctx context.Context) (all []host.Erasure, err error) {
	var got struct {
		Erasures []rest.Erasure `json:"erasures"`
	}
	err = r.get(ctx, &got, nil, "erasures")
	for _, e := range got.Erasures {
		all = append(all, host.Erasure(e))
	}
	return all, err
}

// Erase implements [Admin].
func (r remoteAdmin) Erase(ctx context.Context, principal string, dry bool) (host.Erasure, error) {
	var got rest.Erasure
	err := r.post(ctx, map[string]any{"principal": principal, "dry_run": dry}, &got, "erasures")
	return host.Erasure(got), err
}
