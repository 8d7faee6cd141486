package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) identities() *cobra.Command {
	return group(spec{use: "identities", short: "Link users of other systems to principals of this host"},
		c.identitiesList(), c.identitiesLink(), c.identitiesUnlink())
}

func (c *command) identitiesList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List linked identities and their scopes", example: "  mortise identities list"}, view.Identities,
		func(ctx context.Context, q *ask) ([]host.Identity, error) { return q.Identities().List(ctx) })
}

func (c *command) identitiesLink() *cobra.Command {
	var scopes []string
	var adapter string
	return c.change(spec{
		anywhere: true,
		use:      "link PROVIDER EXTERNAL_ID PRINCIPAL",
		short:    "Link a user of another system to a principal of this host",
		long: `Link a user of another system to a principal of this host, in place of an earlier link.

PROVIDER and EXTERNAL_ID are what the adapter says; PRINCIPAL is a user's id or
service::id, whom mortise.yaml names. What comes in that way has the scopes given
here and no others: without --scope, only what asks for no permission can be done.

A link belongs to one adapter, which --adapter names: no other adapter may use it.
Without --adapter none may; the link then says only what the principal is called in
the other system, and who a sender of an agent's channel is.
It needs the right to configure.`,
		example: `  mortise identities link slack T061EG9R6/W021FGA1Z ann --adapter slack_events --scope email:apply`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&adapter, "adapter", "", "the one adapter that may speak of them; none where it is not given")
			cmd.Flags().StringArrayVar(&scopes, "scope", nil, "what may be done that way, as in permissions of a manifest; * for everything (repeatable)")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		i, err := q.Identities().LinkFor(ctx, adapter, q.args[0], q.args[1], q.args[2], scopes...)
		with := "without scopes"
		if len(i.Scopes) > 0 {
			with = "with " + strings.Join(i.Scopes, ", ")
		}
		return done{value: i, said: fmt.Sprintf("%s on %s is %s, %s", i.ExternalID, i.Provider, i.Principal, with)}, err
	})
}

func (c *command) identitiesUnlink() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "unlink PROVIDER EXTERNAL_ID",
		short:    "Remove an identity link",
		example:  "  mortise identities unlink slack T061EG9R6/W021FGA1Z",
	}, func(ctx context.Context, q *ask) (done, error) {
		i, err := q.Identities().Unlink(ctx, q.args[0], q.args[1])
		return done{value: i, said: fmt.Sprintf("%s on %s is not %s any more", i.ExternalID, i.Provider, i.Principal)}, err
	})
}
