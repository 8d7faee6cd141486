package client

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Feeds implements [Host].
func (r *remote) Feeds() Feeds { return feeds{r} }

type feeds struct{ *remote }

// Create implements [Feeds]. The operation is chosen here as the host chooses it, so that its
// schema says how the input is read.
func (f feeds) Create(ctx context.Context, n host.NewFeed) (host.Feed, error) {
	name, _, _ := strings.Cut(n.Plugin, "/")
	shown, err := f.Plugins().Show(ctx, name)
	if err != nil {
		return host.Feed{}, err
	}
	op, err := n.Of(shown.Manifest)
	if err != nil {
		return host.Feed{}, err
	}
	spec := rest.FeedSpec{
		Operation: n.Plugin, Times: rest.Times{Spec: n.Spec, Zone: n.Zone}, Misfire: string(n.Misfire), CatchUp: n.CatchUp, Overlap: string(n.Overlap), OCR: n.OCR, Knowledge: n.Knowledge,
	}
	if op.Name != "" {
		spec.Operation = shown.Name + "/" + op.Name
	}
	if spec.Input, err = n.Input(&plugin.Target{Manifest: shown.Manifest, Operation: op}); err != nil {
		return host.Feed{}, err
	}
	return f.changed(ctx, http.MethodPost, spec, "feeds")
}

// Change implements [Feeds]. The input is put together here, from the one that the feed has.
func (f feeds) Change(ctx context.Context, id string, c host.FeedChange) (host.Feed, error) {
	p := rest.FeedPatch{
		Times: rest.Times{Spec: c.Spec, Zone: c.Zone}, Misfire: string(c.Misfire), CatchUp: c.CatchUp, Overlap: string(c.Overlap), OCR: c.OCR, Knowledge: c.Knowledge, Cursor: string(c.Cursor),
	}
	if c.Input != nil {
		feed, _, _, err := f.Show(ctx, id)
		if err != nil {
			return feed, err
		}
		name, operation, _ := strings.Cut(feed.Operation, "/")
		shown, err := f.Plugins().Show(ctx, name)
		if err != nil {
			return feed, err
		}
		op := shown.Manifest.Operation(operation)
		if op == nil {
			return feed, plugin.Errorf(plugin.CodeNotFound, "%s has no operation %s", name, operation)
		}
		if p.Input, err = c.Input(&plugin.Target{Manifest: shown.Manifest, Operation: op}, feed.Input); err != nil {
			return feed, err
		}
	}
	return f.changed(ctx, http.MethodPatch, p, "feeds", id)
}

func (f feeds) changed(ctx context.Context, method string, body any, path ...string) (host.Feed, error) {
	var got host.Feed
	err := f.change(ctx, method, body, &got, "", path...)
	return got, err
}

// Find implements [Feeds].
func (f feeds) Find(ctx context.Context, given string) (string, error) {
	return host.FindFeed(ctx, f, given)
}

// List implements [Feeds].
func (f feeds) List(ctx context.Context) ([]host.Feed, error) {
	return rowsOf[host.Feed](ctx, f.remote, "feeds", nil, 0, "feeds")
}

// Show implements [Feeds].
func (f feeds) Show(ctx context.Context, id string) (feed host.Feed, next []time.Time, last []host.FeedTick, err error) {
	var runs struct {
		Next    []time.Time     `json:"next"`
		Last    []host.FeedTick `json:"last"`
		Problem string          `json:"problem"`
	}
	if err = f.get(ctx, &feed, nil, "feeds", id); err == nil {
		err = f.get(ctx, &runs, nil, "feeds", id, "runs")
	}
	feed.Problem = runs.Problem
	return feed, runs.Next, runs.Last, err
}

// Run implements [Feeds].
func (f feeds) Run(ctx context.Context, id string) (plugin.Result, error) {
	var o rest.Outcome
	if err := f.post(ctx, nil, &o, "feeds", id+":run"); err != nil {
		return refusedResult(err)
	}
	return resultOf(&o)
}

// Pause implements [Feeds].
func (f feeds) Pause(ctx context.Context, id string) (host.Feed, error) {
	return f.changed(ctx, http.MethodPost, nil, "feeds", id+":pause")
}

// Resume implements [Feeds].
func (f feeds) Resume(ctx context.Context, id string) (host.Feed, error) {
	return f.changed(ctx, http.MethodPost, nil, "feeds", id+":resume")
}

// ResetCursor implements [Feeds].
func (f feeds) ResetCursor(ctx context.Context, id string) (host.Feed, error) {
	return f.changed(ctx, http.MethodPost, nil, "feeds", id+":reset")
}

// Delete implements [Feeds].
func (f feeds) Delete(ctx context.Context, id string) (host.Feed, error) {
	return f.changed(ctx, http.MethodDelete, nil, "feeds", id)
}
