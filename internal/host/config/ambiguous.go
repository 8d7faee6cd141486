package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Ambiguous returns what the configuration says of principals that its reader may
// take for something else: a name without a type, which is a user's, where a
// service or an agent of that name is named as well.
func (c *Config) Ambiguous() (warnings []string) {
	typed := map[string]string{} // by id
	names := c.principals()
	for _, at := range names {
		for _, name := range at.names {
			if kind, id, is := strings.Cut(name, "::"); is && kind != "user" {
				typed[id] = name
			}
		}
	}
	for _, at := range names {
		for _, name := range at.names {
			if other := typed[name]; other != "" {
				warnings = append(warnings, fmt.Sprintf("%s: %s means the user of that name, and %s is another principal: write user::%s, or %s", at.key, name, other, name, other))
			}
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// A place is where principals are named.
type place struct {
	key   string
	names []string
}

// principals are all places of the configuration that name principals.
func (c *Config) principals() []place {
	places := []place{{"principal", []string{c.Principal}}, {"approvals.by", c.Approvals.By}, {"policy.configure", c.Policy.Configure}, {"quotas.principals", slices.Collect(maps.Keys(c.Quotas.Principals))}}
	for i, rule := range c.Policy.Allow {
		places = append(places, place{fmt.Sprintf("policy.allow, rule %d", i+1), rule.Principals})
	}
	for who := range c.Policy.Consent {
		places = append(places, place{"policy.consent", []string{who}})
	}
	for key, lists := range map[string]map[string][]string{"policy.groups": c.Policy.Groups, "policy.roles": c.Policy.Roles} {
		for name, members := range lists {
			places = append(places, place{key + "." + name, members})
		}
	}
	return places
}
