package view

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// References are keys of reference data.
var References = List[host.ReferenceKey]{
	Key:    "reference",
	Titles: []string{"KEY", "FORM", "BYTES", "CHANGED", "VERSION"},
	None:   "there is no reference data; 'mortise reference add KEY FILE' puts some there",
	Row: func(k host.ReferenceKey) []string {
		return []string{k.Key, k.Form, fmt.Sprint(k.Size), changed(k), terminal.Dash(k.Version)}
	},
}

// changed is when a key's data was changed, which is never for what comes along.
func changed(k host.ReferenceKey) string {
	if k.UpdatedAt.IsZero() {
		return terminal.Dash("")
	}
	return terminal.Clock(k.UpdatedAt)
}
