package config

import (
	"errors"
	"strings"
	"testing"
)

// A profile that cannot be meant is refused, with where it stands.
func TestProfilesOfMCP(t *testing.T) {
	t.Parallel()
	one := func(p MCPProfile) MCP { return MCP{Profiles: map[string]MCPProfile{"one": p}} }
	for want, m := range map[string]MCP{
		"":                                    one(MCPProfile{List: "all", Operations: []string{"mail/*", "mail/send"}, Names: "operation"}),
		"is no name of a profile":             {Profiles: map[string]MCPProfile{"a b": {}}},
		"mcp.profiles.one.list is \"some\"":   one(MCPProfile{List: "some"}),
		"mcp.profiles.one.for is the request": one(MCPProfile{List: "routed"}),
		"mcp.profiles.one.operations has \"mail\"":                   one(MCPProfile{Operations: []string{"mail"}}),
		"mcp.profiles.one.names is \"short\"":                        one(MCPProfile{Operations: []string{"mail/*"}, Names: "short"}),
		"so that operations have to be of one":                       one(MCPProfile{Operations: []string{"mail/*", "notes/*"}, Names: "operation"}),
		"leaves out the name of the plugin, so that operations have": one(MCPProfile{Names: "operation"}),
	} {
		err := errors.Join(m.check()...)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
