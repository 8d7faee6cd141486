package app

import (
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// OpenPolicy returns the engine of the policies that a configuration read from
// path asks for. isolation is the wall that plugins run behind.
func OpenPolicy(c config.Config, path, isolation string) (*policy.Engine, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	o := policy.Options{Standing: standing(c), Isolation: isolation}
	if len(c.Policy.Files) > 0 {
		o.Sources = append(o.Sources, policy.Files(dir, c.Policy.Files...))
	}
	if len(c.Policy.Allow) > 0 {
		o.Sources = append(o.Sources, policy.Rules(c.Policy.Allow))
	}
	return policy.Open(o)
}

// standing returns what the configuration knows of principals. It speaks of
// its own tenant alone: a name means somebody else in another.
func standing(c config.Config) func(tenant string, who plugin.Principal) policy.Standing {
	known := map[string]policy.Standing{}
	for group, members := range c.Policy.Groups {
		for _, member := range members {
			s := known[member]
			s.Groups = append(s.Groups, group)
			known[member] = s
		}
	}
	for role, members := range c.Policy.Roles {
		for _, member := range members {
			s := known[member]
			s.Roles = append(s.Roles, role)
			known[member] = s
		}
	}
	return func(tenant string, who plugin.Principal) policy.Standing {
		if tenant != c.Tenant {
			return policy.Standing{}
		}
		return known[MemberName(who)]
	}
}

// MemberName is what the configuration calls a principal: a user by its id
// alone, others as service::id and agent::id.
func MemberName(who plugin.Principal) string {
	if who.Type == "" || who.Type == "user" {
		return who.ID
	}
	return who.Type + "::" + who.ID
}

// ParseMember reads what the configuration calls a principal.
func ParseMember(name string) plugin.Principal {
	for _, kind := range []string{"service", "agent", "user"} {
		if id, found := strings.CutPrefix(name, kind+"::"); found {
			return plugin.Principal{Type: kind, ID: id}
		}
	}
	return plugin.Principal{Type: "user", ID: name}
}
