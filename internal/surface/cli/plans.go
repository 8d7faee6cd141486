package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) plans() *cobra.Command {
	return group(spec{use: "plans", short: "Submit, approve and run plans of agents"},
		c.plansSubmit(), c.plansList(), c.plansShow(), c.plansDecide(true), c.plansDecide(false), c.plansCancel(), c.plansResume())
}

func (c *command) plansSubmit() *cobra.Command {
	var f runFlags
	var labels []string
	var wait bool
	return c.command(spec{
		use:   "submit AGENT",
		short: "Ask an agent for a proposal and make a plan of it",
		long: `Ask an agent for a proposal and make a plan of it.

AGENT is an operation of kind agent: name, name/op or name/op@versions. Its input is
{"intent": {"type": ..., "payload": {...}}, "context": {...}, "constraints": {...}}.

A plan without gates is queued; one with gates waits for one approval of the whole.
--wait stays until it has ended, and runs it if no other process does.`,
		example: `  mortise plans submit Switchboard --input @intent.json --key demo-1
  mortise plans submit Switchboard --set intent.type=Support.QA.Answer --wait`,
		complete: c.completeOperations,
		door:     nowhere,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVarP(&f.input, "input", "i", "", "the agent's input: a JSON object, @FILE, or - for standard input")
			setFlag(cmd, &f.set)
			flags.Var(idempotencyKey{&f.key}, "key", "idempotency key: a second submission with it gets the first one's plan")
			labelFlag(cmd, &labels, "the input is")
			planWaitFlag(cmd, &wait)
		},
		check: func([]string) error { return checkLabels(labels) },
	}, func(ctx context.Context, q *ask) error { return c.submitPlan(ctx, q.args[0], f, labels, wait) })
}

func (c *command) submitPlan(ctx context.Context, ref string, f runFlags, labels []string, wait bool) error {
	input, err := c.readInput(f.input)
	if err != nil {
		return err
	}
	return c.planning(ctx, func(q *ask) (*host.Plan, error) {
		if ref, err = c.nameOf(ctx, q, ref); err != nil {
			return nil, err
		}
		_, target := q.Plugins().Operation(ctx, ref, input)
		if input, err = withSet(input, f.set, target); err != nil {
			return nil, err
		}
		if len(input) == 0 {
			input = []byte("{}")
		}
		watch := c.watch(ref + " is asked")
		v, err := q.Plans().Submit(ctx, host.NewPlan{Agent: ref, Input: input, Key: f.key, Labels: labels, Origin: plugin.OriginCLI, Observe: watch.Hear})
		watch.End()
		return c.submitted(ctx, q, v, err, wait)
	})
}

// planning does something about a plan, and shows it. The books are closed before anything
// is printed.
func (c *command) planning(ctx context.Context, do func(*ask) (*host.Plan, error)) error {
	return c.reach(ctx, inHost, func(q *ask) error { return c.planned(q, do) })
}

func (c *command) planned(q *ask, do func(*ask) (*host.Plan, error)) error {
	v, err := do(q)
	if err != nil && v == nil {
		return err
	}
	if closeErr := c.closeBooks(q, true); closeErr != nil {
		return closeErr
	}
	return c.answerPlan(v, err)
}

// submitted is what became of a submission, once it has ended where that is waited for.
func (c *command) submitted(ctx context.Context, q *ask, v *host.Plan, err error, wait bool) (*host.Plan, error) {
	if err != nil {
		return nil, view.WithNext(err)
	}
	if !wait || v.ID == "" {
		return v, nil
	}
	return c.waitForPlan(ctx, q, v)
}

// waitForPlan stays until a plan has ended.
func (c *command) waitForPlan(ctx context.Context, q *ask, v *host.Plan) (*host.Plan, error) {
	if host.PlanEnded(v.State) {
		return v, nil
	}
	if v.State == host.PlanPending {
		c.say("plan %s: %s", v.ID, view.PlanHint(v))
	}
	replayed := v.Replayed
	v, err := q.Plans().Wait(ctx, v.ID, func(s host.PlanStep) {
		c.say("%s", view.PlanStep(s))
	})
	if v != nil {
		v.Replayed = replayed
	}
	if err != nil && v != nil && ctx.Err() != nil {
		err = plugin.Errorf(plugin.CodeCancelled, "the wait for plan %s was cancelled; the plan is %s", v.ID, v.State)
	}
	return v, err
}

// answerPlan prints a plan. One that ended badly is a failure, with the exit
// status of its code.
func (c *command) answerPlan(v *host.Plan, err error) error {
	if err == nil {
		err = planError(v)
	}
	if c.json {
		if printErr := c.print(v); printErr != nil {
			return printErr
		}
	} else if printErr := view.Plan(c.out, c.errs, v); printErr != nil {
		return printErr
	}
	if err == nil {
		return nil
	}
	if !c.json {
		c.say("mortise: %s", view.Message(err))
	}
	return reported{err}
}

// planError is why a plan ended badly, nil if it did not.
func planError(v *host.Plan) error {
	if v.Error == nil || !host.PlanEnded(v.State) {
		return nil
	}
	return &plugin.Error{Code: v.Error.Code, Message: v.Error.Message}
}

func (c *command) plansList() *cobra.Command {
	f := host.PlanFilter{}
	var state string
	return list(c, spec{
		use: "list", short: "List plans, the newest first", example: "  mortise plans list --state pending_approval",
		anywhere: true, door: inStore, limit: &limit{"last", &f.Limit, 20, "how many plans"},
		flags: func(cmd *cobra.Command) { cmd.Flags().StringVar(&state, "state", "", "only plans in this state") },
		check: func([]string) error {
			if f.State = host.PlanState(state); state != "" && !slices.Contains(planStates, f.State) {
				return usage{fmt.Errorf("--state %s: there are %s", state, joined(planStates))}
			}
			return nil
		},
	}, view.Plans, func(ctx context.Context, q *ask) ([]host.Plan, error) { return q.Plans().List(ctx, f) })
}

var planStates = []host.PlanState{
	host.PlanPending, host.PlanQueued, host.PlanRunning, host.PlanSucceeded, host.PlanFailed, host.PlanUnknown, host.PlanCancelled,
}

func joined(states []host.PlanState) string {
	var names []string
	for _, s := range states {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (c *command) plansShow() *cobra.Command {
	return show(c, spec{use: "show ID", short: "Show a plan with its steps", example: "  mortise plans show 3f21aa --watch", anywhere: true, door: inStore, complete: c.offering(client.Offers.Plans), watch: true},
		func(ctx context.Context, q *ask) (*host.Plan, error) { return q.Plans().Get(ctx, q.args[0], "see") },
		func(w io.Writer, v *host.Plan) error {
			if err := view.Plan(w, c.errs, v); err != nil {
				return err
			}
			return view.PlanInputs(w, c.errs, v)
		})
}

// planChange returns a command that changes one plan, and shows it.
func (c *command) planChange(s spec, do func(ctx context.Context, q *ask, id string) (*host.Plan, error)) *cobra.Command {
	s.door, s.complete = nowhere, c.offering(client.Offers.Plans)
	return c.command(s, func(ctx context.Context, q *ask) error {
		id := q.args[0]
		return c.planning(ctx, func(q *ask) (*host.Plan, error) { return do(ctx, q, id) })
	})
}

// plansDecide is `plans approve` or `plans deny`.
func (c *command) plansDecide(approve bool) *cobra.Command {
	var reason string
	s := spec{use: "approve ID", short: "Approve a whole plan, exactly as 'plans show' shows it", example: "  mortise plans approve 3f21aa --as ann"}
	if !approve {
		s.use, s.short, s.example = "deny ID", "Refuse a plan that waits for approval; nothing of it runs", `  mortise plans deny 3f21aa --reason "not this week"`
	}
	s.flags = func(cmd *cobra.Command) { reasonFlag(cmd, &reason) }
	return c.planChange(s, func(ctx context.Context, q *ask, id string) (*host.Plan, error) {
		return c.decidePlan(ctx, q, id, approve, reason)
	})
}

func (c *command) decidePlan(ctx context.Context, q *ask, id string, approve bool, reason string) (*host.Plan, error) {
	v, err := q.Plans().Get(ctx, id, "decide")
	if err != nil {
		return nil, err
	}
	if v.Approval == nil {
		return nil, plugin.Errorf(plugin.CodeNotFound, "plan %s (%s) has no gate, so it needs no approval", v.ID, v.State)
	}
	if _, err := c.decide(ctx, q, v.Approval.ID, approve, reason); err != nil {
		return nil, err
	}
	decided, err := q.Plans().Get(ctx, v.ID, "decide")
	if err == nil && !approve {
		decided.Error = nil // that it failed is what was wanted
	}
	return decided, err
}

func (c *command) plansCancel() *cobra.Command {
	var reason string
	return c.planChange(spec{
		use: "cancel ID", short: "Cancel a plan: signal the running step and skip the others", example: "  mortise plans cancel 3f21aa",
		flags: func(cmd *cobra.Command) { reasonFlag(cmd, &reason) },
	}, func(ctx context.Context, q *ask, id string) (*host.Plan, error) {
		v, err := q.Plans().Cancel(ctx, id, reason)
		if err == nil {
			v.Error = nil // likewise
		}
		return v, err
	})
}

func (c *command) plansResume() *cobra.Command {
	var wait bool
	return c.planChange(spec{
		use: "resume ID", short: "Resume a queued plan, or one whose unknown step was settled", example: "  mortise plans resume 3f21aa --wait",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&wait, "wait", false, "run it here if no other process does, and stay until it has ended")
		},
	}, func(ctx context.Context, q *ask, id string) (*host.Plan, error) {
		v, err := q.Plans().Resume(ctx, id)
		if err != nil || !wait {
			return v, err
		}
		return c.waitForPlan(ctx, q, v)
	})
}
