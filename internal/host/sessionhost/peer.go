package sessionhost

import "github.com/mortise-dev/mortise/plugin"

// allowed refuses another user than our own, but for root.
func allowed(peer, own int) error {
	if peer != own && peer != 0 {
		return plugin.Errorf(plugin.CodeUnauthenticated, "the user %d is at the other end, and this is user %d's", peer, own)
	}
	return nil
}
