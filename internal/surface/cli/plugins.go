package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) plugins() *cobra.Command {
	cmd := group(spec{use: "plugins", short: "Register, list, enable and disable plugins"},
		c.pluginsList(), c.pluginsShow(), c.pluginsActions(), c.pluginsRegister(), c.pluginsEnable(), c.pluginsDisable(),
		c.pluginsDiff(), c.pluginsApprove(), c.pluginsEnvironment(), c.pluginsRefresh(), c.pluginsMap(),
		c.pluginsSubscribe("subscribe", "Let a plugin act for you, with your accounts and secrets", "acts for you", client.Plugins.Subscribe),
		c.pluginsSubscribe("unsubscribe", "Keep a plugin from acting for you, in the calls of others too", "does not act for you any more", client.Plugins.Unsubscribe), c.pluginsRollback(), c.pluginsDelete(),
		c.pluginsPack(), c.pluginsKeygen(), c.pluginsSign(), c.pluginsVerify())
	cmd.Aliases = []string{"plugin"}
	return cmd
}

func (c *command) pluginsList() *cobra.Command {
	var kind, agent string
	var kinds []plugin.Kind
	return c.command(spec{
		anywhere: true,
		use:      "list", short: "List plugins", example: "  mortise plugins list --kind tool",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&kind, "kind", "", "only those with an operation of this kind: agent, operator, tool, adapter")
			c.agentFlag(cmd, &agent, "say of each whether this agent has it")
		},
		check: func([]string) error {
			if kind != "" {
				if kinds = []plugin.Kind{plugin.Kind(kind)}; !kinds[0].Known() {
					return usage{fmt.Errorf("--kind %s: the kinds are agent, operator, tool and adapter", kind)}
				}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		infos, err := q.Plugins().List(ctx, kinds...)
		if err != nil {
			return err
		}
		if agent == "" {
			return rowsOf(c, view.Plugins, infos)
		}
		assigned, err := q.Agents().Assignments(ctx, agent)
		if err != nil {
			return err
		}
		return c.listAssigned(infos, assigned)
	})
}

func (c *command) pluginsShow() *cobra.Command {
	return show(c, spec{anywhere: true, use: "show NAME[@VERSIONS]", short: "Show one plugin: its operations, schemas, effects and package", example: "  mortise plugins show hello", complete: c.completePlugins},
		func(ctx context.Context, q *ask) (s view.PluginShown, err error) {
			if s.PluginShown, err = q.Plugins().Show(ctx, q.args[0]); err == nil {
				s.Needs, err = q.Plugins().Needs(ctx, s.Name+"@"+s.Version)
			}
			return s, view.WithNext(err)
		}, view.Plugin)
}

// pluginsSubscribe is a command that says whether a plugin acts for who gives it.
func (c *command) pluginsSubscribe(verb, short, what string, do func(client.Plugins, context.Context, string) (host.PluginNeeds, error)) *cobra.Command {
	return c.change(spec{anywhere: true, use: verb + " NAME", short: short, example: "  mortise plugins " + verb + " gmail_digest", complete: c.completePlugins},
		func(ctx context.Context, q *ask) (done, error) {
			needs, err := do(q.Plugins(), ctx, q.args[0])
			return done{value: needs, said: q.args[0] + " " + what}, view.WithNext(err)
		})
}

func (c *command) pluginsActions() *cobra.Command {
	return list(c, spec{anywhere: true, use: "actions NAME[@VERSIONS]", short: "List the actions of a plugin that you may use", example: "  mortise plugins actions mail", complete: c.completePlugins}, view.Actions,
		func(ctx context.Context, q *ask) ([]host.Action, error) {
			actions, err := q.Plugins().Actions(ctx, q.args[0])
			return actions, view.WithNext(err)
		})
}

func (c *command) pluginsRegister() *cobra.Command {
	var o host.RegisterOptions
	var path string
	var off bool
	return c.command(spec{
		anywhere: true,
		use:      "register PATH | register ID --path PATH [--name NAME] [--description TEXT]",
		short:    "Register a plugin, or a tree of them",
		long: `Register the plugin in a directory, or every plugin in a tree of directories.

The files are copied into the data directory and are what runs from then on. With
--dev they are linked instead: a change counts at the next call. One bad plugin in
a tree does not keep the others out. A package file (.zip, .tar, .tar.gz) stands for
what is in it: a manifest at its top, or one directory that holds everything.

A plugin that was approved before and comes back changed, in a patch version or
under the same number, is held until 'mortise plugins approve'. What was approved
can be called meanwhile.`,
		example: `  mortise plugins register ./hello
  mortise plugins register --dev ./hello
  mortise plugins register ./gmail_digest.zip
  mortise plugins register example.hello --path ./hello --name "Hello"`,
		args: cobra.ExactArgs(1),
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.BoolVar(&o.Dev, "dev", false, "link the files instead of copying them; for development")
			flags.BoolVar(&o.Force, "force", false, "replace a version that is registered with other files")
			flags.BoolVar(&off, "disabled", false, "register without enabling")
			flags.StringVar(&path, "path", "", "where the plugin is, when its ID is given")
			flags.StringVar(&o.DisplayName, "name", "", "a name to show instead of the manifest's")
			flags.StringVar(&o.Description, "description", "", "a description to show instead of the manifest's")
		},
		check: func(args []string) error {
			switch {
			case path != "":
				o.ID = args[0]
			case o.DisplayName != "" || o.Description != "":
				return usage{errors.New("--name and --description go with ID --path PATH")}
			default:
				path = args[0]
			}
			o.Enable = !off
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		var report host.Registered
		err := c.during("registering "+path, func() (err error) { report, err = q.Plugins().Register(ctx, path, o); return err })
		return c.registered(report, err)
	})
}

// registered prints what became of each plugin. Any that failed makes the
// command fail.
func (c *command) registered(report host.Registered, err error) error {
	type line struct {
		host.PluginInfo
		Unchanged  bool           `json:"unchanged"`
		NotEnabled map[string]any `json:"not_enabled,omitempty"`
	}
	done, failed := []line{}, []map[string]any{}
	for _, r := range report.Registered {
		l := line{PluginInfo: r.Info, Unchanged: r.Unchanged}
		if r.NotEnabled != nil {
			l.NotEnabled = errorOf(r.NotEnabled)
			err = errors.Join(err, r.NotEnabled)
		}
		done = append(done, l)
	}
	for _, f := range report.Failed {
		failed = append(failed, map[string]any{"path": f.Path, "error": errorOf(f.Err), "problems": problemsOf(f.Err)})
		if err == nil {
			err = f.Err
		}
	}
	if c.json {
		object := map[string]any{"registered": done, "failed": failed}
		if err != nil {
			object["error"] = errorOf(err)
		}
		if printErr := c.print(object); printErr != nil {
			return printErr
		}
		return asReported(err)
	}
	view.Registered(c.out, c.errs, report)
	if len(report.Failed) == 0 && len(report.Registered) == 0 {
		return err
	}
	return asReported(err)
}

func asReported(err error) error {
	if err == nil {
		return nil
	}
	return reported{err}
}

// problemsOf returns the places of a manifest that an error names.
func problemsOf(err error) host.Problems {
	var problems host.Problems
	if errors.As(err, &problems) {
		return problems
	}
	return host.Problems{}
}

func (c *command) pluginsEnable() *cobra.Command {
	return c.switching(spec{
		anywhere: true,
		use:      "enable NAME[@VERSIONS]",
		short:    "Enable a plugin, or assign it to agents",
		long: `Let a plugin be called. With --agent it is given to an agent instead, and with --all to
all agents, those that are made later too. The agent then runs the plugin's hooks, and
may use its operations as far as policy allows them to the agent and to the principal
it acts for. A setting for one agent overrides the one for all.`,
		example: `  mortise plugins enable hello
  mortise plugins enable orders --agent support`,
		flags: c.forAgents(true),
	}, func(ctx context.Context, q *ask) ([]host.PluginInfo, error) {
		info, err := q.Plugins().Enable(ctx, q.args[0])
		return []host.PluginInfo{info}, err
	})
}

func (c *command) pluginsDisable() *cobra.Command {
	return c.switching(spec{
		anywhere: true,
		use:      "disable NAME[@VERSIONS]",
		short:    "Disable a plugin, or remove it from agents",
		long: `Keep a plugin from being called. With --agent it is taken from an agent instead, also
where all others have it, and with --all it is no longer what all agents have: those
that were given it by name keep it.`,
		example: `  mortise plugins disable hello
  mortise plugins disable orders --agent support`,
		flags: c.forAgents(false),
	}, func(ctx context.Context, q *ask) ([]host.PluginInfo, error) {
		return q.Plugins().Disable(ctx, q.args[0])
	})
}

func (c *command) pluginsRefresh() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "refresh NAME",
		short:    "Compare the tools of a mounted MCP server with what was approved",
		long: `List the tools of a mounted server now, and compare them with what was approved. What
differs is another version of the plugin, which is held until 'mortise plugins approve';
a tool that differs is not called meanwhile. The host compares by itself too, as often as
mcp.recheck says, whenever a tool is called.`,
		example: `  mortise plugins refresh notes
  mortise plugins diff notes`,
		complete: c.completePlugins,
	}, func(ctx context.Context, q *ask) (done, error) {
		var one host.RegisteredPlugin
		err := c.during("listing the tools of "+q.args[0], func() (err error) { one, err = q.Plugins().Refresh(ctx, q.args[0]); return err })
		return done{value: map[string]any{"plugin": one.Info, "unchanged": one.Unchanged}, said: view.Refreshed(one)}, view.WithNext(err)
	})
}

func (c *command) pluginsRollback() *cobra.Command {
	return c.switching(spec{anywhere: true, use: "rollback NAME", short: "Roll back to the previous approved version", example: "  mortise plugins rollback mail"},
		func(ctx context.Context, q *ask) ([]host.PluginInfo, error) {
			left, back, err := q.Plugins().Rollback(ctx, q.args[0])
			return []host.PluginInfo{left, back}, err
		})
}

func (c *command) pluginsDelete() *cobra.Command {
	return c.switching(spec{anywhere: true, use: "delete NAME[@VERSION]", short: "Delete a plugin from the registry", example: "  mortise plugins delete mail@1.2.0"},
		func(ctx context.Context, q *ask) ([]host.PluginInfo, error) {
			info, err := q.Plugins().Delete(ctx, q.args[0])
			info.State = "deleted"
			return []host.PluginInfo{info}, err
		})
}

// switching is a command that changes the state of one plugin.
func (c *command) switching(s spec, do func(context.Context, *ask) ([]host.PluginInfo, error)) *cobra.Command {
	s.complete = c.completePlugins
	return c.change(s, func(ctx context.Context, q *ask) (done, error) {
		infos, err := do(ctx, q)
		return done{value: map[string]any{"plugins": infos}, said: view.PluginStates(infos...)}, view.WithNext(err)
	})
}
