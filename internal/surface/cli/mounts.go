package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// A mounting is how servers are mounted.
type mounting struct {
	dry, force, off bool
}

func (m *mounting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.dry, "dry-run", false, "show what would be mounted, and write nothing")
	cmd.Flags().BoolVar(&m.force, "force", false, "write a manifest over one that was edited since")
	cmd.Flags().BoolVar(&m.off, "disabled", false, "register without enabling")
}

func (c *command) mcpMount() *cobra.Command {
	var m mounting
	var url, bearer string
	var env, secrets []string
	var server editor.Server
	return c.command(spec{
		anywhere: true,
		use:      "mount NAME (--url URL | -- COMMAND...)",
		short:    "Mount an MCP server: its tools become operations",
		long: `Mount a server of the Model Context Protocol as a plugin: its tools become operations,
behind policy, approvals and the ledger. A command runs in the sandbox, without network:
its program and the files that it names lie in /usr or /opt, or are ./FILE of mounts/NAME
in the data directory. A server at a URL is asked by the host, which adds the credential.

The definitions of its tools are pinned. A tool that changes is not called until
'mortise plugins approve', and 'mortise plugins diff' shows the change. A tool is an
operator with the effect mcp_call until the manifest says otherwise: edit
mounts/NAME/manifest.yaml in the data directory, and register that directory again.`,
		example: `  mortise secrets set TOKEN --system --plugin tracker
  mortise mcp mount tracker --url https://mcp.example.com/mcp --bearer TOKEN
  mortise mcp mount files --env ROOT=/srv/files -- /usr/local/bin/files-mcp
  mortise plugins show tracker`,
		args: cobra.MinimumNArgs(1),
		flags: func(cmd *cobra.Command) {
			m.flags(cmd)
			cmd.Flags().StringVar(&url, "url", "", "of a server that speaks streamable HTTP")
			cmd.Flags().StringVar(&bearer, "bearer", "", "the secret that is sent as Authorization: Bearer")
			cmd.Flags().StringArrayVar(&env, "env", nil, "a variable of the command, NAME=VALUE")
			cmd.Flags().StringArrayVar(&secrets, "secret-env", nil, "a variable of the command with the value of the secret of that name")
		},
		check: func(args []string) error {
			server = editor.Server{Name: args[0], Command: args[1:], URL: url, Env: map[string]string{}, Headers: map[string]string{}}
			switch {
			case (url == "") == (len(args) == 1):
				return usage{errors.New("give either --url URL, or the command after --")}
			case url == "" && bearer != "":
				return usage{errors.New("--bearer goes with --url: a command gets a secret by --secret-env")}
			case url != "" && len(env)+len(secrets) > 0:
				return usage{errors.New("--env and --secret-env go with a command: a server at a URL gets a secret by --bearer")}
			case editor.PluginName(args[0]) != args[0]:
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
		return c.mountAll(ctx, q, []editor.Server{server}, m, func(string) (string, bool) { return "", false })
	})
}

func (c *command) mcpImport() *cobra.Command {
	var m mounting
	var only []string
	var servers []editor.Server
	return c.command(spec{
		anywhere: true,
		use:      "import FILE",
		short:    "Mount the MCP servers of a client's configuration",
		long: `Mount the servers that the configuration of a client names: that of Claude Code,
Claude Desktop, Codex, Cursor, OpenCode, VS Code or Windsurf. Credentials in it become
secrets of the system, for that server alone; a variable that it names by ${NAME} is
taken from the environment, and otherwise said to be missing. The file stays as it is:
remove the servers there, and let the client use the host with 'mortise connect'.`,
		example: `  mortise mcp import ~/.cursor/mcp.json --dry-run
  mortise mcp import ~/.cursor/mcp.json
  mortise mcp import .mcp.json --only github`,
		flags: func(cmd *cobra.Command) {
			m.flags(cmd)
			cmd.Flags().StringSliceVar(&only, "only", nil, "these servers alone, by their names")
		},
		check: func(args []string) (err error) {
			if servers, err = editor.Servers(args[0]); err != nil {
				return err
			}
			for _, name := range only {
				if !slices.ContainsFunc(servers, func(s editor.Server) bool { return s.Name == name }) {
					return plugin.Errorf(plugin.CodeNotFound, "%s has no server %q", args[0], name)
				}
			}
			if len(only) > 0 {
				servers = slices.DeleteFunc(servers, func(s editor.Server) bool { return !slices.Contains(only, s.Name) })
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error { return c.mountAll(ctx, q, servers, m, os.LookupEnv) })
}

// mountAll mounts servers, each by itself, and shows what became of them. Any that failed makes
// the command fail.
func (c *command) mountAll(ctx context.Context, q *ask, servers []editor.Server, m mounting, lookup func(string) (string, bool)) error {
	rows := make([]view.Mount, 0, len(servers))
	taken := map[string]bool{}
	var failed error
	var failures []string
	for _, s := range servers {
		row := view.Mount{Server: s.Name, Plugin: editor.PluginName(s.Name)}
		var err error
		switch {
		case s.Off:
			row.Plugin, row.State, row.Why = "", "off", "it is switched off there"
		case ours(s):
			row.Plugin, row.State, row.Why = "", "skipped", "it is this host"
		case taken[row.Plugin]:
			err = plugin.Errorf(plugin.CodeConflict, "another server became the plugin %s: mount it by 'mortise mcp mount' under another name", row.Plugin)
		default:
			taken[row.Plugin] = true
			err = c.during("mounting "+s.Name, func() error { return c.mountOne(ctx, q, s, m, lookup, &row) })
		}
		if err != nil {
			row.State, row.Error, row.Why = "failed", errorOf(err), string(plugin.CodeOf(err))
			failures = append(failures, s.Name+": "+view.Message(err))
			failed = errors.Join(failed, err)
		}
		rows = append(rows, row)
		if ctx.Err() != nil {
			break
		}
	}
	if c.json && failed != nil {
		if err := c.print(map[string]any{view.Mounts.Key: rows, "error": errorOf(failed)}); err != nil {
			return err
		}
		return asReported(failed)
	}
	if err := rowsOf(c, view.Mounts, rows); err != nil {
		return err
	}
	for _, f := range failures {
		c.say("mortise: %s", f)
	}
	return asReported(failed)
}

// ours reports whether a server is this program, which clients have from 'mortise connect'.
func ours(s editor.Server) bool {
	return len(s.Command) > 1 && strings.TrimSuffix(filepath.Base(s.Command[0]), ".exe") == "mortise" && s.Command[1] == "mcp"
}

func (c *command) mountOne(ctx context.Context, q *ask, s editor.Server, m mounting, lookup func(string) (string, bool), row *view.Mount) error {
	p, err := s.Mount(row.Plugin, lookup)
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", s.Name, err)
	}
	row.Secrets, row.Plain = slices.Sorted(maps.Keys(p.Secrets)), p.Plain
	if row.Wants, err = unset(ctx, q, p); err != nil {
		return err
	}
	if m.dry {
		row.State = "planned"
		return nil
	}
	home, err := filepath.Abs(c.home)
	if err != nil {
		return err
	}
	row.Dir = filepath.Join(home, "mounts", p.Name)
	if err := writeManifest(row.Dir, p.Manifest, m.force); err != nil {
		return err
	}
	for _, name := range row.Secrets {
		if _, err := q.Secrets().Set(ctx, host.SecretPlace{Name: name, Plugin: p.Name, System: true}, p.Secrets[name]); err != nil {
			return err
		}
	}
	if len(row.Wants) > 0 { // its server cannot be asked for its tools
		row.State = "waiting"
		return nil
	}
	report, err := q.Plugins().Register(ctx, row.Dir, host.RegisterOptions{Enable: !m.off})
	if len(report.Failed) > 0 && err == nil {
		err = report.Failed[0].Err
	}
	for _, r := range report.Registered {
		row.State, row.Tools = string(r.Info.State), len(r.Info.Operations)
		if r.NotEnabled != nil {
			err = errors.Join(err, r.NotEnabled)
		}
		if r.Held {
			row.Why = fmt.Sprintf("'mortise plugins approve %s' accepts it", p.Name)
		}
	}
	return err
}

// unset returns the secrets that a plugin wants and that are not set for it.
func unset(ctx context.Context, q *ask, p editor.Mounted) ([]string, error) {
	if len(p.Wants) == 0 {
		return nil, nil
	}
	infos, err := q.Secrets().List(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range p.Wants {
		if !slices.ContainsFunc(infos, func(i host.SecretInfo) bool {
			return i.Name == name && i.Scope == host.SecretOfSystem && (i.Plugin == p.Name || i.Plugin == host.EveryPlugin)
		}) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// writeManifest writes the manifest of a mounted server, but not over one that a person has edited.
func writeManifest(dir string, manifest []byte, force bool) error {
	file := filepath.Join(dir, "manifest.yaml")
	was, err := os.ReadFile(file)
	switch {
	case err == nil && (force || bytes.Equal(was, manifest)):
	case err == nil:
		return plugin.Errorf(plugin.CodeConflict, "%s was edited and stays as it is: 'mortise plugins register %s' registers it, --force writes over it", file, quoted(dir))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, manifest, 0o600)
}
