// Package reload says what of a changed configuration a host that runs puts in force, which
// leaves what needs a restart.
package reload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// A Report is what became of a configuration that was read again. Both lists have keys as
// mortise.yaml writes them, such as server.rate, in the order of the alphabet.
type Report struct {
	Changed []string `json:"changed"` // in force now
	Restart []string `json:"restart"` // the file has them otherwise than this host, which goes on as it was until it is started again
}

// Merge returns the configuration that is in force after one was read in the place of
// another: the one before, with what may change while the host runs. What is not copied
// here needs a restart.
//
// A file that names another tenant or owner changes nothing of who may do what: its lists of
// people are meant for that host.
func Merge(was, read config.Config) config.Config {
	now := was
	if was.Tenant == read.Tenant && was.Principal == read.Principal {
		now.Policy = read.Policy
		now.Approvals.By, now.Approvals.Self = read.Approvals.By, read.Approvals.Self
	}
	now.Limits.InputBytes, now.Limits.OutputBytes, now.Limits.Calls = read.Limits.InputBytes, read.Limits.OutputBytes, read.Limits.Calls
	now.Quotas = read.Quotas
	now.Retention, now.Backups = read.Retention, read.Backups
	now.Log.Level = read.Log.Level
	now.MCP = read.MCP
	s := &now.Server
	s.Rate, s.Burst = read.Server.Rate, read.Server.Burst
	s.PublicURL, s.SignIn, s.Machines, s.SignInAge = read.Server.PublicURL, read.Server.SignIn, read.Server.Machines, read.Server.SignInAge
	s.TrustedProxies = read.Server.TrustedProxies
	if was.Server.Encrypted() && read.Server.Encrypted() {
		s.TLSCert, s.TLSKey = read.Server.TLSCert, read.Server.TLSKey
	}
	m := &now.Models
	if asked(was.Models) && asked(read.Models) {
		m.Light, m.Heavy = read.Models.Light, read.Models.Heavy
	}
	m.Allow, m.Budget, m.PerMinute, m.AtOnce, m.Timeout = read.Models.Allow, read.Models.Budget, read.Models.PerMinute, read.Models.AtOnce, read.Models.Timeout
	return now
}

// A Part is one tenant of a host that takes up a changed configuration.
type Part struct {
	Name string
	Was  config.Config // in force until now

	// Make makes what a configuration asks for beside what is in use. put has it in force.
	Make func(next config.Config) (put func(), err error)
}

// Prepare makes what a configuration that was read asks for: first of the site, then of its
// other tenants, whose own files tenant reads. put has all of it in force; until then, and on
// error, nothing has changed. next is the site's configuration as it will be.
func Prepare(read config.Config, parts []Part, tenant func(name string, site config.Config) (config.Config, error)) (next config.Config, r Report, put func(), err error) {
	var puts []func()
	for i, p := range parts {
		if i > 0 {
			if read, err = tenant(p.Name, next); err != nil {
				return next, r, nil, err
			}
		}
		now := Merge(p.Was, read)
		put, err := p.Make(now)
		if err != nil && i > 0 {
			err = fmt.Errorf("tenant %s: %w", p.Name, err)
		}
		if err != nil {
			return next, r, nil, err
		}
		its, err := Reported(p.Was, now, read)
		if err != nil {
			return next, r, nil, err
		}
		if puts = append(puts, put); i == 0 {
			next, r = now, its
			continue
		}
		r.Changed, r.Restart = append(r.Changed, ofTenant(p.Name, its.Changed)...), append(r.Restart, ofTenant(p.Name, its.Restart)...)
	}
	return next, r, func() {
		for _, put := range puts {
			put()
		}
	}, nil
}

// ofTenant returns those keys that the file of a tenant may have, with its name. What it has of
// the site's configuration is in the site's part of the report.
func ofTenant(name string, keys []string) (own []string) {
	for _, key := range keys {
		first, _, _ := strings.Cut(key, ".")
		if slices.Contains([]string{"principal", "policy", "approvals", "limits", "quotas"}, first) || key == "models.budget" {
			own = append(own, "tenant "+name+": "+key)
		}
	}
	return own
}

// asked reports whether there is a model that answers questions. The first one changes what
// the router offers, which is decided as a host opens.
func asked(m config.Models) bool { return len(m.Light)+len(m.Heavy) > 0 }

// Reported says what became of a configuration that was read: was was in force before, and
// now is.
func Reported(was, now, read config.Config) (r Report, err error) {
	if r.Changed, err = Differences(was, now); err != nil {
		return r, err
	}
	r.Restart, err = Differences(now, read)
	return r, err
}

// Differences returns the keys, of one or two names, that two configurations have
// otherwise.
func Differences(a, b config.Config) ([]string, error) {
	before, err := parts(a)
	if err != nil {
		return nil, err
	}
	after, err := parts(b)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for key := range maps.Keys(before) {
		if !bytes.Equal(before[key], after[key]) {
			keys = append(keys, key)
		}
	}
	for key := range maps.Keys(after) {
		if _, there := before[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// byName are members whose own members are names that the file gives: such a map is
// compared as a whole.
var byName = []string{"env", "settings"}

// parts returns what a configuration has by its keys.
func parts(c config.Config) (map[string]json.RawMessage, error) {
	top, err := members(c)
	if err != nil {
		return nil, fmt.Errorf("comparing configurations: %w", err)
	}
	top["database"] = json.RawMessage(c.Database.URL()) // which does not print its password
	all := map[string]json.RawMessage{}
	for name, value := range top {
		inner := map[string]json.RawMessage{}
		if slices.Contains(byName, name) || json.Unmarshal(value, &inner) != nil || inner == nil {
			all[name] = value
			continue
		}
		for key, value := range inner {
			all[name+"."+key] = value
		}
	}
	return all, nil
}

// members returns a value's members, as it writes itself.
func members(value any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	return all, json.Unmarshal(raw, &all)
}
