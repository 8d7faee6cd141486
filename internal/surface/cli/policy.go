package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) policy() *cobra.Command {
	return group(spec{
		use:   "policy",
		short: "Check, explain, try out and store policies",
		long: `Check, explain, try out and store policies. They are files in the Cedar language,
named under policy.files in mortise.yaml, texts that are stored with 'mortise policy
put', and the rules under policy.allow. Silence denies, a forbid wins, and @approval
on a permit makes a call wait for a person.`,
	}, c.policyCheck(), c.policyExplain(), c.policyCan(), c.policySimulate(), c.policyList(), c.policyPut(), c.policyDelete())
}

func (c *command) policyCheck() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:     "check [FILE...]",
		Short:   "Say what is wrong with policies, by line and column",
		Example: "  mortise policy check ./policies",
		Long: `Say what is wrong with policies, by line and column: files or directories of
them, or those that are configured. Nothing is put into force. A group or role that
the configuration does not have is an error. A plugin, operation, effect or agent that
is not there is a warning, since it may come later; the exit status is 0 then.`,
		RunE: func(cmd *cobra.Command, files []string) error {
			count, warnings, err := c.checkPolicies(cmd.Context(), files)
			var problems policy.Problems
			switch {
			case errors.As(err, &problems):
			case err != nil:
				return usage{err}
			}
			if len(problems) == 0 {
				var absent policy.Problems
				if problems, absent, err = c.policyNames(cmd.Context(), files); err != nil {
					return err
				}
				for _, name := range absent {
					warnings = append(warnings, name.Error())
				}
			}
			if c.json {
				if problems == nil {
					problems = policy.Problems{}
				}
				if err := c.print(map[string]any{"ok": len(problems) == 0, "policies": count, "problems": problems, "warnings": append([]string{}, warnings...)}); err != nil {
					return err
				}
			} else if len(problems) == 0 {
				fmt.Fprintf(c.out, "%d policies can be used\n", count)
			} else {
				fmt.Fprintln(c.out, terminal.Safe(problems.Error()))
			}
			if !c.json {
				for _, warning := range warnings {
					c.say("warning: %s", warning)
				}
			}
			if len(problems) > 0 {
				return reported{errChecks}
			}
			return nil
		},
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
		engine, err := c.configuredPolicies(ctx, conf, path)
		if err != nil {
			return 0, nil, err
		}
		return engine.Len(), append(conf.Ambiguous(), engine.Ambiguous()...), nil
	}
	documents, err := policy.Files(".", files...)()
	if err != nil {
		return 0, nil, err
	}
	count, err := policy.Check(documents)
	if err != nil {
		return count, nil, err
	}
	engine, err := policy.Open(policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) { return documents, nil }}})
	if err != nil {
		return count, nil, nil // it was checked; together with nothing else it may not be a set
	}
	return count, engine.Ambiguous(), nil
}

// configuredPolicies returns the engine of a configuration, with the policies
// that are stored, if there is a store yet.
func (c *command) configuredPolicies(ctx context.Context, conf config.Config, path string) (engine *policy.Engine, err error) {
	var wrong error
	err = c.reading(ctx, func(st store.Store) error {
		engine, wrong = setup.OpenPolicy(conf, path, "", st)
		return nil
	})
	switch {
	case plugin.CodeOf(err) == plugin.CodeNotFound:
		return setup.OpenPolicy(conf, path, "", nil)
	case err != nil:
		return nil, err
	}
	return engine, wrong
}

func (c *command) policyExplain() *cobra.Command {
	var asked asked
	var input string
	return c.command(spec{
		use:   "explain NAME[/OPERATION][@VERSIONS]",
		short: "Say which policies decide about a call, and what would change it",
		long: `Say which policies decide about a call, and what would change it: those that
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
			asked.Input, err = c.readInput(input)
			return err
		},
	}, func(ctx context.Context, r *ask) error {
		q, err := asked.question(ctx, r.app)
		if err != nil {
			return err
		}
		x := r.app.Policy.Explain(q)
		if c.json {
			return c.print(x)
		}
		_, err = fmt.Fprint(c.out, terminal.Safe(x.String()))
		return err
	})
}

func (c *command) policyCan() *cobra.Command {
	return c.command(spec{
		use:   "can PRINCIPAL ACTION NAME[/OPERATION][@VERSIONS]",
		short: "Say whether someone may do something, in the exit status too",
		long: `Say whether someone may do something: exit status 0 if so, also where a person
has to agree first, and 5 if not. PRINCIPAL is a user's id, service::id or
agent::id; ACTION is execute, list, approve or configure.`,
		example: `  mortise policy can ann execute mail/send
  mortise policy can service::deploy configure mail`,
	}, func(ctx context.Context, r *ask) error {
		asked := asked{Principal: r.args[0], Action: policy.Action(r.args[1]), Operation: r.args[2]}
		q, err := asked.question(ctx, r.app)
		if err != nil {
			return err
		}
		d := r.app.Policy.Ask(q)
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

// An asked is one question as it is written down: in flags, and as a line of
// the requests of `mortise policy simulate`.
type asked struct {
	Principal string        `json:"principal"` // a user's id, service::id, agent::id; the one configured if empty
	Tenant    string        `json:"tenant"`    // the one configured if empty
	Groups    []string      `json:"groups"`    // these three in place of what the host knows
	Roles     []string      `json:"roles"`
	Consent   []string      `json:"consent"`
	Scopes    []string      `json:"scopes"` // * if absent
	Action    policy.Action `json:"action"` // execute if empty
	Operation string        `json:"operation"`
	Resource  *described    `json:"resource"` // in place of what the registry says of the operation
	Input     rawObject     `json:"input"`
	Origin    plugin.Origin `json:"origin"` // cli if empty
	Actor     string        `json:"actor"`
	Agent     string        `json:"agent"`
	Depth     int           `json:"depth"`
	Labels    []string      `json:"labels"`
}

// A described is an operation that need not be installed.
type described struct {
	Plugin      string      `json:"plugin"`
	Operation   string      `json:"operation"`
	Version     string      `json:"version"`
	Dialect     string      `json:"dialect"`
	Kind        plugin.Kind `json:"kind"`
	Effects     []string    `json:"effects"`
	Tags        []string    `json:"tags"`
	Permissions []string    `json:"permissions"`
}

// question completes what is asked with what the host knows.
func (q asked) question(ctx context.Context, a *app.App) (*policy.Question, error) {
	if q.Action == "" {
		q.Action = policy.Execute
	}
	if !q.Action.Known() {
		return nil, usage{fmt.Errorf("%q is no action; the actions are execute, list, approve and configure", q.Action)}
	}
	if q.Principal == "" {
		q.Principal = a.Config.Principal
	}
	if q.Tenant == "" {
		q.Tenant = a.Config.Tenant
	}
	if q.Scopes == nil {
		q.Scopes = []string{"*"}
	}
	if q.Origin == "" {
		q.Origin = plugin.OriginCLI
	}
	who := principal.Parse(q.Principal)
	who.Scopes = q.Scopes
	standing := a.Policy.Standing(q.Tenant, who)
	for _, known := range []struct{ given, have *[]string }{{&q.Groups, &standing.Groups}, {&q.Roles, &standing.Roles}, {&q.Consent, &standing.Consent}} {
		if *known.given != nil {
			*known.have = *known.given
		}
	}
	target, err := q.target(ctx, a)
	if err != nil {
		return nil, err
	}
	return &policy.Question{Action: q.Action, Target: target, Standing: &standing, Call: &plugin.Call{
		Tenant: q.Tenant, Principal: who, Actor: q.Actor, Agent: q.Agent, Origin: q.Origin, Depth: q.Depth, Labels: q.Labels,
		Operation: q.Operation, Input: []byte(q.Input),
	}}, nil
}

// target finds what is asked for.
func (q asked) target(ctx context.Context, a *app.App) (*plugin.Target, error) {
	if d := q.Resource; d != nil {
		return &plugin.Target{
			Manifest:  &plugin.Manifest{Name: d.Plugin, Version: d.Version, Dialect: d.Dialect},
			Operation: &plugin.Operation{Name: d.Operation, Kind: d.Kind, Effects: d.Effects, PolicyTags: d.Tags, Permissions: d.Permissions},
		}, nil
	}
	if q.Action != policy.Configure {
		return a.Registry.Resolve(ctx, q.Operation)
	}
	shown, err := a.Registry.Show(ctx, q.Operation)
	if err != nil {
		return nil, err
	}
	return &plugin.Target{Manifest: shown.Manifest}, nil
}

// otherPolicies returns the engine of a configuration with other files.
func otherPolicies(a *app.App, files []string) (*policy.Engine, error) {
	conf := a.Config
	conf.Policy.Files = nil
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		conf.Policy.Files = append(conf.Policy.Files, path)
	}
	return setup.OpenPolicy(conf, a.ConfigPath, a.Runner.Level(), a.Store)
}
