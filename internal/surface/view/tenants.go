package view

import (
	"cmp"
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Tenants are tenants as they are listed.
var Tenants = List[host.Tenant]{
	Key:    "tenants",
	Titles: []string{"NAME", "CREATED", "BY", "STATE"},
	None:   "no tenants",
	Fit:    OnScreen,
	Row: func(t host.Tenant) []string {
		return []string{t.Name, Moment(t.CreatedAt), t.By, tenantState(t)}
	},
}

func tenantState(t host.Tenant) string {
	switch {
	case t.Site:
		return "the site's own"
	case !t.DisabledAt.IsZero():
		return "disabled"
	}
	return "enabled"
}

// TenantPlace is the directory of a tenant's configuration, or where that is told.
func TenantPlace(t host.Tenant) string {
	if t.Site && t.Directory == "" {
		return "the data directory of the host"
	}
	return cmp.Or(t.Directory, "tenants/"+t.Name+" in the data directory of the host")
}

// Tenant shows a tenant with where its configuration is.
func Tenant(w io.Writer, t host.Tenant) error {
	text := fmt.Sprintf("tenant %s, %s\n  configuration and policies: %s\n", t.Name, tenantState(t), TenantPlace(t))
	if !t.Site {
		text += fmt.Sprintf("  created by %s at %s\n", t.By, Moment(t.CreatedAt))
	}
	_, err := io.WriteString(w, terminal.Escaped(text))
	return err
}
