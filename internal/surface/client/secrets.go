package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Secrets implements [Host].
func (r *remote) Secrets() Secrets { return remoteSecrets{r} }

type remoteSecrets struct{ *remote }

// placed are the parameters that say whose a secret is.
func placed(p host.SecretPlace) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"plugin": p.Plugin, "user": p.User} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.System {
		q.Set("system", "true")
	}
	return q
}

// Set implements [Secrets].
func (r remoteSecrets) Set(ctx context.Context, p host.SecretPlace, value string) (host.SecretInfo, error) {
	return r.changed(ctx, http.MethodPut, p, map[string]string{"value": value})
}

// Delete implements [Secrets].
func (r remoteSecrets) Delete(ctx context.Context, p host.SecretPlace) (host.SecretInfo, error) {
	return r.changed(ctx, http.MethodDelete, p, nil)
}

func (r remoteSecrets) changed(ctx context.Context, method string, p host.SecretPlace, body any) (host.SecretInfo, error) {
	var kept rest.SecretKept
	_, err := r.do(ctx, asking{method: method, path: at("secrets", p.Name), query: placed(p), body: body}, &kept)
	return host.SecretInfo(kept), err
}

// DeleteAll implements [Secrets].
func (r remoteSecrets) DeleteAll(ctx context.Context) (int, error) {
	var gone rest.SecretsDeleted
	err := r.post(ctx, nil, &gone, "secrets:delete-all")
	return gone.Deleted, err
}

// Rotate implements [Secrets].
func (r remoteSecrets) Rotate(ctx context.Context) (host.SecretRotation, error) {
	var done rest.SecretsRotated
	err := r.post(ctx, nil, &done, "secrets:rotate")
	return host.SecretRotation(done), err
}

// List implements [Secrets].
func (r remoteSecrets) List(ctx context.Context) ([]host.SecretInfo, error) {
	var all rest.SecretsKept
	err := r.get(ctx, &all, nil, "secrets")
	return each(all.Secrets, func(s rest.SecretKept) host.SecretInfo { return host.SecretInfo(s) }), err
}

// Check implements [Secrets].
func (r remoteSecrets) Check(ctx context.Context, name string) ([]host.SecretState, error) {
	q := url.Values{}
	if name != "" {
		q.Set("plugin", name)
	}
	var needs rest.SecretNeeds
	err := r.get(ctx, &needs, q, "secrets", "needs")
	return each(needs.Secrets, func(s rest.SecretNeed) host.SecretState { return host.SecretState(s) }), err
}
