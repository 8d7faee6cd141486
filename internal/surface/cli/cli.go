// Package cli is the command line: it turns arguments into calls, and answers
// into output and an exit status. Each command is a short file; what it does is
// done elsewhere, and how its answer reads is said in package view.
//
// The rules are:
//
//   - what a command was asked for goes to standard output, all else to standard error;
//   - --json prints exactly one JSON object on standard output, of failures too;
//   - an error says what happened, to what, and what to do next;
//   - the exit status tells the class of failure (see exit.go);
//   - nothing that came from a plugin reaches a terminal unescaped.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// Main runs one command line and returns the exit status.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	return Run(setup.NewScrubber(), args, in, out, errs)
}

// Run is Main with a scrubber of what is written, which the host has too.
func Run(scrubber *setup.Scrubber, args []string, in io.Reader, out, errs io.Writer) int {
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), stops...)
	defer stop()
	// A reader that goes away, as in `| head -1`, fails the write. It must not
	// end the host, whose books are still open.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	go func() { // a second Ctrl-C does not wait for anything
		<-ctx.Done()
		stop()
	}()
	written := &output{Writer: out}
	cleanOut, cleanErrs := scrubber.Writer(written), scrubber.Writer(errs)
	defer cleanErrs.Close()
	defer cleanOut.Close()
	c := &command{args: args, in: in, out: cleanOut, errs: terminal.NewScreen(cleanErrs), scrubber: scrubber}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(cleanOut)
	root.SetErr(c.errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = cleanOut.Close()
	}
	if err == nil {
		err = written.err()
	}
	if err == nil {
		return exitOK
	}
	var done reported
	var wrong usage
	status := exitStatus(err)
	if !errors.As(err, &done) && status != exitPipe {
		c.json = c.json || errors.As(err, &wrong) && wantsJSON(args)
		c.fail(err)
	}
	return status
}

// A command is one run of the program.
type command struct {
	args     []string // as they were given
	in       io.Reader
	out      io.Writer
	errs     *terminal.Screen
	scrubber *setup.Scrubber // of what is written to these

	home, config string // --home, --config
	database     string // --database
	as           string // --as
	tenant       string // --tenant
	server       string // --server
	embedded     bool   // --embedded
	homeGiven    bool   // --home is on the command line
	json         bool   // --json, where the command has it
	debug        bool   // --debug, where the command has it
	watches      bool   // --watch, where the command has it
	printed      bool   // a JSON object stands on standard output
}

// reported is an error that the user has been told already.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mortise",
		Short: "A governed plugin host for AI agents and automations",
		Long: `Mortise runs plugins written in any language and stands between what is asked
and what then happens: every call is resolved, checked against its schema, judged
by policy, run in a process of its own, and written to a ledger that can be verified.

  mortise new hello --lang python     write a plugin
  mortise run hello --set name=Ada    call it
  mortise ledger list                 see what was called, and how it ended`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a command that there is not
			return noCommand(cmd, cmd.Flags().Arg(0))
		}
		return usage{fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
	})
	root.Args = cobra.ArbitraryArgs // strict says what is wrong with them
	flags := root.PersistentFlags()
	flags.StringVar(&c.home, "home", setup.DefaultHome(), "data directory (or MORTISE_HOME)")
	flags.StringVar(&c.config, "config", os.Getenv("MORTISE_CONFIG"), "configuration file, mortise.yaml in the data directory if empty (or MORTISE_CONFIG)")
	flags.StringVar(&c.as, "as", os.Getenv("MORTISE_AS"), "who acts: a principal that the configuration names, its own principal if empty (or MORTISE_AS)")
	flags.StringVar(&c.tenant, "tenant", os.Getenv("MORTISE_TENANT"), "act for another tenant, as its owner; for the owner of the site alone (or MORTISE_TENANT)")
	flags.StringVar(&c.database, "database", "", "PostgreSQL database, postgres://...; SQLite in the data directory if nothing says otherwise (or MORTISE_DATABASE)")
	c.mannerFlags(root)
	for _, g := range c.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(exitHelp())
	root.SetHelpCommandGroupID(hostGroup)
	root.SetCompletionCommandGroupID(hostGroup)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	strict(root)
	c.versionFlag(root)
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
			topic, rest, _ := root.Find(args)
			if topic.HasSubCommands() && len(rest) > 0 {
				return noCommand(topic, rest[0])
			}
			return topic.Help()
		}
	}
	return root
}

// versionFlag gives the program --version. Cobra's own prints by text/template, which calls
// methods by name, so that the linker would keep every method in the program.
func (c *command) versionFlag(root *cobra.Command) {
	asked := root.Flags().BoolP("version", "v", false, "version for mortise")
	group := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			_, err := fmt.Fprintf(c.out, "mortise %s\n", host.Version)
			return err
		}
		return group(cmd, args)
	}
}

// A helpGroup is commands that the help of the program shows together.
type helpGroup struct {
	id, title string
	commands  []*cobra.Command
}

const hostGroup = "host" // what keeps a host running

// groups are all commands.
func (c *command) groups() []helpGroup {
	return []helpGroup{
		{"run", "Run and follow", []*cobra.Command{c.run(), c.calls(), c.approvals(), c.plans(), c.feeds(), c.sessions(), c.artifacts(), c.ledger()}},
		{"plugins", "Plugins", []*cobra.Command{c.new(), c.plugins(), c.check(), c.test(), c.route(), c.adapters()}},
		{"agents", "Agents", []*cobra.Command{c.agents(), c.chat(), c.mcp(), c.hook(), c.models()}},
		{"knowledge", "Knowledge", []*cobra.Command{c.knowledge(), c.reference()}},
		{"people", "Users and access", []*cobra.Command{c.policy(), c.identities(), c.users(), c.tenants(), c.tokens(), c.quotas(), c.secrets(), c.connect(), c.accounts()}},
		{"hosts", "Remote hosts", []*cobra.Command{c.login(), c.logout(), c.contexts()}},
		{hostGroup, "Host", []*cobra.Command{c.serve(), c.console(), c.doctor(), c.configuration(), c.backup(), c.restore(), c.recovery(), c.retention(), c.erase(), c.version()}},
	}
}

// strict makes wrong arguments errors of usage, and groups print their help.
func strict(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return usage{fmt.Errorf("%w: %s; see '%s --help'", err, cmd.UseLine(), cmd.CommandPath())}
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && cmd.Run == nil && cmd.RunE == nil {
		cmd.DisableFlagsInUseLine = true
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// wantsJSON reports whether --json stands on a command line that could not be
// read to its end.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// databaseURL is what the command line says, or the environment. It is no
// default of the flag, which would show a password in the help.
func (c *command) databaseURL() string { return cmp.Or(c.database, os.Getenv("MORTISE_DATABASE")) }

// place is where the host is.
func (c *command) place() setup.Place {
	return setup.Place{Home: c.home, Config: c.config, Database: c.databaseURL()}
}

// withJSON gives a command the flag --json.
func (c *command) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	return cmd
}

// open puts the host together. The caller closes it with closing.
func (c *command) open(ctx context.Context) (*app.App, error) {
	if c.home == "" {
		return nil, usage{errNoHome}
	}
	if err := c.isHere("this"); err != nil {
		return nil, err
	}
	return app.Open(ctx, app.Options{Home: c.home, Config: c.config, Database: c.databaseURL(), As: c.as, Tenant: c.tenant, Scrubber: c.scrubber, Notice: c.notice, Brief: true})
}

var errNoHome = errors.New("--home is empty; it names the data directory")

// closing closes the host and adds what goes wrong then to err.
func closing(a *app.App, err *error) { *err = errors.Join(*err, a.Close()) }

// print writes one JSON object on standard output.
func (c *command) print(value any) error {
	raw, err := json.Marshal(value, json.Deterministic(true), jsontext.EscapeForHTML(false), durations)
	if err != nil {
		return err
	}
	return c.printRaw(raw)
}

// durations are written as manifests and mortise.yaml have them: 30s, 2m0s.
var durations = json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
	return enc.WriteToken(jsontext.String(d.String()))
}))

// printRaw writes JSON: on one line for a program, indented for a person, whose
// terminal it cannot steer.
func (c *command) printRaw(raw jsontext.Value) error {
	if c.onTerminal() {
		if err := raw.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		raw = jsontext.Value(terminal.Escaped(string(raw)))
	}
	c.printed = true
	_, err := c.out.Write(append(raw, '\n'))
	return err
}

// onTerminal reports whether a person reads standard output.
func (c *command) onTerminal() bool { return terminal.Is(c.out) }

// watch shows what a call says while it runs.
func (c *command) watch(what string) *terminal.Watch {
	w := c.errs.Watch(what)
	w.Debug = c.debug
	return w
}

// during shows a person what is being done, where it takes long.
func (c *command) during(what string, do func() error) error {
	defer c.errs.Begin(what).End()
	return do()
}

// fail tells the user about an error. A program that asked for one JSON object
// gets no second one for what went wrong after the first.
func (c *command) fail(err error) {
	if c.json && !c.printed {
		_ = c.print(map[string]any{"status": plugin.Failed, "error": errorOf(err)})
		return
	}
	c.say("mortise: %s", view.Message(err))
	c.adviseDenied(err)
}

// say writes a line for a person on standard error.
func (c *command) say(format string, args ...any) {
	view.Say(c.errs, format, args...)
}

// notice tells the user what plugins run without.
func (c *command) notice(text string) { c.say("mortise: %s", text) }
