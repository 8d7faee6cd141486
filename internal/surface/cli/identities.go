package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) identities() *cobra.Command {
	cmd := &cobra.Command{Use: "identities", Short: "Link users of other systems to principals of this host"}
	cmd.AddCommand(c.identitiesList(), c.identitiesLink(), c.identitiesUnlink())
	return cmd
}

func (c *command) identitiesList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List who is who, with the scopes they have that way",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.linking(cmd, func(a *app.App, links host.Identities) error {
				all, err := links.List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"identities": all})
				}
				t := terminal.NewTable(c.out, "PROVIDER", "EXTERNAL ID", "ADAPTER", "PRINCIPAL", "SCOPES", "BY", "AT")
				for _, i := range all {
					t.Row(i.Provider, i.ExternalID, terminal.Dash(i.Adapter), i.Principal, terminal.Dash(strings.Join(i.Scopes, ",")), i.By, terminal.Clock(i.At))
				}
				return t.Flush()
			})
		},
	})
}

func (c *command) identitiesLink() *cobra.Command {
	var scopes []string
	var adapter string
	cmd := &cobra.Command{
		Use:   "link PROVIDER EXTERNAL_ID PRINCIPAL",
		Short: "Link a user of another system to a principal of this host",
		Long: `Link a user of another system to a principal of this host, in place of an earlier link.

PROVIDER and EXTERNAL_ID are what the adapter says; PRINCIPAL is a user's id or
service::id, whom mortise.yaml names. What comes in that way has the scopes given
here and no others: without --scope, only what asks for no permission can be done.

A link belongs to one adapter, which --adapter names: no other adapter may use it.
Without --adapter none may; the link then says only what the principal is called in
the other system, and who a sender of an agent's channel is.
It needs the right to configure.`,
		Example: `  mortise identities link slack T061EG9R6/W021FGA1Z ann --adapter slack_events --scope email:apply`,
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.linking(cmd, func(_ *app.App, links host.Identities) error {
				i, err := links.For(adapter).Link(cmd.Context(), args[0], args[1], args[2], scopes...)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(i)
				}
				with := "without scopes"
				if len(i.Scopes) > 0 {
					with = "with " + strings.Join(i.Scopes, ", ")
				}
				_, err = fmt.Fprintf(c.out, "%s on %s is %s, %s\n", terminal.Safe(i.ExternalID), terminal.Safe(i.Provider), terminal.Safe(i.Principal), with)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&adapter, "adapter", "", "the one adapter that may speak of them; none where it is not given")
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "what may be done that way, as in permissions of a manifest; * for everything (repeatable)")
	return c.withJSON(cmd)
}

func (c *command) identitiesUnlink() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "unlink PROVIDER EXTERNAL_ID",
		Short: "Take a link back; plans that were made by then go on",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.linking(cmd, func(_ *app.App, links host.Identities) error {
				i, err := links.Unlink(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				if c.json {
					return c.print(i)
				}
				_, err = fmt.Fprintf(c.out, "%s on %s is not %s any more\n", terminal.Safe(i.ExternalID), terminal.Safe(i.Provider), terminal.Safe(i.Principal))
				return err
			})
		},
	})
}

// linking opens the host and does something about identity links.
func (c *command) linking(cmd *cobra.Command, do func(*app.App, host.Identities) error) (err error) {
	a, err := c.open(cmd.Context())
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a, a.As(c.principal(a)).Identities())
}
