package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) tenants() *cobra.Command {
	return group(spec{
		use:   "tenants",
		short: "Manage tenants",
		long: `Manage tenants.

A tenant has its own principals, policies, plugins, agents and data, and sees nothing of
others. The tenant that mortise.yaml names is always there, and its owner alone may use
these commands.`,
	}, list(c, spec{anywhere: true, use: "list", short: "List the tenants", example: "  mortise tenants list"}, view.Tenants,
		func(ctx context.Context, q *ask) ([]host.Tenant, error) { return q.Tenants().List(ctx) }),
		show(c, spec{anywhere: true, use: "show TENANT", short: "Show a tenant, and where its configuration is", example: "  mortise tenants show acme"},
			func(ctx context.Context, q *ask) (host.Tenant, error) { return q.Tenants().Show(ctx, q.args[0]) }, view.Tenant),
		c.tenantsCreate(), c.tenantsDisable(), c.tenantsEnable())
}

func (c *command) tenantsCreate() *cobra.Command {
	return c.change(spec{
		anywhere: true, use: "create TENANT", short: "Create a tenant, with the directory of its configuration",
		long: `Create a tenant, with the directory of its configuration.

Its owner is the principal "owner", or who its own mortise.yaml names. With --tenant you
act as its owner, for example to create the first token.`,
		example: "  mortise tenants create acme",
	}, func(ctx context.Context, q *ask) (done, error) {
		t, err := q.Tenants().Create(ctx, q.args[0])
		return done{value: t, said: fmt.Sprintf("tenant %s is created; its mortise.yaml and its policies go to %s", t.Name, view.TenantPlace(t))}, err
	})
}

func (c *command) tenantsDisable() *cobra.Command {
	return c.change(spec{
		anywhere: true, use: "disable TENANT", short: "Disable a tenant", example: "  mortise tenants disable acme",
		long: `Disable a tenant: its tokens and sessions are refused within a second or two, and
nothing of it runs. What it has stays.`,
	}, func(ctx context.Context, q *ask) (done, error) {
		t, err := q.Tenants().Disable(ctx, q.args[0])
		return done{value: t, said: fmt.Sprintf("tenant %s is disabled", t.Name)}, err
	})
}

func (c *command) tenantsEnable() *cobra.Command {
	return c.change(spec{anywhere: true, use: "enable TENANT", short: "Enable a tenant", example: "  mortise tenants enable acme"},
		func(ctx context.Context, q *ask) (done, error) {
			t, err := q.Tenants().Enable(ctx, q.args[0])
			return done{value: t, said: fmt.Sprintf("tenant %s is served", t.Name)}, err
		})
}

// ofSite refuses --tenant where a command is about the site as a whole.
func (c *command) ofSite() error {
	if c.tenant == "" {
		return nil
	}
	return usage{fmt.Errorf("--tenant is not for this command, which is about the site as a whole")}
}
