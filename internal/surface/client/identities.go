package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Identities implements [Host].
func (r *remote) Identities() Identities { return remoteIdentities{r} }

type remoteIdentities struct{ *remote }

// List implements [Identities].
func (r remoteIdentities) List(ctx context.Context) ([]host.Identity, error) {
	var all rest.Identities
	err := r.get(ctx, &all, nil, "identities")
	return each(all.Identities, func(i rest.Identity) host.Identity { return host.Identity(i) }), err
}

// LinkFor implements [Identities].
func (r remoteIdentities) LinkFor(ctx context.Context, adapter, provider, externalID, to string, scopes ...string) (host.Identity, error) {
	var made rest.Identity
	err := r.post(ctx, struct {
		rest.External
		Principal string   `json:"principal"`
		Adapter   string   `json:"adapter,omitzero"`
		Scopes    []string `json:"scopes,omitzero"`
	}{rest.External{Provider: provider, ExternalID: externalID}, to, adapter, scopes}, &made, "identities:link")
	return host.Identity(made), err
}

// Unlink implements [Identities].
func (r remoteIdentities) Unlink(ctx context.Context, provider, externalID string) (host.Identity, error) {
	var gone rest.Identity
	err := r.post(ctx, rest.External{Provider: provider, ExternalID: externalID}, &gone, "identities:unlink")
	return host.Identity(gone), err
}
