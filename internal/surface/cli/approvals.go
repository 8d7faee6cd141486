package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) approvals() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Decide about what waits for a person",
		Long: `Decide about what waits for a person.

Policy says what has to wait, and who may agree: a permit for the action approve, or
approvals.by in mortise.yaml. The requester cannot agree, and no agent can; with
approvals.self the owner can at a terminal. --as NAME acts as another principal whom
the configuration names. It prevents mistakes, not abuse: a user who can write the
data directory can act as any principal in it.

An approval is for one exact call or plan, and for once. Ids may be abbreviated to
their beginning, or to the last six characters or more.`,
	}
	cmd.AddCommand(c.approvalsList(), c.approvalsShow(), c.approvalsApprove(), c.approvalsDeny())
	return cmd
}

// withHost opens the host for a command and closes it after.
func (c *command) withHost(ctx context.Context, do func(a *app.App) error) (err error) {
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a)
}

func (c *command) approvalsList() *cobra.Command {
	var all bool
	var last int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what waits for a person, as far as you asked for it or may decide it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 1 {
				return usage{errors.New("--last is at least 1")}
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				f := store.ApprovalFilter{Tenant: a.Config.Tenant, State: store.ApprovalOpen}
				if all {
					f.State = ""
				}
				questions, err := c.visible(cmd.Context(), a, f, last)
				if err != nil {
					return err
				}
				return c.listQuestions(questions)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that were decided too")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many approvals")
	return c.withJSON(cmd)
}

// visible returns the newest approvals that the principal may see.
func (c *command) visible(ctx context.Context, a *app.App, f store.ApprovalFilter, last int) ([]*host.Question, error) {
	questions := []*host.Question{}
	f.Limit = page
	for seen := 0; seen < lookBack; seen += page {
		rows, err := a.Store.Approvals(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if a.Host.Approvers().MaySee(ctx, &rows[i], a.Principal) != nil {
				continue
			}
			q, err := a.Host.Approvers().Question(ctx, &rows[i])
			if err != nil {
				return nil, err
			}
			if questions = append(questions, q); len(questions) == last {
				return questions, nil
			}
		}
		if len(rows) < page {
			break
		}
		f.Before = rows[len(rows)-1].ID
	}
	return questions, nil
}

func (c *command) listQuestions(questions []*host.Question) error {
	if c.json {
		return c.print(map[string]any{"approvals": questions})
	}
	if len(questions) == 0 {
		c.say("nothing waits for approval that you asked for or may decide")
		return nil
	}
	t := terminal.NewTable(c.out, "APPROVAL", "STATE", "WHAT", "REQUESTER", "AGE", "EXPIRES", "WHY")
	t.Fit = c.width()
	for _, q := range questions {
		expires := "-"
		if q.State == store.ApprovalOpen {
			expires = "in " + terminal.Short(time.Until(q.ExpiresAt))
		}
		t.Row(q.ID, string(q.State), whatOf(q), q.Requester, terminal.Short(time.Since(q.CreatedAt)), expires, terminal.OneLine(q.Why, 500))
	}
	return t.Flush()
}

// whatOf names what a question is about.
func whatOf(q *host.Question) string {
	if q.SubjectKind == store.SubjectPlan {
		return fmt.Sprintf("plan of %d steps", len(q.Steps))
	}
	return q.Operation + "@" + q.Version
}

func (c *command) approvalsShow() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "show ID",
		Short:             "Show everything that an approval is bound to",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				row, err := findApproval(cmd.Context(), a.As(a.Principal), args[0], "see")
				if err != nil {
					return err
				}
				q, err := a.Host.Approvers().Question(cmd.Context(), row)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(q)
				}
				if err := c.showQuestion(c.out, q); err != nil {
					return err
				}
				if row.State == store.ApprovalOpen {
					c.say("\n%s", c.toDecide(cmd.Context(), a, row))
				}
				return nil
			})
		},
	})
}

func (c *command) approvalsApprove() *cobra.Command {
	var reason string
	var noWait bool
	cmd := &cobra.Command{
		Use:   "approve ID|TOKEN",
		Short: "Agree to one call or plan; the call goes on, and its end is shown",
		Long: `Agree to one call or plan. A call goes on in the process that waits for it or in
'mortise serve', and otherwise here. Its result is shown, and the exit status is that
of 'mortise run'.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withHost(ctx, func(a *app.App) error {
				row, err := c.decide(ctx, a, args[0], true, reason)
				if err != nil {
					return err
				}
				if noWait || row.SubjectKind == store.SubjectPlan {
					return c.decided(ctx, a, row)
				}
				if !c.json {
					c.say("approved; the call goes on")
				}
				leave(ctx, a, row.SubjectID)
				res, err := c.await(ctx, a, row.SubjectID, 0, nil)
				if err := c.closeBooks(a, true); err != nil {
					return err
				}
				return c.answer("", res, err)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "decide, and leave the call to others")
	return c.withJSON(cmd)
}

func (c *command) approvalsDeny() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "deny ID|TOKEN",
		Short:             "Refuse one call or plan; the requester may do so too",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				row, err := c.decide(cmd.Context(), a, args[0], false, reason)
				if err != nil {
					return err
				}
				return c.decided(cmd.Context(), a, row)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record and for the requester")
	return c.withJSON(cmd)
}

// decide answers an approval as the acting principal.
func (c *command) decide(ctx context.Context, a *app.App, given string, approve bool, reason string) (*store.ApprovalRow, error) {
	answer := approval.Answer{Tenant: a.Config.Tenant, Approve: approve, By: a.Principal, Asker: host.OSUser(), Reason: reason, Own: c.own(a)}
	if isToken(given) {
		answer.Token = given
	} else {
		row, err := findApproval(ctx, a.As(a.Principal), given, "decide")
		if err != nil {
			return nil, err
		}
		answer.ID = row.ID
	}
	return c.give(ctx, a, answer)
}

// give gives an answer, and says so where it counts only because the
// configuration takes a name's word.
func (c *command) give(ctx context.Context, a *app.App, answer approval.Answer) (*store.ApprovalRow, error) {
	row, err := a.Approvals.Decide(ctx, answer)
	if err == nil && a.Config.Approvals.TrustAs && approval.Same(row, answer) {
		c.say("approvals.trust_as: %s asked for this as %s and approved it as %s; no second person is known of", host.OSUserName(), row.Requester, principal.Name(a.Principal))
	}
	return row, err
}

// isToken reports whether text has the form of what approvers are given.
func isToken(text string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(raw) == 32
}

// decided shows how an approval stands after an answer.
func (c *command) decided(ctx context.Context, a *app.App, row *store.ApprovalRow) error {
	q, err := a.Host.Approvers().Question(ctx, row)
	if err != nil {
		return err
	}
	if c.json {
		return c.print(q)
	}
	fmt.Fprintf(c.out, "%s %s\n", q.ID, q.State)
	switch {
	case row.State == store.ApprovalDenied:
		c.say("%s %s does not run", row.SubjectKind, row.SubjectID)
	case row.SubjectKind == store.SubjectPlan:
		c.say("'mortise plans show %s' follows it; 'mortise serve' runs it, or 'mortise plans resume %s --wait' here", row.SubjectID, row.SubjectID)
	default:
		c.say("'mortise calls wait %s' goes on with it, unless another process does", row.SubjectID)
	}
	return nil
}

// grace is how long a caller that already waits for the call has to resume it:
// a little more than its polling interval.
const grace = lookLast + 100*time.Millisecond

// leave lets others go on with a call first.
func leave(ctx context.Context, a *app.App, id string) {
	for end := time.Now().Add(grace); time.Now().Before(end) && ctx.Err() == nil; {
		row, err := a.Ledger.Call(ctx, a.Config.Tenant, id)
		if err != nil || row == nil || row.State != store.CallQueued {
			return
		}
		pauseFor(ctx, lookFirst)
	}
}
