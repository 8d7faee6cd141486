package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// Names returns everybody whom a configuration names, its own principal first
// and the others in the order of the alphabet.
func Names(c config.Config) []string {
	others := slices.Concat(c.Approvals.By, c.Policy.Configure, slices.Collect(maps.Keys(c.Policy.Consent)))
	for _, lists := range []map[string][]string{c.Policy.Groups, c.Policy.Roles} {
		for _, members := range lists {
			others = append(others, members...)
		}
	}
	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(name string) bool { return name == c.Principal })
	return append([]string{c.Principal}, others...)
}

// actAs sets the principal of this host to one that the configuration names;
// its default where name is empty.
//
// This prevents mistakes and is no security boundary: a user that can write the
// data directory can act for every principal in it.
func (a *App) actAs(name string) error {
	if name == "" {
		name = a.Config.Principal
	}
	var err error
	a.Principal, err = a.Member(name)
	return err
}

// Member returns a principal that the configuration names.
func (a *App) Member(name string) (plugin.Principal, error) {
	names := Names(a.Config)
	if !slices.Contains(names, name) {
		return plugin.Principal{}, plugin.Errorf(plugin.CodeUnauthenticated, "there is no principal %s; the configuration names %s", name, strings.Join(names, ", "))
	}
	p := ParseMember(name)
	p.Scopes = []string{"*"}
	return p, nil
}

// Owner reports whether the principal is the one that the configuration itself
// acts for: the user at the terminal.
func (a *App) Owner() bool { return MemberName(a.Principal) == a.Config.Principal }
