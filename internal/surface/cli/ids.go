package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// findCall returns the call that is meant.
func findCall(ctx context.Context, k client.Host, given, action string) (*host.CallRow, error) {
	return k.Calls().Find(ctx, given, action)
}

// findSession returns the session that is meant.
func findSession(ctx context.Context, k client.Host, given string) (host.Session, error) {
	return k.Sessions().Find(ctx, given)
}

// inSession does something with the session that is meant.
func inSession[T any](ctx context.Context, k client.Host, given string, do func(id string) (T, error)) (T, error) {
	return host.InSession(ctx, k.Sessions(), given, do)
}

// findArtifact returns the artifact of a session that is meant, by its id or its name.
func findArtifact(ctx context.Context, k client.Host, in, given string) (host.Artifact, error) {
	return k.Sessions().FindArtifact(ctx, in, given)
}

// offered is how many ids a shell is offered.
const offered = 50

const inOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// offers returns what a shell is offered; where the host cannot be read that is nothing.
func (c *command) offers(cmd *cobra.Command, from func(client.Offers, context.Context) ([]host.Offer, error)) (words []string) {
	c.completing(cmd, func(k client.Host) {
		all, _ := from(k.Offers(), cmd.Context())
		for _, one := range all {
			words = append(words, one.Value+"\t"+terminal.OneLine(one.About, 60))
		}
	})
	return words
}

// offering completes the first argument of a command.
func (c *command) offering(from func(client.Offers, context.Context) ([]host.Offer, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			words = c.offers(cmd, from)
		}
		return words, inOrder
	}
}

// ofAgent completes the first argument of a command as an agent, and the second as
// something of that agent.
func (c *command) ofAgent(from func(o client.Offers, ctx context.Context, agent string) ([]host.Offer, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return c.completeAgents(cmd, args, typed)
		}
		return c.offers(cmd, func(o client.Offers, ctx context.Context) ([]host.Offer, error) { return from(o, ctx, args[0]) }), inOrder
	}
}

// completeCalls offers the last calls.
func (c *command) completeCalls(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.offering(client.Offers.Calls)(cmd, args, typed)
}

// completing reads the store; where it cannot be read there is nothing to offer.
func (c *command) completing(cmd *cobra.Command, do func(k client.Host)) {
	_ = c.reach(cmd.Context(), inStore, func(q *ask) error {
		do(q.Host)
		return nil
	})
}

// readingStanding is keeping for how calls and plans stand: what a host was
// doing that was killed is settled first. Where that cannot be, what is there is
// shown all the same.
func (c *command) readingStanding(ctx context.Context, do func(k client.Host) error) error {
	if database, err := c.place().FindDatabase(); err == nil && c.home != "" {
		var damaged *setup.MalformedError
		if err := setup.SettleDead(ctx, c.home, database); errors.As(err, &damaged) {
			return err
		} else if err != nil {
			c.say("mortise: calls of a host that was killed may be shown as running: %s", view.Message(err))
		}
	}
	return c.keeping(ctx, do)
}
