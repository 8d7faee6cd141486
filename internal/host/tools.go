package host

import (
	"context"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// A Tool is an operation that a principal may run.
type Tool struct {
	*plugin.Target
	Verdict plugin.Verdict // without arguments; deny where it depends on them
}

// Tools returns the operations that they may run, and that their token is for, by name: of
// each plugin those of the version that a call without one gets. What is hidden may be
// named, and is not here.
func (p Plugins) Tools(ctx context.Context) ([]Tool, error) {
	all, err := p.registry.Known(ctx) // the highest version first
	if err != nil {
		return nil, err
	}
	tools, taken := []Tool{}, map[string]bool{}
	for _, info := range all {
		if info.State != registry.Active || info.Problem != "" || taken[info.Name] {
			continue
		}
		taken[info.Name] = true
		for _, op := range info.Plugin().Operations {
			t := &plugin.Target{Manifest: info.Plugin(), Operation: op}
			if tool, runs := p.tool(t); runs && !op.Hidden && op.Kind != plugin.Adapter {
				tools = append(tools, tool)
			}
		}
	}
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name(), b.Name()) })
	return tools, nil
}

// Tool returns the operation of a name, as plugin/operation, where they may run it.
func (p Plugins) Tool(ctx context.Context, name string) (Tool, bool) {
	t, err := p.registry.ResolveFor(ctx, name, p.sees)
	if err != nil || t.Operation.Kind == plugin.Adapter {
		return Tool{}, false
	}
	return p.tool(t)
}

func (p Plugins) tool(t *plugin.Target) (Tool, bool) {
	if p.caller != nil && !p.caller.Covers(t.Name()) || !holds(p.by, t.Operation.Permissions) {
		return Tool{}, false
	}
	call := p.g.call(p.by)
	call.Origin = plugin.OriginMCP
	v, some := p.g.Policy.Runnable(t, call)
	return Tool{t, v}, some
}
