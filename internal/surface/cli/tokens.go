package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) tokens() *cobra.Command {
	return group(spec{
		use:   "tokens",
		short: "Manage tokens for the API of 'mortise serve'",
		long: `Manage tokens for the API of 'mortise serve'.

Who presents a token acts as its principal, within the scopes and operations of the
token and within what policy lets the principal do.`,
	}, c.tokensList(), c.tokensCreate(), c.tokensRevoke())
}

func (c *command) tokensList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List your tokens, or all of them if you may configure mortise.tokens", example: "  mortise tokens list"},
		view.Tokens, func(ctx context.Context, q *ask) ([]host.Token, error) { return q.Tokens().List(ctx) })
}

func (c *command) tokensCreate() *cobra.Command {
	var n host.NewToken
	var endless bool
	return c.change(spec{
		anywhere: true,
		use:      "create NAME",
		short:    "Create a token and show it once",
		long: `Create a token and show it once. NAME says what it is for.

Scopes say what of the API it may be used for: read looks, run calls operations,
decide asks about tools that run elsewhere, approve decides about approvals,
configure changes what the host has, admin is all of these.
--operation restricts it to the operations named. It expires after 90 days, unless
--expires or --no-expiry says otherwise.

You see the token, so until its principal has rotated it over the API, it does not
approve what you ask for, and you do not approve what is asked for with it.
It needs the right to configure mortise.tokens.`,
		example: `  mortise tokens create ci --for service::ci --scope run --operation pattern_extractor/*
  mortise tokens create "ann's laptop" --for ann --scope read --scope approve --expires 720h`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&n.For, "for", "", "the principal that it stands for, whom mortise.yaml names; you where it is not given")
			cmd.Flags().StringArrayVar(&n.Scopes, "scope", nil, strings.Join(host.Scopes, ", ")+" (repeatable; read where it is not given)")
			cmd.Flags().StringArrayVar(&n.Operations, "operation", nil, "an operation that it may call, or PLUGIN/* (repeatable; all where it is not given)")
			cmd.Flags().DurationVar(&n.Life, "expires", host.TokenLife, "how long it is in force")
			cmd.Flags().BoolVar(&endless, "no-expiry", false, "it is in force until it is revoked")
			cmd.MarkFlagsMutuallyExclusive("expires", "no-expiry")
		},
		check: func([]string) error {
			if n.Life <= 0 {
				return usage{fmt.Errorf("--expires is longer than nothing; --no-expiry is for a token without an end")}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		n.Name = q.args[0]
		if endless {
			n.Life = -time.Second
		}
		t, secret, err := q.Tokens().Create(ctx, n)
		if err != nil {
			return done{}, err
		}
		value := struct {
			host.Token
			Secret string `json:"token"`
		}{t, secret}
		until := "it does not expire: revoke it when it is not needed any more"
		if !t.ExpiresAt.IsZero() {
			until = "it expires at " + t.ExpiresAt.Format(time.RFC3339)
		}
		if !c.json {
			c.say("token %s for %s with %s; %s", t.ID, t.Principal, strings.Join(t.Scopes, ", "), until)
		}
		return done{value: value, said: secret}, nil
	})
}

func (c *command) tokensRevoke() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "revoke ID", short: "Revoke a token", example: "  mortise tokens revoke 3x9kQ0aZbc",
	}, func(ctx context.Context, q *ask) (done, error) {
		t, err := q.Tokens().Revoke(ctx, q.args[0])
		return done{value: t, said: fmt.Sprintf("token %s (%s) is not valid any more", t.ID, t.Name)}, err
	})
}
