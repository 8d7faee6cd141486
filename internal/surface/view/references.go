package view

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// References are keys of reference data.
var References = List[host.ReferenceKey]{
	Key:    "reference",
	Titles: []string{"KEY", "FORM", "BYTES", "CHANGED"},
	None:   "there is no reference data; 'mortise reference add KEY FILE' puts some there, and 'mortise reference mitre FILE' the techniques of ATT&CK",
	Row: func(k host.ReferenceKey) []string {
		return []string{k.Key, k.Form, fmt.Sprint(k.Size), terminal.Clock(k.UpdatedAt)}
	},
}
