package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) pluginsMap() *cobra.Command {
	var word host.MappingWord
	var back, none bool
	return c.change(spec{
		anywhere: true,
		use:      "map NAME/OPERATION[@VERSION]",
		short:    "Classify an operation, overriding what its plugin declares",
		long: `Say which effects an operation of an installed plugin has, in place of those that it
declares. Policy judges by what you say, and the host refuses every other effect. Less than
what is declared holds only where plugins run in a complete sandbox; elsewhere the
operation is refused then. What its author wants a person to agree to stays so.`,
		example: `  mortise plugins map github/list_issues --effects http_read
  mortise plugins map weather/today --tool
  mortise plugins map mail/send --effects gmail_send --approval
  mortise plugins map mail/send --declared`,
		complete: c.completeOperations,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringSliceVar(&word.Effects, "effects", nil, "all effects that it may have")
			flags.BoolVar(&none, "no-effects", false, "it has none, and is an operator all the same")
			flags.BoolVar(&word.Tool, "tool", false, "it computes, and has no effects")
			flags.BoolVar(&word.Brokered, "brokered", false, "all its effects go through host services")
			flags.BoolVar(&word.Approval, "approval", false, "a person agrees to each call, wherever policy allows it")
			flags.BoolVar(&back, "declared", false, "take your word back: what is declared holds")
		},
		check: func([]string) error {
			said := 0
			for _, one := range []bool{len(word.Effects) > 0, none, word.Tool, back} {
				if one {
					said++
				}
			}
			if said != 1 {
				return usage{errors.New("say what it does: --effects, --no-effects, --tool or --declared, one of them")}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		to := &word
		if back {
			to = nil
		}
		info, err := q.Plugins().Map(ctx, q.args[0], to)
		said := strings.Join(word.Effects, " ")
		switch {
		case back:
			said = "what it declares"
		case said == "":
			said = "no effects"
		}
		return done{value: map[string]any{"plugin": info}, said: q.args[0] + " has " + said}, view.WithNext(err)
	})
}
