// Package toolset gives agents what they have: the tools that the router finds for them,
// and the hooks of plugins, which are scripts, processes and webhooks.
package toolset

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/router"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/script"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/mount"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// Options are the parts of a host that a toolset needs.
type Options struct {
	Store    Store
	Registry *registry.Registry
	Runner   *process.Runner
	Policy   *policy.Engine
	Vault    *secret.Vault
	Jobs     *job.Queue
	Egress   egress.Grants
	Roots    *x509.CertPool                                               // who may vouch for hosts that an administrator mapped, beside the system's
	Models   bool                                                         // a model is configured
	Refused  func(t *plugin.Target, call *plugin.Call, why *plugin.Error) // puts on record what the program of a mounted server may not reach
	Recheck  time.Duration                                                // how old the list of a mounted server's tools may be when one is called; 30 s where it is 0
	Wake     func(ctx context.Context, kind, tenant, id string)
	Check    func(ctx context.Context, pkg plugin.Package) error // that a package's files are those that were registered
	Log      *slog.Logger

	// Lock makes the caller the only one who renews what a name stands for, among all hosts of the data.
	Lock func(ctx context.Context, name string) (release func(), err error)
}

// A Toolset offers the registered plugins to agents. Agents is set once there are any.
type Toolset struct {
	Options
	Agents   *agent.Agents
	Scripts  *Scripts
	Webhooks *Webhooks
	Mounted  *mount.Runner // of mounted servers
}

// New returns a toolset of these parts.
func New(o Options) *Toolset {
	e := &Toolset{Options: o}
	e.Scripts = &Scripts{t: e, programs: map[string]*script.Program{}}
	e.Webhooks = &Webhooks{t: e, slots: make(chan struct{}, webhooksAtOnce), Waits: outboxWaits, clients: map[string]*http.Transport{}}
	e.Mounted = e.mounted()
	return e
}

var _ agent.Plugins = (*Toolset)(nil)

// Hooked implements [agent.Plugins].
func (e *Toolset) Hooked(ctx context.Context, name, versions string) (agent.Hooked, error) {
	ref := name
	if versions != "" {
		ref += "@" + versions
	}
	t, err := e.Registry.Find(ctx, ref)
	if plugin.CodeOf(err) == plugin.CodeQuarantined && !e.guarded(ctx, name) {
		return agent.Hooked{Plugin: name}, nil // it may not be called, and guarded nothing
	}
	if err != nil {
		return agent.Hooked{}, err
	}
	return agent.Hooked{
		Plugin: name, Digest: digestOf(t), Target: t, Hears: len(t.Manifest.Hooks) > 0 || t.Manifest.Runner.Kind == "script", Guards: contract.Guards(t.Manifest),
	}, nil
}

// digestOf tells the code of a plugin from all other code.
func digestOf(t *plugin.Target) string { return t.Package.Digest + "/" + t.Manifest.Version }

// guarded reports whether a plugin that may not be used had to guard something,
// as far as that is known.
func (e *Toolset) guarded(ctx context.Context, name string) bool {
	shown, err := e.Registry.Show(ctx, name)
	return err != nil || contract.Guards(shown.Manifest)
}

// Hook implements [agent.Plugins].
func (e *Toolset) Hook(ctx context.Context, of agent.Owner, h agent.Hooked) (agent.Handlers, error) {
	switch kind := h.Target.Manifest.Runner.Kind; kind {
	case "script":
		return e.Scripts.open(ctx, of, h.Target)
	case "process":
		return processHooks{e, of, h.Target}, nil
	case "webhook":
		return webhookHooks{e.Webhooks, of, h.Target}, nil
	default:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s: a plugin that is reached by %s cannot hear of events here", h.Plugin, kind)
	}
}

// Offer implements [agent.Plugins]: what the router finds among what the agent
// has, and who it acts for may see; its memory too, as far as they may use that.
func (e *Toolset) Offer(ctx context.Context, ask agent.Ask) ([]agent.Tool, error) {
	all, err := e.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	var candidates []router.Candidate
	taken, unusable := map[string]bool{}, map[string]registry.Info{}
	for _, info := range all {
		if !slices.Contains(ask.Plugins, info.Name) || taken[info.Name] {
			continue
		}
		if info.State != "active" || info.Problem != "" {
			unusable[info.Name] = info
			continue
		}
		taken[info.Name] = true
		m := info.Plugin()
		for _, op := range e.visible(m, &ask) {
			if m.Contract.ListsTools && !op.AutoInvoke {
				if ask.Left != nil {
					ask.Left(agent.LeftOut{Operation: m.Name + "/" + op.Name, Why: "its manifest does not list it in chat_callable_ops"})
				}
				continue
			}
			if op.Kind == plugin.Tool || op.Kind == plugin.Operator {
				candidates = append(candidates, router.Candidate{Manifest: m, Operation: op})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unusable)) {
		if info := unusable[name]; !taken[name] && ask.Left != nil {
			why := "the plugin is " + string(info.State)
			if info.Problem != "" {
				why = "the plugin cannot be used: " + info.Problem
			}
			ask.Left(agent.LeftOut{Operation: name, Why: why + "; 'mortise plugins show " + name + "' has more"})
		}
	}
	var tools []agent.Tool
	for _, op := range e.visible(memoryManifest, &ask) { // first, so that no package takes their names; what is not resolved for them is not offered
		tools = append(tools, toolOf(memoryManifest, op))
	}
	for _, c := range chosen(ask, candidates, e.Models) {
		tools = append(tools, toolOf(c.Manifest, c.Operation))
	}
	return distinct(tools), nil
}

// visible returns the operations of a plugin that may be offered for who asks, and
// tells of those that may not.
func (e *Toolset) visible(m *plugin.Manifest, ask *agent.Ask) []*plugin.Operation {
	operations, _ := e.Policy.Visible(m, &ask.Call)
	for _, op := range m.Operations {
		if ask.Left == nil || slices.Contains(operations, op) || op.Kind != plugin.Tool && op.Kind != plugin.Operator {
			continue
		}
		bare := ask.Call
		bare.Input = nil
		d := e.Policy.Decide(&plugin.Target{Manifest: m, Operation: op}, &bare)
		why := "policy denies it"
		if len(d.Reasons) > 0 {
			why += ": " + d.Reasons[0]
		}
		ask.Left(agent.LeftOut{Operation: m.Name + "/" + op.Name, Why: fmt.Sprintf("%s; 'mortise policy explain %s/%s --as %s --actor %s' says what would allow it",
			why, m.Name, op.Name, principal.Name(ask.Call.Principal), ask.Call.Actor)})
	}
	return operations
}

// chosen returns the operations that fit a text, at most as many as are wanted.
// Where that is no more than there are, nothing has to be left out.
func chosen(ask agent.Ask, candidates []router.Candidate, model bool) []router.Candidate {
	if len(candidates) <= ask.Most {
		return candidates
	}
	answer := router.Route(router.Query{Text: ask.Text, Model: model}, candidates)
	var some []router.Candidate
	for _, choice := range answer.Included[:min(len(answer.Included), ask.Most)] {
		at := slices.IndexFunc(candidates, func(c router.Candidate) bool { return c.Name() == choice.Operation })
		some = append(some, candidates[at])
	}
	return some
}

// notInName is what models do not accept in the name of a tool.
var notInName = pattern.New(`[^A-Za-z0-9_-]+`)

// toolOf returns an operation as a model sees it.
func toolOf(m *plugin.Manifest, op *plugin.Operation) agent.Tool {
	name := notInName.ReplaceAllString(m.Name+"__"+op.Name, "_")
	description := op.Description
	if description == "" {
		description = m.Description
	}
	schema := op.Input
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	tool := agent.Tool{Name: name[:min(len(name), 64)], Operation: m.Name + "/" + op.Name, Description: description, Schema: schema}
	if p, prepares := contract.Of[contract.Preparer](m); prepares {
		tool.Input = func(written json.RawMessage) (json.RawMessage, error) { return p.FromModel(op, written) }
	}
	return tool
}

// distinct gives tools with one name a number each.
func distinct(tools []agent.Tool) []agent.Tool {
	seen := map[string]int{}
	for i := range tools {
		seen[tools[i].Name]++
		if n := seen[tools[i].Name]; n > 1 {
			number := fmt.Sprintf("_%d", n)
			tools[i].Name = tools[i].Name[:min(len(tools[i].Name), 64-len(number))] + number
		}
	}
	return tools
}
