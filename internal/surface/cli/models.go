package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) models() *cobra.Command {
	return group(spec{use: "models", short: "See and try the language models that plugins may ask"}, c.modelsList(), c.modelsTest())
}

func (c *command) modelsList() *cobra.Command {
	return show(c, spec{
		use:   "list",
		short: "List the models by tier, with what they can do and cost, and what was spent today",
		long: `List the models by tier, with what they can do and cost, and what was spent today.

Models are configured under models in mortise.yaml. A tier's first model is asked
before the others. Prices are dollars for a million tokens, in and out. KEY says
whether the provider's key is where the configuration says; the key is not shown.`,
		example: "  mortise models list",
	}, func(ctx context.Context, q *ask) (host.ModelStates, error) {
		return q.app.As(q.app.Principal).Models().List(ctx)
	}, c.showModels)
}

func (c *command) showModels(s host.ModelStates) error {
	if len(s.Models) == 0 {
		c.say("no model is configured; name some under models in mortise.yaml")
	}
	t := terminal.NewTable(c.out, "TIER", "NAME", "PROVIDER", "MODEL", "CAN", "CONTEXT", "PRICE", "KEY")
	for i := range s.Models {
		m := &s.Models[i]
		key := "there"
		switch {
		case m.KeyProblem != "":
			key = "missing"
		case m.Key == "":
			key = "none needed"
		}
		t.Row(m.Tier, m.Name, m.Provider, m.Model, terminal.Dash(abilities(m)), strconv.Itoa(m.Context), price(m.InputPrice)+" / "+price(m.OutputPrice), key)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range s.Models {
		if m := &s.Models[i]; m.KeyProblem != "" {
			c.say("%s: %s", m.Name, m.KeyProblem)
		}
	}
	limit := "no limit"
	if s.Budget.Day > 0 {
		limit = fmt.Sprintf("$%.2f", s.Budget.Day)
	}
	_, err := fmt.Fprintf(c.out, "spent today: $%.4f of %s\n", s.Spent, limit)
	return err
}

// abilities are what a model can do beside text.
func abilities(m *host.ModelState) string {
	var can []string
	if m.Vision {
		can = append(can, "vision")
	}
	if m.JSON {
		can = append(can, "json")
	}
	can = append(can, m.Documents...)
	for _, scheme := range m.URIs {
		can = append(can, scheme+"://")
	}
	return strings.Join(can, ",")
}

func price(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }

func (c *command) modelsTest() *cobra.Command {
	return c.command(spec{
		use:   "test [NAME]",
		short: "Ask a model, or each of them, for one word, and say what happened",
		long: `Ask a model, or each of them, for one word, and say what happened.

These are real queries: they cost a little, count towards the budgets and are in
the ledger. The exit status is not 0 if a model did not answer.`,
		example: `  mortise models test
  mortise models test small --json`,
	}, func(ctx context.Context, q *ask) error {
		names := q.args
		if len(names) == 0 {
			s, err := q.app.As(q.app.Principal).Models().List(ctx)
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
		return c.testModels(ctx, q.app, names)
	})
}

func (c *command) testModels(ctx context.Context, a *app.App, names []string) error {
	var tests []host.ModelTest
	failed := 0
	for _, name := range names {
		var t host.ModelTest
		if err := c.during("asking "+name, func() (err error) { t, err = a.As(a.Principal).Models().Test(ctx, name); return err }); err != nil {
			return err
		}
		tests = append(tests, t)
		if !t.OK {
			failed++
		}
		if c.json {
			continue
		}
		line := fmt.Sprintf("%s: %s", t.Name, t.Error)
		if t.OK {
			line = fmt.Sprintf("%s: answered %.60q in %s; %d tokens in, %d out, $%.6f", t.Name, t.Answer, terminal.Milliseconds(t.Took), t.In, t.Out, t.Cost)
		}
		if _, err := fmt.Fprintln(c.out, terminal.Safe(line)); err != nil {
			return err
		}
	}
	if c.json {
		if err := c.print(map[string]any{"tests": tests}); err != nil {
			return err
		}
	}
	if failed > 0 {
		err := plugin.Errorf(plugin.CodeUnavailable, "%d of %d models did not answer; check base_url and api_key of the model in %s", failed, len(tests), a.ConfigPath)
		if c.json {
			return reported{err}
		}
		return err
	}
	return nil
}
