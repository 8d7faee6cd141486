package host

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// Names returns all principals that a configuration names, its own principal first
// and the others in the order of the alphabet.
func Names(c config.Config) []string {
	others := slices.Concat(c.Approvals.By, c.Policy.Configure, slices.Collect(maps.Keys(c.Policy.Consent)))
	for _, lists := range []map[string][]string{c.Policy.Groups, c.Policy.Roles} {
		for _, members := range lists {
			others = append(others, members...)
		}
	}
	for _, m := range c.Server.Machines {
		for _, rule := range m.Allow {
			others = append(others, rule.Principal)
		}
	}
	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(name string) bool { return name == c.Principal })
	return append([]string{c.Principal}, others...)
}

// memberOf returns one of the principals that a configuration names, with all scopes.
func memberOf(names []string, name string) (plugin.Principal, error) {
	if !slices.Contains(names, name) {
		return plugin.Principal{}, plugin.Errorf(plugin.CodeUnauthenticated, "there is no principal %s; the configuration names %s", name, strings.Join(names, ", "))
	}
	p := principal.Parse(name)
	p.Scopes = []string{"*"}
	return p, nil
}
