package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) policySimulate() *cobra.Command {
	var files []string
	var requests string
	return c.command(spec{
		anywhere: true,
		use:      "simulate --policies FILE|DIRECTORY --requests FILE.jsonl",
		short:    "Simulate a change of policies on recorded calls",
		example:  "  mortise policy simulate --policies ./policies --requests requests.jsonl",
		long: `Simulate a change of policies on recorded calls: each request is judged by the
policies in force and by those given in place of policy.files, and the differences
are listed. Nothing is run and nothing is put into force.

A request is a JSON object on a line of its own:

  {"principal": "ann", "operation": "mail/send", "input": {"to": "all"}}

with, where they matter, action, tenant, groups, roles, consent, scopes, origin,
actor, agent, depth and labels. An operation that is not installed is described:

  {"principal": "ann", "resource": {"plugin": "mail", "operation": "send",
   "kind": "operator", "effects": ["gmail_send"], "tags": []}}`,
		args: cobra.NoArgs,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringArrayVar(&files, "policies", nil, "a file or directory of policies to try (repeatable)")
			cmd.Flags().StringVar(&requests, "requests", "", "a file of requests, one JSON object on each line")
		},
		check: func([]string) error {
			if len(files) == 0 || requests == "" {
				return usage{errors.New("--policies and --requests are needed")}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		documents, err := host.ReadPolicies(files...)
		if err != nil {
			return err
		}
		file, err := os.Open(requests)
		if err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
		}
		defer file.Close()
		var s host.Simulation
		if err := c.during("asking both", func() error { s, err = q.Policies().Try(ctx, documents, file, requests); return err }); err != nil {
			var wrong host.UnknownAction
			if errors.As(err, &wrong) {
				return usage{err}
			}
			return err
		}
		if c.json {
			return c.print(s)
		}
		return view.Simulation(c.out, s)
	})
}
