package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) adapters() *cobra.Command {
	return group(spec{use: "adapters", short: "Deliver external events to adapters"}, c.adaptersDeliver())
}

func (c *command) adaptersDeliver() *cobra.Command {
	var event string
	var wait bool
	return c.command(spec{
		anywhere: true,
		use:      "deliver ADAPTER",
		short:    "Deliver an event to an adapter and make a plan of its intent",
		long: `Deliver an event to an adapter and make a plan of its intent.

ADAPTER is an operation of kind adapter: name, name/op or name/op@versions. It says
what is wanted and who the other system says it was. 'mortise identities' says who
that is here, with which scopes, and intents in mortise.yaml which agent is asked. Who
delivers gives no rights to the plan. The same event again is the same plan.

--wait stays until the plan has ended, and runs it if no other process does.`,
		example: `  mortise adapters deliver Chat.Adapter/inbound --event @event.json --wait
  curl -s https://queue.example/next | mortise adapters deliver Chat.Adapter/inbound --event -`,
		complete: c.completeOperations,
		door:     nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVarP(&event, "event", "e", "", "the event: a JSON object, @FILE, or - for standard input")
			planWaitFlag(cmd, &wait)
		},
	}, func(ctx context.Context, q *ask) error { return c.deliver(ctx, q.args[0], event, wait) })
}

func (c *command) deliver(ctx context.Context, ref, given string, wait bool) error {
	event, err := c.readValue("the event", "--event", given)
	if err != nil {
		return err
	}
	if event == nil {
		return usage{errors.New("--event is missing: a JSON object, @FILE, or - for standard input")}
	}
	return c.reach(ctx, inHost, func(q *ask) error {
		return c.planned(q, func(q *ask) (*host.Plan, error) {
			if ref, err = c.nameOf(ctx, q, ref); err != nil {
				return nil, err
			}
			watch := c.watch(ref + " reads the event")
			v, err := q.Adapters().Deliver(ctx, host.NewDelivery{Adapter: ref, Event: event, Origin: plugin.OriginCLI, Observe: watch.Hear})
			watch.End()
			return c.submitted(ctx, q, v, err, wait)
		})
	})
}
