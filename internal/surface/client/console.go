package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/mortise-dev/mortise/plugin"
)

// Console returns the address at which a browser shows the console of the host that is meant:
// of one on this machine a link that signs the owner in, once and within five minutes, and of
// one elsewhere the host itself, where people sign in. Errors: unavailable, with what to do.
func Console(ctx context.Context, o Options) (link string, err error) {
	t, err := o.Find()
	if err != nil || t.Remote() {
		return t.Context.URL, err
	}
	reached, err := Reach(ctx, o)
	if err != nil {
		return "", err
	}
	r, serves := reached.(*remote)
	if !serves {
		return "", plugin.Errorf(plugin.CodeUnavailable, "nothing serves %s: 'mortise serve --listen 127.0.0.1:8080' does, with the console at that address", o.Home)
	}
	return r.link(ctx)
}

// link asks the host that serves on this machine for a link that signs its owner in.
func (r *remote) link(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/auth/link", nil)
	if err != nil {
		return "", err
	}
	res, err := r.http.Do(req)
	if err != nil {
		return "", r.unreached(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return "", plugin.Errorf(plugin.CodeUnavailable, "%s listens on no address of this machine, so that no browser can be signed in: start it with --listen 127.0.0.1:8080, or sign in at its own address", r.where())
	}
	var made struct{ Link string }
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&made); err != nil || made.Link == "" {
		return "", plugin.Errorf(plugin.CodeUnavailable, "%s answers %s, and no link", r.where(), res.Status)
	}
	return made.Link, nil
}
