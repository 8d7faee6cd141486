package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	json2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// rawObject is a JSON object that is passed on as it stands.
type rawObject = json.RawMessage

// maxRequest is the longest line of requests that is read.
const maxRequest = 4 << 20

func (c *command) policySimulate() *cobra.Command {
	var files []string
	var requests string
	return c.command(spec{
		use:     "simulate --policies FILE|DIRECTORY --requests FILE.jsonl",
		short:   "Say what other policies would decide differently",
		example: "  mortise policy simulate --policies ./policies --requests requests.jsonl",
		long: `Say what other policies would decide differently: each request is judged by the
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
		other, err := otherPolicies(q.app, files)
		if err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
		}
		s := simulation{app: q.app, other: other, Differences: []difference{}}
		if err := c.during("asking both", func() error { return s.run(ctx, requests) }); err != nil {
			return err
		}
		return c.showSimulation(s)
	})
}

// A simulation asks two sets of policies the same.
type simulation struct {
	app   *app.App
	other *policy.Engine

	Requests    int          `json:"requests"`
	Differences []difference `json:"differences"`
}

// A difference is a request that the two decide in two ways.
type difference struct {
	Line      int             `json:"line"`
	Principal string          `json:"principal"`
	Action    policy.Action   `json:"action"`
	Operation string          `json:"operation"`
	Now       plugin.Decision `json:"now"`
	Then      plugin.Decision `json:"then"`
}

func (s *simulation) run(ctx context.Context, requests string) error {
	file, err := os.Open(requests)
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxRequest)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := s.ask(ctx, n, lines.Bytes()); err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", requests, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", requests, n+1, err)
	}
	return nil
}

// ask puts one request to both.
func (s *simulation) ask(ctx context.Context, line int, raw []byte) error {
	var request asked
	if err := json2.Unmarshal(raw, &request, json2.RejectUnknownMembers(true)); err != nil {
		return err
	}
	q, err := request.question(ctx, s.app)
	if err != nil {
		return err
	}
	s.Requests++
	now, then := s.app.Policy.Ask(q), s.other.Ask(q)
	if now.Verdict == then.Verdict {
		return nil
	}
	what := q.Target.Manifest.Name
	if q.Target.Operation != nil && q.Action != policy.Configure {
		what = q.Target.Name()
	}
	s.Differences = append(s.Differences, difference{line, principal.Name(q.Call.Principal), q.Action, what, now, then})
	return nil
}

func (c *command) showSimulation(s simulation) error {
	if c.json {
		return c.print(s)
	}
	if len(s.Differences) > 0 {
		t := terminal.NewTable(c.out, "LINE", "PRINCIPAL", "ACTION", "OPERATION", "NOW", "THEN", "BECAUSE")
		for _, d := range s.Differences {
			t.Row(fmt.Sprint(d.Line), d.Principal, string(d.Action), d.Operation, string(d.Now.Verdict), string(d.Then.Verdict), d.Then.Reasons[0])
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(c.out, "%d of %d requests would be decided differently\n", len(s.Differences), s.Requests)
	return err
}
