package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) users() *cobra.Command {
	return group(spec{
		use:   "users",
		short: "Manage users and their identities",
		long: `Manage users and their identities.

A user is a person: their principal, their user of the operating system, and their
accounts with the providers of server.sign_in in mortise.yaml. All of these, and the
tokens of the principal, count as one person where an approval takes a second.`,
	}, c.usersList(), c.usersShow(), c.usersCreate(), c.usersInvite(), c.usersDisable(), c.usersEnable(), c.usersUnlink())
}

func (c *command) usersList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List users", example: "  mortise users list"}, view.Users,
		func(ctx context.Context, q *ask) ([]host.User, error) { return q.Users().List(ctx) })
}

func (c *command) usersShow() *cobra.Command {
	return show(c, spec{anywhere: true, use: "show USER", short: "Show a user and their identities", long: "Show a user and their identities. USER is their principal or id.",
		example: "  mortise users show ann"},
		func(ctx context.Context, q *ask) (host.User, error) { return q.Users().Show(ctx, q.args[0]) }, view.User)
}

func (c *command) usersCreate() *cobra.Command {
	var osUser string
	return c.change(spec{
		anywhere: true,
		use:      "create PRINCIPAL",
		short:    "Create the user of a principal that mortise.yaml names",
		long: `Create the user of a principal that mortise.yaml names.

--os-user names their user of the operating system, who then acts at the command line as
that principal, and not with --as. The user of the owner is the owner's to create.
It needs the right to configure mortise.users.`,
		example: "  mortise users create ann --os-user ann",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&osUser, "os-user", "", "the name or number of their user of the operating system")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		u, err := q.Users().Create(ctx, q.args[0], osUser)
		return done{value: u, said: fmt.Sprintf("user %s is %s; 'mortise users invite %s' lets them sign in", u.ID, u.Principal, u.Principal)}, err
	})
}

func (c *command) usersInvite() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "invite USER",
		short:    "Print a one-time invitation link for a user",
		long: `Print a one-time invitation link for a user, within 24 hours.

Send it to them alone: who opens it and signs in is that user from then on. A link that
was printed before ends.`,
		example: "  mortise users invite ann",
	}, func(ctx context.Context, q *ask) (done, error) {
		u, secret, err := q.Users().Invite(ctx, q.args[0])
		if err != nil {
			return done{}, err
		}
		base, err := c.publicBase(q)
		if err != nil {
			return done{}, err
		}
		link := base + "/auth/invitation#" + secret
		value := struct {
			host.User
			Link string `json:"link"`
		}{u, link}
		if !c.json {
			c.say("for %s, once, until %s; who opens it and signs in is %s from then on", u.Principal, view.Moment(u.InvitedUntil), u.Principal)
		}
		return done{value: value, said: link}, nil
	})
}

func (c *command) usersDisable() *cobra.Command {
	return c.change(spec{anywhere: true, use: "disable USER", short: "Disable a user: end their sessions and refuse their tokens", example: "  mortise users disable ann"},
		func(ctx context.Context, q *ask) (done, error) {
			u, err := q.Users().Disable(ctx, q.args[0])
			return done{value: u, said: u.Principal + " is signed out everywhere and cannot sign in"}, err
		})
}

func (c *command) usersEnable() *cobra.Command {
	return c.change(spec{anywhere: true, use: "enable USER", short: "Enable a disabled user", example: "  mortise users enable ann"},
		func(ctx context.Context, q *ask) (done, error) {
			u, err := q.Users().Enable(ctx, q.args[0])
			return done{value: u, said: u.Principal + " can sign in"}, err
		})
}

func (c *command) usersUnlink() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "unlink USER IDENTITY",
		short:    "Remove an identity from a user",
		long: `Remove an identity from a user, and end their sessions.

The identity stays theirs where an approval takes a second person, and no other user can
have it.`,
		example: "  mortise users unlink ann os:1000",
	}, func(ctx context.Context, q *ask) (done, error) {
		u, err := q.Users().Unlink(ctx, q.args[0], q.args[1])
		return done{value: u, said: fmt.Sprintf("%s signs %s in no more", q.args[1], u.Principal)}, err
	})
}
