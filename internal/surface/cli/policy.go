package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) policy() *cobra.Command {
	return group(spec{
		use:   "policy",
		short: "Check, explain, simulate and store policies",
		long: `Check, explain, simulate and store policies. They are files in the Cedar language,
named under policy.files in mortise.yaml, texts that are stored with 'mortise policy
put', and the rules under policy.allow. Silence denies, a forbid wins, and @approval
on a permit makes a call wait for a person.`,
	}, c.policyCheck(), c.policyExplain(), c.policyCan(), c.policySimulate(), c.policyList(), c.policyPut(), c.policyDelete())
}

func (c *command) policyCheck() *cobra.Command {
	return c.command(spec{
		use:     "check [FILE...]",
		short:   "Check policies and report problems by line and column",
		example: "  mortise policy check ./policies",
		long: `Check policies and report problems by line and column: files or directories of
them, or those that are configured. Nothing is put into force. A group or role that
the configuration does not have is an error. A plugin, operation, effect or agent that
is not there is a warning, since it may come later; the exit status is 0 then.`,
		door: nowhere,
	}, func(ctx context.Context, q *ask) error {
		count, warnings, err := c.checkPolicies(ctx, q.args)
		var problems host.PolicyProblems
		if err != nil && !errors.As(err, &problems) {
			return usage{err}
		}
		if len(problems) == 0 {
			var absent host.PolicyProblems
			if problems, absent, err = c.policyNames(ctx, q.args); err != nil {
				return err
			}
			for _, name := range absent {
				warnings = append(warnings, name.Error())
			}
		}
		if c.json {
			err = c.print(map[string]any{
				"ok": len(problems) == 0, "policies": count, "problems": append(host.PolicyProblems{}, problems...), "warnings": append([]string{}, warnings...),
			})
		} else {
			err = view.CheckedPolicies(c.out, c.errs, count, problems, warnings)
		}
		if err == nil && len(problems) > 0 {
			return reported{errChecks}
		}
		return err
	})
}

// checkPolicies counts the policies of files, or else those configured, and
// returns what may be read in two ways.
func (c *command) checkPolicies(ctx context.Context, files []string) (int, []string, error) {
	if len(files) == 0 {
		conf, path, err := setup.ReadConfig(c.home, c.config)
		if err != nil {
			return 0, nil, err
		}
		engine, err := setup.ConfiguredPolicies(conf, path, c.stored(ctx))
		if err != nil {
			return 0, nil, err
		}
		return engine.Len(), append(conf.Ambiguous(), engine.Ambiguous()...), nil
	}
	return setup.CheckPolicies(files)
}

// stored is [command.reading] in one context.
func (c *command) stored(ctx context.Context) func(func(host.Store) error) error {
	return func(do func(host.Store) error) error { return c.reading(ctx, do) }
}

func (c *command) policyExplain() *cobra.Command {
	var asked host.PolicyRequest
	var input string
	return c.command(spec{
		anywhere: true,
		use:      "explain NAME[/OPERATION][@VERSIONS]",
		short:    "Explain which policies decide about a call",
		long: `Explain which policies decide about a call: those that
permit, forbid or fail, and where nothing permits, those that nearly do with what
is missing. The call is not made.`,
		example: `  mortise policy explain mail/send --input '{"to": "all"}'
  mortise policy explain mail/send --as ann --role sender --consent gmail_send
  mortise policy explain mail --action configure --as service::deploy`,
		complete: c.completeOperations,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVarP(&input, "input", "i", "", "the input: a JSON object, @FILE, or - for standard input")
			flags.StringVar(&asked.Principal, "as", "", "who asks, in place of the one configured: a user's id, service::id or agent::id")
			flags.StringVar((*string)(&asked.Action), "action", "", "execute (the default), list, approve or configure")
			flags.StringVar(&asked.Tenant, "tenant", "", "whose call it is, in place of the tenant configured")
			flags.StringArrayVar(&asked.Groups, "group", nil, "a group of the principal's, in place of those configured (repeatable)")
			flags.StringArrayVar(&asked.Roles, "role", nil, "a role of the principal's, in place of those configured (repeatable)")
			flags.StringArrayVar(&asked.Consent, "consent", nil, "what the principal has agreed to (repeatable)")
			flags.StringArrayVar(&asked.Scopes, "scope", nil, "a scope of the principal's credential; all of them, *, if none is given (repeatable)")
			flags.StringVar(&asked.Actor, "actor", "", "who acts for the principal: agent:ID or service:ID, who must be allowed it too")
			flags.StringArrayVar(&asked.Labels, "label", nil, "a label of the arguments, such as untrusted (repeatable)")
			flags.StringVar((*string)(&asked.Origin), "origin", "", "the surface the call comes in by: cli (the default), call, ...")
		},
		check: func(args []string) (err error) {
			asked.Operation = args[0]
			if err := asked.KnownAction(); err != nil {
				return usage{err}
			}
			asked.Input, err = c.readInput(input)
			return err
		},
	}, func(ctx context.Context, r *ask) error {
		x, err := r.Policies().Explain(ctx, asked)
		if err != nil {
			return err
		}
		if c.json {
			return c.print(x)
		}
		_, err = fmt.Fprint(c.out, terminal.Safe(x.String()))
		return err
	})
}

func (c *command) policyCan() *cobra.Command {
	return c.command(spec{
		anywhere: true,
		use:      "can PRINCIPAL ACTION NAME[/OPERATION][@VERSIONS]",
		short:    "Ask whether a principal may do something",
		long: `Say whether someone may do something: exit status 0 if so, also where a person
has to agree first, and 5 if not. PRINCIPAL is a user's id, service::id or
agent::id; ACTION is execute, list, approve or configure.`,
		example: `  mortise policy can ann execute mail/send
  mortise policy can service::deploy configure mail`,
	}, func(ctx context.Context, r *ask) error {
		asked := host.PolicyRequest{Principal: r.args[0], Action: host.PolicyAction(r.args[1]), Operation: r.args[2]}
		if err := asked.KnownAction(); err != nil {
			return usage{err}
		}
		d, err := r.Policies().Ask(ctx, asked)
		if err != nil {
			return err
		}
		if c.json {
			err = c.print(d)
		} else {
			_, err = fmt.Fprintf(c.out, "%s: %s\n", d.Verdict, terminal.Safe(d.Reasons[0]))
		}
		if err == nil && d.Verdict == plugin.Deny {
			return reported{plugin.Errorf(plugin.CodePolicyDenied, "%s", d.Reasons[0])}
		}
		return err
	})
}
