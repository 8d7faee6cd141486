package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) models() *cobra.Command {
	return group(spec{use: "models", short: "List and test language models"}, c.modelsList(), c.modelsTest())
}

func (c *command) modelsList() *cobra.Command {
	return show(c, spec{
		anywhere: true,
		use:      "list",
		short:    "List the models by tier, with what they can do and cost, and what was spent today",
		long: `List the models by tier, with what they can do and cost, and what was spent today.

Models are configured under models in mortise.yaml. A tier's first model is asked
before the others. Prices are dollars for a million tokens, in and out. KEY says
whether the provider's key is where the configuration says; the key is not shown.`,
		example: "  mortise models list",
	}, func(ctx context.Context, q *ask) (host.ModelStates, error) {
		return q.Models().List(ctx)
	}, func(w io.Writer, s host.ModelStates) error { return view.Models(w, c.errs, s) })
}

func (c *command) modelsTest() *cobra.Command {
	return c.command(spec{
		anywhere: true,
		use:      "test [NAME]",
		short:    "Test a model, or all of them, with a one-word request",
		long: `Test a model, or all of them, with a one-word request.

These are real queries: they cost a little, count towards the budgets and are in
the ledger. The exit status is not 0 if a model did not answer.`,
		example: `  mortise models test
  mortise models test small --json`,
	}, func(ctx context.Context, q *ask) error {
		names := q.args
		if len(names) == 0 {
			s, err := q.Models().List(ctx)
			if err != nil {
				return err
			}
			for i := range s.Models {
				names = append(names, s.Models[i].Name)
			}
		}
		if len(names) == 0 {
			return plugin.Errorf(plugin.CodeNotFound, "no model is configured; name some under models in mortise.yaml")
		}
		return c.testModels(ctx, q, names)
	})
}

func (c *command) testModels(ctx context.Context, q *ask, names []string) error {
	var tests []host.ModelTest
	failed := 0
	for _, name := range names {
		var t host.ModelTest
		if err := c.during("asking "+name, func() (err error) { t, err = q.Models().Test(ctx, name); return err }); err != nil {
			return err
		}
		tests = append(tests, t)
		if !t.OK {
			failed++
		}
		if c.json {
			continue
		}
		if _, err := fmt.Fprintln(c.out, terminal.Safe(view.ModelTest(t))); err != nil {
			return err
		}
	}
	if c.json {
		if err := c.print(map[string]any{"tests": tests}); err != nil {
			return err
		}
	}
	if failed > 0 {
		err := plugin.Errorf(plugin.CodeUnavailable, "%d of %d models did not answer; check base_url and api_key of the model in %s", failed, len(tests), c.configPath(q))
		if c.json {
			return reported{err}
		}
		return err
	}
	return nil
}
