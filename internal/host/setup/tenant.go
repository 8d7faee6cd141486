package setup

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
)

// TenantConfig returns the configuration of a tenant beside the site's own, and where it is
// from. The directory of a tenant is made with it: without it the tenant's rules are lost, and
// the defaults are not what they were.
func TenantConfig(home, tenant string, site config.Config) (config.Config, string, error) {
	dir := host.TenantDir(home, tenant)
	path := filepath.Join(dir, config.FileName)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return config.Config{}, path, &Error{Err: fmt.Errorf("tenant %s has no directory %s: put back its configuration and policies, or make an empty directory if it has none", tenant, dir)}
	}
	c, err := config.LoadTenant(path, tenant, site)
	if err != nil {
		return c, path, &Error{Err: fmt.Errorf("the configuration of tenant %s cannot be used: %w", tenant, err)}
	}
	return c, path, nil
}
