package setup

import (
	"fmt"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
)

// TenantConfig returns the configuration of a tenant beside the site's own, and where it is
// from.
func TenantConfig(home, tenant string, site config.Config) (config.Config, string, error) {
	path := filepath.Join(host.TenantDir(home, tenant), config.FileName)
	c, err := config.LoadTenant(path, tenant, site)
	if err != nil {
		return c, path, &Error{Err: fmt.Errorf("the configuration of tenant %s cannot be used: %w", tenant, err)}
	}
	return c, path, nil
}
