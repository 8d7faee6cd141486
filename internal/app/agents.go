package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/scrub"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// openAgents returns the agents of a host.
func (a *App) openAgents() *agent.Agents {
	o := agent.Options{
		Store: a.own, Kernel: a.Kernel, Plugins: a.tools, Log: a.log, Clean: scrub.Runner{Scrubber: a.scrubber}.Hook, Secrets: a.channelSecrets, Sender: a.sender,
		Open: func(ctx context.Context, tenant, name string) (string, error) {
			s, err := a.Sessions.Create(ctx, tenant, session.Open{Name: name, Kind: session.Conversation})
			return s.ID, err
		},
		Wake: func(ctx context.Context, tenant, session string) { a.wake(ctx, job.Conversation, tenant, session) },
		Outcome: func(ctx context.Context, tenant, call string) (plugin.Result, error) {
			return a.Kernel.Await(ctx, tenant, call)
		},
		Notify: func(ctx context.Context, tenant, id string) {
			a.wake(ctx, job.Webhook, tenant, id+"/"+agent.OwnBus)
		},
		Closed: func(ctx context.Context, tenant, id string) error { return a.Sessions.Close(ctx, tenant, id) },
	}
	if a.Models != nil {
		o.Model = a.Models
	}
	return agent.New(o)
}

// channelSecrets returns what deliveries of a channel prove themselves with: the
// secret of that name, and NAME.next while it is replaced.
func (a *App) channelSecrets(ctx context.Context, tenant, name string) ([]string, error) {
	var values []string
	for _, n := range []string{name, name + ".next"} {
		value, found, err := a.Vault.Find(ctx, secret.Need{Tenant: tenant, Plugin: secret.Anyone, Name: n, Scope: plugin.SecretOfSystem})
		if err != nil {
			return nil, err
		}
		if found {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the channel's secret is not set; mortise secrets set %s --system sets it", name)
	}
	return values, nil
}

// sender maps the sender of a channel message to a principal of this host.
func (a *App) sender(ctx context.Context, tenant, channel, id string) (plugin.Principal, string, string, error) {
	row, err := a.own.Identity(ctx, tenant, channel, id)
	if err == nil {
		row, err = a.guard.Linked(ctx, row)
	}
	if err != nil {
		return plugin.Principal{}, "", "", err
	}
	who, role, asker := host.Sender(row, channel, id)
	return who, role, asker, nil
}
