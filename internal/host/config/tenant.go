package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// TenantOwner is the principal that owns a tenant where its configuration names no other.
const TenantOwner = "owner"

// A tenantFile is what the configuration of one tenant may say. All else is the site's.
type tenantFile struct {
	Principal string          `yaml:"principal"` // who owns the tenant
	Policy    Policy          `yaml:"policy"`
	Approvals tenantApprovals `yaml:"approvals"`
	Limits    Limits          `yaml:"limits"`
	Quotas    Quotas          `yaml:"quotas"`
	Retention Retention       `yaml:"retention"`
	Models    struct {
		Budget Budget `yaml:"budget"`
	} `yaml:"models"`
}

type tenantApprovals struct {
	By     []string `yaml:"by"`
	Expire Duration `yaml:"expire"`
}

// LoadTenant returns the configuration of a tenant beside the site's own: what the file at
// path says, and of the site's what [ofSite] takes over. A key that is the site's is refused.
// Where there is no file the tenant has the defaults of the site.
func LoadTenant(path, name string, site Config) (Config, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	if err != nil {
		return Config{}, err
	}
	if len(raw) > maxFile {
		return Config{}, fmt.Errorf("%s: larger than %d bytes", path, maxFile)
	}
	c, err := parseTenant(raw, name, site)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func parseTenant(raw []byte, name string, site Config) (Config, error) {
	var keys map[string]any
	if err := yaml.Unmarshal(raw, &keys); err != nil {
		return Config{}, errors.New(hide(strings.TrimSpace(yaml.FormatError(err, false, true))))
	}
	own := keysOf(reflect.TypeFor[tenantFile]())
	for _, key := range keysOf(reflect.TypeFor[Config]()) {
		if _, there := keys[key]; there && !slices.Contains(own, key) {
			return Config{}, fmt.Errorf("%s is the site's: write it in %s of the data directory; a tenant has %s", key, FileName, strings.Join(own, ", "))
		}
	}
	c := ofSite(site)
	base := Default()
	f := tenantFile{Principal: TenantOwner, Policy: Policy{Default: site.Policy.Default}, Approvals: tenantApprovals{Expire: base.Approvals.Expire}, Limits: site.Limits, Retention: site.Retention}
	if _, own := keys["quotas"]; !own {
		f.Quotas = site.Quotas
		f.Quotas.Principals = nil // which are the site's
	}
	f.Models.Budget = site.Models.Budget
	if len(keys) > 0 {
		if err := yaml.UnmarshalWithOptions(raw, &f, yaml.Strict()); err != nil {
			return Config{}, errors.New(hide(strings.TrimSpace(yaml.FormatError(err, false, true))))
		}
	}
	if f.Limits.FrameBytes != site.Limits.FrameBytes {
		return Config{}, fmt.Errorf("limits.frame_bytes is the site's: write it in %s of the data directory", FileName)
	}
	if f.Limits.Calls > site.Limits.Calls {
		return Config{}, fmt.Errorf("limits.calls is at most the site's, %d", site.Limits.Calls)
	}
	for _, list := range []*[]string{&f.Policy.Configure, &f.Approvals.By} {
		if *list == nil {
			*list = []string{f.Principal}
		}
	}
	c.Tenant, c.Principal, c.Policy, c.Limits, c.Quotas, c.Retention, c.Models.Budget = name, f.Principal, f.Policy, f.Limits, f.Quotas, f.Retention, f.Models.Budget
	c.Approvals = Approvals{By: f.Approvals.By, Expire: f.Approvals.Expire}
	return c, c.check()
}

// ofSite returns the default configuration, with the keys that every tenant shares with the site.
// No shared key names people, accounts, policies, programs, variables or private addresses. A key
// that is added to Config is not shared until it is added here.
func ofSite(site Config) Config {
	c := Default()
	c.Database, c.Blobs, c.Secrets = site.Database, site.Blobs, site.Secrets
	c.Ledger, c.Retention, c.Agents, c.Limits = site.Ledger, site.Retention, site.Agents, site.Limits
	c.Processes, c.Sandbox, c.Interpreters = site.Processes, site.Sandbox, site.Interpreters
	c.Models, c.MCP.Recheck = site.Models, site.MCP.Recheck
	c.Egress.CAFile = site.Egress.CAFile
	c.Server.SignInAge = site.Server.SignInAge
	subscribe := c.Plugins.Subscribe
	c.Plugins = site.Plugins
	c.Plugins.Subscribe = subscribe
	c.Policy.Default = site.Policy.Default
	return c
}

// keysOf returns the names of the members of a part of the configuration.
func keysOf(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	return names
}
