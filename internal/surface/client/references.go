package client

import (
	"context"
	"net/http"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// References implements [Host].
func (r *remote) References() References { return remoteReferences{r} }

type remoteReferences struct{ *remote }

// List implements [References].
func (r remoteReferences) List() ([]host.ReferenceKey, error) {
	return listed(context.Background(), r.remote, "references", func(k rest.Reference) host.ReferenceKey { return host.ReferenceKey(k) }, "references")
}

// Add implements [References]. The file is read here.
func (r remoteReferences) Add(ctx context.Context, key, file string) (host.ReferenceKey, error) {
	form, text, err := host.ReadReference(key, file)
	if err != nil {
		return host.ReferenceKey{}, err
	}
	return r.Put(ctx, key, form, text)
}

// AddMitre implements [References]. The bundles are read here, and the table is sent.
func (r remoteReferences) AddMitre(ctx context.Context, files ...string) (host.ReferenceKey, map[string]int, error) {
	table, counts, err := host.ReadMitre(files...)
	if err != nil {
		return host.ReferenceKey{}, nil, err
	}
	key, err := r.Put(ctx, host.MitreTechniques, "json", table)
	return key, counts, err
}

// Put implements [References].
func (r remoteReferences) Put(ctx context.Context, key, form string, text []byte) (host.ReferenceKey, error) {
	var put rest.Reference
	err := r.change(ctx, http.MethodPut, map[string]string{"form": form, "text": string(text)}, &put, "", "references", key)
	return host.ReferenceKey(put), err
}

// Remove implements [References].
func (r remoteReferences) Remove(ctx context.Context, key string) error {
	return r.change(ctx, http.MethodDelete, nil, nil, "", "references", key)
}

// listed reads a whole list, in the form of package host.
func listed[T, H any](ctx context.Context, r *remote, member string, as func(T) H, segments ...string) ([]H, error) {
	rows, err := rowsOf[T](ctx, r, member, nil, 0, segments...)
	return each(rows, as), err
}
