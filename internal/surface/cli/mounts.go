package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// mounts are what became of servers that were to be mounted.
var mounts = view.List[client.Mounted]{
	Key:    "servers",
	Fit:    view.OnScreen,
	Titles: []string{"SERVER", "PLUGIN", "STATE", "TOOLS", ""},
	Row: func(m client.Mounted) []string {
		tools := ""
		if m.Tools > 0 {
			tools = fmt.Sprint(m.Tools)
		}
		var all []string
		if m.Why != "" {
			all = append(all, m.Why)
		}
		if m.Warning != "" {
			all = append(all, m.Warning)
		}
		if len(m.Wants) > 0 {
			all = append(all, fmt.Sprintf("set %s: mortise secrets set %s --system --plugin %s", strings.Join(m.Wants, ", "), m.Wants[0], m.Plugin))
		}
		if len(m.Secrets) > 0 {
			all = append(all, "secrets: "+strings.Join(m.Secrets, ", "))
		}
		return []string{terminal.OneLine(m.Server, 40), terminal.Dash(m.Plugin), m.State, terminal.Dash(tools), terminal.OneLine(strings.Join(all, "; "), 200)}
	},
}

func mountFlags(cmd *cobra.Command, m *client.Mounting) {
	cmd.Flags().BoolVar(&m.Dry, "dry-run", false, "show what would be mounted, and write nothing")
	cmd.Flags().StringArrayVar(&m.Hosts, "host", nil, "a host that a command may reach: api.example.com, .example.com for all below, api.example.com:8443")
	cmd.Flags().BoolVar(&m.Plain, "plain", false, "write arguments and addresses that look like credentials into the manifest as they are")
	cmd.Flags().BoolVar(&m.Force, "force", false, "write a manifest over one that was edited since")
	cmd.Flags().BoolVar(&m.Disabled, "disabled", false, "register without enabling")
}

func (c *command) mcpMount() *cobra.Command {
	var m client.Mounting
	var url, bearer string
	var signs bool
	var env, secrets []string
	var server client.Server
	return c.command(spec{
		anywhere: true,
		use:      "mount NAME (--url URL | -- COMMAND...)",
		short:    "Mount an MCP server: its tools become operations",
		long: `Mount a server of the Model Context Protocol as a plugin: its tools become operations,
behind policy, approvals and the ledger. A command runs in the sandbox: its program and
the files that it names lie in /usr or /opt, or are ./FILE of mounts/NAME in the data
directory, and it reaches the hosts that --host declares, by a proxy of this host, or
none. A server at a URL is asked by the host, which adds the credential.

The definitions of its tools are pinned. A tool that changes is not called until
'mortise plugins approve', and 'mortise plugins diff' shows the change. A tool is an
operator with the effect mcp_call until the manifest says otherwise: edit
mounts/NAME/manifest.yaml in the data directory, and register that directory again.`,
		example: `  mortise secrets set TOKEN --system --plugin tracker
  mortise mcp mount tracker --url https://mcp.example.com/mcp --bearer TOKEN
  mortise mcp mount wiki --url https://wiki.example.com/mcp --oauth
  mortise mcp mount files --env ROOT=/srv/files -- /usr/local/bin/files-mcp
  mortise mcp mount github --host api.github.com --secret-env TOKEN -- /opt/github-mcp
  mortise mcp mount memory --host registry.example.com -- npx -y @example/memory@1.2.3
  mortise plugins show tracker`,
		args: cobra.MinimumNArgs(1),
		flags: func(cmd *cobra.Command) {
			mountFlags(cmd, &m)
			cmd.Flags().StringVar(&url, "url", "", "of a server that speaks streamable HTTP")
			cmd.Flags().StringVar(&bearer, "bearer", "", "the secret that is sent as Authorization: Bearer")
			cmd.Flags().BoolVar(&signs, "oauth", false, "the server signs users in: 'mortise mcp sign-in NAME' comes next")
			cmd.Flags().StringArrayVar(&env, "env", nil, "a variable of the command, NAME=VALUE")
			cmd.Flags().StringArrayVar(&secrets, "secret-env", nil, "a variable of the command with the value of the secret of that name")
		},
		check: func(args []string) error {
			server = client.Server{Name: args[0], Command: args[1:], URL: url, OAuth: signs, Env: map[string]string{}, Headers: map[string]string{}}
			switch {
			case (url == "") == (len(args) == 1):
				return usage{errors.New("give either --url URL, or the command after --")}
			case url == "" && bearer != "":
				return usage{errors.New("--bearer goes with --url: a command gets a secret by --secret-env")}
			case signs && (url == "" || bearer != ""):
				return usage{errors.New("--oauth goes with --url, and without --bearer: who signs in gives the server's credential")}
			case url != "" && len(env)+len(secrets) > 0:
				return usage{errors.New("--env and --secret-env go with a command: a server at a URL gets a secret by --bearer")}
			case url != "" && len(m.Hosts) > 0:
				return usage{errors.New("--host goes with a command: a server at a URL is the one host that is asked")}
			case client.PluginName(args[0]) != args[0]:
				return usage{fmt.Errorf("%q is no name of a plugin: letters, digits, dots, hyphens and underscores, beginning with a letter", args[0])}
			}
			if bearer != "" {
				server.Headers["Authorization"] = "Bearer ${" + bearer + "}"
			}
			for _, one := range env {
				name, value, found := strings.Cut(one, "=")
				if !found {
					return usage{fmt.Errorf("--env %s: it is NAME=VALUE", name)}
				}
				server.Env[name] = value
			}
			for _, name := range secrets {
				server.Env[name] = "${" + name + "}"
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		// The secrets that it names are those of the host, and none of this process.
		m.Lookup = func(string) (string, bool) { return "", false }
		return c.mountAll(ctx, q, []client.Server{server}, m)
	})
}

func (c *command) mcpImport() *cobra.Command {
	var m client.Mounting
	var only []string
	var servers []client.Server
	return c.command(spec{
		anywhere: true,
		use:      "import FILE",
		short:    "Mount the MCP servers of a client's configuration",
		long: `Mount the servers that the configuration of a client names: that of Claude Code,
Claude Desktop, Codex, Cursor, OpenCode, VS Code or Windsurf. Credentials in its
variables and headers become secrets of the system, for that server alone; a variable
that it names by ${NAME} is taken from the environment, and otherwise said to be
missing. A server with a credential in an argument or an address is refused. Commands
reach the hosts that --host declares, or none; --only says for which servers that is.
What npx fetches comes from the registry of npm, and is pinned as far as its version is.
The file stays as it is: remove the servers there, and let the client use the host with
'mortise connect'.`,
		example: `  mortise mcp import ~/.cursor/mcp.json --dry-run
  mortise mcp import ~/.cursor/mcp.json
  mortise mcp import .mcp.json --only github --host registry.example.com --host api.github.com`,
		flags: func(cmd *cobra.Command) {
			mountFlags(cmd, &m)
			cmd.Flags().StringSliceVar(&only, "only", nil, "these servers alone, by their names")
		},
		check: func(args []string) (err error) {
			if servers, err = client.ReadServers(args[0]); err != nil {
				return err
			}
			for _, name := range only {
				if !slices.ContainsFunc(servers, func(s client.Server) bool { return s.Name == name }) {
					return plugin.Errorf(plugin.CodeNotFound, "%s has no server %q", args[0], name)
				}
			}
			if len(only) > 0 {
				servers = slices.DeleteFunc(servers, func(s client.Server) bool { return !slices.Contains(only, s.Name) })
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		m.Lookup = os.LookupEnv
		return c.mountAll(ctx, q, servers, m)
	})
}

// mountAll mounts servers, each by itself, and shows what became of them. Any that failed makes
// the command fail.
func (c *command) mountAll(ctx context.Context, q *ask, servers []client.Server, m client.Mounting) error {
	m.Home = c.home
	var rows []client.Mounted
	var failed error
	_ = c.during("mounting servers", func() error {
		for row, err := range m.All(ctx, q.Host, servers) {
			failed = errors.Join(failed, err)
			if err != nil {
				row.State, row.Why, row.Error = "failed", string(plugin.CodeOf(err)), errorOf(err)
			}
			rows = append(rows, row)
		}
		return nil
	})
	if c.json && failed != nil {
		if err := c.print(map[string]any{mounts.Key: rows, "error": errorOf(failed)}); err != nil {
			return err
		}
		return asReported(failed)
	}
	if err := rowsOf(c, mounts, rows); err != nil {
		return err
	}
	for _, row := range rows {
		if row.Error != nil {
			c.say("mortise: %s: %v: %v", row.Server, row.Error["code"], row.Error["message"])
		}
	}
	return asReported(failed)
}
