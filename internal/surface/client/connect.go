package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/plugin"
)

// Connected is what became of the configuration of a program.
type Connected struct {
	Program string `json:"program"`
	File    string `json:"file"`
	Kept    string `json:"kept,omitempty"` // where what was there before is kept
	Changed bool   `json:"changed"`        // it differs from before; with --dry-run it would
	Diff    string `json:"diff,omitempty"`
}

// ConnectCommands return the commands that write the host that is meant into the configuration
// of a program, one for each program.
func ConnectCommands(out io.Writer, options func() Options) []*cobra.Command {
	var all []*cobra.Command
	for _, p := range editor.Programs() {
		all = append(all, connectCommand(p, out, options))
	}
	return all
}

func connectCommand(p editor.Program, out io.Writer, options func() Options) *cobra.Command {
	var project, undo, dry, inJSON, hook bool
	var list string
	cmd := &cobra.Command{
		Use:   p.Name,
		Short: "Let " + p.Title + " call the operations of this host, over MCP",
		Long: fmt.Sprintf(`Write this host into the configuration of %[2]s, which then starts 'mortise mcp' and
gets the operations that you may run as tools. The change is shown; the rest of the
file stays as it is, and what was there before is kept beside it. No token is
written: with --server, the host is asked as the context says.`, p.Name, p.Title),
		Example: fmt.Sprintf("  mortise connect %[1]s\n  mortise connect %[1]s --dry-run\n  mortise connect %[1]s --undo", p.Name),
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !(mcp.List{Mode: list}).Known() || list == mcp.ListRouted {
				return plugin.Errorf(plugin.CodeInvalidInput, "--list is all or search")
			}
			p := p
			if hook {
				p, _ = p.Hooks()
			}
			at, err := editor.FindPlaces()
			if err != nil {
				return err
			}
			place := ""
			if project {
				if place, err = os.Getwd(); err != nil {
					return err
				}
			}
			file, err := p.File(at, place)
			if err != nil {
				return err
			}
			entry, err := entryOf(options(), commandLine(list, hook))
			if err != nil && !undo { // to take it out needs its name alone
				return err
			}
			change, err := p.Put(file, entry)
			if undo {
				change, err = p.Undo(file, entry)
			}
			if err == nil && !dry {
				err = change.Write()
			}
			if err != nil {
				return err
			}
			return tellConnected(out, p, change, inJSON, undo, dry, hook)
		},
	}
	cmd.Flags().BoolVar(&inJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&project, "project", false, "in the project of the current directory, in place of your own configuration")
	if _, can := p.Hooks(); can {
		cmd.Flags().BoolVar(&hook, "hook", false, "have it ask the host before it uses a tool of its own too, by 'mortise hook "+p.Name+"'")
	}
	cmd.Flags().StringVar(&list, "list", "", "tools that are listed: all, or search, which finds them")
	cmd.Flags().BoolVar(&undo, "undo", false, "take the host out again")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the change, and make none")
	return cmd
}

// commandLine returns what a program starts mortise with.
func commandLine(list string, hook bool) []string {
	switch {
	case hook:
		return []string{"hook", hookProgram}
	case list != "":
		return []string{"mcp", "--list", list}
	}
	return []string{"mcp"}
}

// entryOf returns how mortise is started, for the host that is meant: all that decides which host,
// data directory and database is opened, and who acts. Errors: invalid_input for what would stand
// in the configuration in clear.
func entryOf(o Options, args []string) (editor.Entry, error) {
	self, err := os.Executable()
	if err != nil {
		return editor.Entry{}, err
	}
	e := editor.Entry{Name: editor.HostName, Command: self, Args: args, Env: map[string]string{}}
	if o.Server != "" {
		e.Args = append(e.Args, "--server", o.Server)
	}
	if o.Home != "" && o.Home != setup.DefaultHome() || os.Getenv("MORTISE_HOME") != "" { // which the program may not have
		if e.Env["MORTISE_HOME"], err = filepath.Abs(o.Home); err != nil {
			return e, err
		}
	}
	if o.Config != "" {
		if e.Env["MORTISE_CONFIG"], err = filepath.Abs(o.Config); err != nil {
			return e, err
		}
	}
	if o.As != "" {
		e.Env["MORTISE_AS"] = o.As
	}
	if o.Tenant != "" {
		e.Env["MORTISE_TENANT"] = o.Tenant
	}
	if o.Database != "" && (o.Server == "" || o.Server == Here) {
		if hasPassword(o.Database) {
			return e, plugin.Errorf(plugin.CodeInvalidInput, "the URL of the database has a password, which is not written into the configuration of another program: "+
				"give the password in ~/.pgpass, name the database in mortise.yaml, or let 'mortise serve' have it and connect with --server")
		}
		e.Env["MORTISE_DATABASE"] = o.Database
	}
	return e, nil
}

// hasPassword reports whether the URL of a database has a password, or may have one.
func hasPassword(database string) bool {
	u, err := url.Parse(database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return true
	}
	_, in := u.User.Password()
	query, err := url.ParseQuery(u.RawQuery)
	return in || err != nil || query.Has("password") || query.Has("sslpassword")
}

func tellConnected(out io.Writer, p editor.Program, c *editor.Change, inJSON, undo, dry, hook bool) error {
	told := Connected{Program: p.Name, File: c.File, Changed: c.Changes()}
	if c.Changes() {
		told.Kept, told.Diff = c.Kept, c.Diff()
	}
	if inJSON {
		text, err := json.MarshalIndent(told, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	said := told.Diff
	switch {
	case !told.Changed && undo:
		said = p.Title + " does not know the host: " + c.File
	case !told.Changed:
		said = p.Title + " knows the host already: " + c.File
	case dry:
		said += "nothing was changed"
	case undo:
		said += p.Title + " knows the host no more"
		if c.Left != "" {
			said += "; the file as it was before is still in " + c.Left
		}
	default:
		said += p.Title + " has the host from its next start on"
		if hook {
			said = told.Diff + p.Title + " asks the host before each use of a tool, from its next start on; without a policy that allows them all are denied (docs/decisions.md)"
		}
		if told.Kept != "" {
			said += "; what was there before is in " + told.Kept
		}
	}
	_, err := fmt.Fprintln(out, said)
	return err
}
