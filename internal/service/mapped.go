package service

import (
	"slices"

	"github.com/mortise-dev/mortise/internal/service/egress"
)

// maxMapped is how many mapped hosts of one call its record names.
const maxMapped = 16

// noteMapped takes down that the next host is led elsewhere by the administrator.
func (x *exchange) noteMapped() {
	if name, _ := egress.Endpoint(x.url); x.grants.Mapped(name) && !slices.Contains(x.mapped, name) {
		x.mapped = append(x.mapped, name)
	}
}

// wentMapped takes down for the call's record which hosts were led elsewhere:
// what answered is not who the name says.
func (g *grant) wentMapped(names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if len(g.mapped) < maxMapped && !slices.Contains(g.mapped, name) {
			g.mapped = append(g.mapped, name)
		}
	}
}
