package client

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Tokens implements [Host].
func (r *remote) Tokens() Tokens { return remoteTokens{r} }

type remoteTokens struct{ *remote }

// List implements [Tokens].
func (r remoteTokens) List(ctx context.Context) ([]host.Token, error) {
	var all rest.Tokens
	err := r.get(ctx, &all, nil, "tokens")
	return each(all.Tokens, func(t rest.Token) host.Token { return host.Token(t) }), err
}

// A tokenSpec is the body of a token that is to be.
type tokenSpec struct {
	Name       string   `json:"name"`
	For        string   `json:"for,omitzero"`
	Scopes     []string `json:"scopes,omitzero"`
	Operations []string `json:"operations,omitzero"`
	Life       int64    `json:"expires_in,omitzero"` // seconds
	Endless    bool     `json:"no_expiry,omitzero"`
}

// Create implements [Tokens].
func (r remoteTokens) Create(ctx context.Context, n host.NewToken) (host.Token, string, error) {
	body := tokenSpec{Name: n.Name, For: n.For, Scopes: n.Scopes, Operations: n.Operations, Endless: n.Life < 0}
	if !body.Endless {
		body.Life = max(1, int64((n.Life+time.Second-1)/time.Second))
	}
	var made rest.Secret
	err := r.post(ctx, body, &made, "tokens")
	return host.Token(made.Token), made.Secret, err
}

// Revoke implements [Tokens].
func (r remoteTokens) Revoke(ctx context.Context, id string) (host.Token, error) {
	var t rest.Token
	err := r.post(ctx, nil, &t, "tokens", id+":revoke")
	return host.Token(t), err
}

// each is rows in another form.
func each[T, H any](rows []T, as func(T) H) []H {
	all := make([]H, len(rows))
	for i, row := range rows {
		all[i] = as(row)
	}
	return all
}
