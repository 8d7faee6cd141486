package server

import (
	"net/http"

	"github.com/mortise-dev/mortise/internal/surface/signin"
)

// LinkPath is where the owner's socket makes links that sign the owner in.
const LinkPath = "/auth/link"

// linking answers a request of the owner's for such a link, and others by h. Where the host
// does not listen on this machine there is nothing to open with it.
func linking(h http.Handler, setup *signin.Setup, base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != LinkPath || setup == nil:
			h.ServeHTTP(w, r)
		case only(w, r, http.MethodPost):
			w.Header().Set("Cache-Control", "no-store")
			write(w, http.StatusOK, map[string]any{"link": base + "/auth/setup#" + setup.Link(signin.LinkLife), "expires_in": int(signin.LinkLife.Seconds())})
		}
	})
}
