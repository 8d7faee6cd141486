package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) approvals() *cobra.Command {
	return group(spec{
		use:   "approvals",
		short: "Approve or deny pending calls and plans",
		long: `Approve or deny pending calls and plans.

Policy says what has to wait, and who may agree: a permit for the action approve, or
approvals.by in mortise.yaml. The requester cannot agree, and no agent can; with
approvals.self the owner can at a terminal. --as NAME acts as another principal whom
the configuration names. It prevents mistakes, not abuse: a user who can write the
data directory can act as any principal in it.

An approval is for one exact call or plan, and for once. Ids may be abbreviated to
their beginning, or to the last six characters or more.`,
	}, c.approvalsList(), c.approvalsShow(), c.approvalsApprove(), c.approvalsDeny())
}

func (c *command) approvalsList() *cobra.Command {
	var all bool
	var last int
	return list(c, spec{
		anywhere: true,
		use:      "list", short: "List approvals that you requested or may decide", example: "  mortise approvals list --all",
		flags: func(cmd *cobra.Command) { cmd.Flags().BoolVar(&all, "all", false, "those that were decided too") },
		limit: &limit{"last", &last, 50, "how many approvals"}, watch: true,
	}, view.Approvals, func(ctx context.Context, q *ask) ([]*host.Question, error) {
		return q.Approvals().Questions(ctx, all, last)
	})
}

func (c *command) approvalsShow() *cobra.Command {
	return c.command(spec{anywhere: true, use: "show ID", short: "Show everything that an approval is bound to", example: "  mortise approvals show 3f21aa", complete: c.offering(client.Offers.Approvals)},
		func(ctx context.Context, q *ask) error {
			asked, err := q.Approvals().Asked(ctx, q.args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.print(asked.Question)
			}
			if err := view.Question(c.out, asked.Question); err != nil {
				return err
			}
			if asked.Row.State == host.ApprovalOpen {
				c.say("\n%s", c.toDecide(q.Who(), &asked))
			}
			return nil
		})
}

func (c *command) approvalsApprove() *cobra.Command {
	var reason string
	var noWait, yes bool
	return c.command(spec{
		anywhere: true,
		use:      "approve ID|TOKEN",
		short:    "Approve one call or plan, then run the call and show its result",
		long: `Agree to one call or plan. At a terminal everything that the approval is bound to
is shown first, and you are asked; --yes agrees without that. A call goes on in the
process that waits for it or in 'mortise serve', and otherwise here. Its result is
shown, and the exit status is that of 'mortise run'. What another program runs is
agreed to and not waited for.`,
		example:  `  mortise approvals approve 3f21aa --reason "agreed by phone"`,
		complete: c.offering(client.Offers.Approvals),
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &reason)
			cmd.Flags().BoolVar(&noWait, "no-wait", false, "decide, and leave the call to others")
			cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve without being shown the question")
		},
	}, func(ctx context.Context, q *ask) error {
		if !yes && c.own() {
			if err := c.consent(ctx, q, q.args[0]); err != nil {
				return err
			}
		}
		asked, err := c.decide(ctx, q, q.args[0], true, reason)
		if err != nil {
			return err
		}
		if noWait || asked.Row.SubjectKind == host.SubjectPlan || host.RunsElsewhere(asked.Question.Operation) {
			return c.decided(&asked)
		}
		if !c.json {
			c.say("approved; the call goes on")
		}
		leave(ctx, q, asked.Row.SubjectID)
		res, err := c.await(ctx, q, asked.Row.SubjectID, 0, nil)
		if err := c.closeBooks(q, true); err != nil {
			return err
		}
		return c.answer("", res, err)
	})
}

func (c *command) approvalsDeny() *cobra.Command {
	var reason string
	return c.command(spec{
		anywhere: true,
		use:      "deny ID|TOKEN",
		short:    "Deny one call or plan; the requester may withdraw it",
		example:  `  mortise approvals deny 3f21aa --reason "the wrong address"`,
		complete: c.offering(client.Offers.Approvals),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&reason, "reason", "", "why, for the record and for the requester")
		},
	}, func(ctx context.Context, q *ask) error {
		asked, err := c.decide(ctx, q, q.args[0], false, reason)
		if err != nil {
			return err
		}
		return c.decided(&asked)
	})
}

// consent shows a person at a terminal everything that an open approval is bound to, and asks
// whether they agree. It returns nil if they do, and if the approval is not open, of which the
// host then says why it cannot be decided.
func (c *command) consent(ctx context.Context, q *ask, given string) error {
	if host.IsApprovalToken(given) {
		return usage{errors.New("a token does not say what it approves: at a terminal, name the approval by its ID or add --yes")}
	}
	asked, err := q.Approvals().Asked(ctx, given)
	if err != nil || asked.Row.State != host.ApprovalOpen {
		return err
	}
	if err := view.Question(c.errs, asked.Question); err != nil {
		return err
	}
	yes, err := terminal.Confirm(ctx, bufio.NewReader(io.LimitReader(c.in, 1<<16)), c.errs, "Approve?")
	if err != nil || yes {
		return err
	}
	return plugin.Errorf(plugin.CodeCancelled, "approval %s stays open; 'mortise approvals deny %s' denies it", asked.Row.ID, asked.Row.ID)
}

// decide answers an approval as the acting principal, and says so where the answer counts
// only because the configuration takes a name's word.
func (c *command) decide(ctx context.Context, q *ask, given string, approve bool, reason string) (host.Asked, error) {
	asked, err := q.Approvals().Answer(ctx, given, approve, c.own(), reason)
	if err == nil && asked.Same {
		c.say("approvals.trust_as: %s asked for this as %s and approved it as %s; no second person is known of", host.OSUserName(), asked.Row.Requester, q.Who().Principal)
	}
	return asked, err
}

// decided shows how an approval stands after an answer.
func (c *command) decided(asked *host.Asked) error {
	if c.json {
		return c.print(asked.Question)
	}
	view.Decided(c.out, c.errs, asked.Question)
	return nil
}

// grace is how long a caller that already waits for the call has to resume it:
// a little more than its polling interval.
const grace = 300 * time.Millisecond

// leave lets others go on with a call first, where this process could.
func leave(ctx context.Context, q *ask, id string) {
	for end := time.Now().Add(grace); q.app != nil && time.Now().Before(end) && ctx.Err() == nil; {
		row, err := q.app.Ledger.Call(ctx, q.app.Config.Tenant, id)
		if err != nil || row == nil || row.State != host.CallQueued {
			return
		}
		host.Pause(ctx, 20*time.Millisecond)
	}
}
