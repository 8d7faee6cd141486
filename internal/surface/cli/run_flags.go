package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// runFlags are the flags of `mortise run`.
type runFlags struct {
	input     string
	set       []string
	artifacts []string
	key       string
	fresh     bool
	timeout   time.Duration
	labels    []string
	noWait    bool
	wait      time.Duration
	waits     bool // --wait was given
	session   string
	envelope  string
	dryRun    string   // host.DryAll or host.DryReads makes it a dry run
	arguments []string // what stands after --
}

func (c *command) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run NAME[/OPERATION][@VERSIONS] [-- --NAME VALUE ...]",
		Short: "Call an operation of a plugin",
		Long: `Call an operation of a plugin and print its result.

NAME alone is enough where the plugin has one operation, or where the input of a Shu
plugin says op. In place of a name, the
path of a plugin's directory or source file is registered with --dev first.

The input is a JSON object: given whole with --input, or member by member with
--set, or both, in which case --set has the last word. The value of --set is read
as JSON where the operation's schema does not ask for text, and else as text.

After -- stand members of the input as well: --name value, a bare --flag for true,
or one JSON object. For an investigation plugin these values are text, but for what
its schema calls an integer, number, boolean, object or array (a,b,c or JSON).

An investigation plugin works in a session: the one that --session names, or a new
one. --artifact registers a file in it, once, and tells the plugin of it; what plugins
keep in memory is there for the next call of a session that is named. A file that an
argument asks such a plugin to write, as --output_path does, is registered as well, and
written there when the call has succeeded.

If policy requires approval, the command waits, and says what for and who may approve
it where. Ctrl-C, and the end of --wait, leave the call waiting; 'mortise calls wait'
goes on with it.`,
		Example: `  mortise run pattern_extractor --artifact /var/log/dpkg.log
  mortise run hello --set name=Ada --json
  mortise run mail/send@1.x --input @mail.json --key order-4711
  mortise run ./word_count.py --set text="to be or not"
  mortise run mail/send --input @mail.json --dry-run
  mortise run mail/send --input @mail.json --no-wait
  mortise run log_pattern_search --session sess_4f2a --artifact auth.log -- --pattern root`,
		Args:              oneAndArguments,
		ValidArgsFunction: c.completeOperations,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.waits = cmd.Flags().Changed("wait")
			f.arguments = args[1:]
			return c.runOperation(cmd.Context(), args[0], f)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage{fmt.Errorf("%w; members of the input stand after --: '%s'; see '%s --help'", err, terminal.OneLine(input.AfterDashes(c.args, cmd.CommandPath(), err), 300), cmd.CommandPath())}
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.input, "input", "i", "", "the input: a JSON object, @FILE, or - for standard input")
	setFlag(cmd, &f.set)
	flags.StringArrayVarP(&f.artifacts, "artifact", "a", nil, "add a file to the input's artifacts or, for an investigation plugin, to the session; art_... is one of the session's (repeatable)")
	flags.StringVar(&f.session, "session", os.Getenv("MORTISE_SESSION"), "the session that the call belongs to, by its id or the beginning of it (or MORTISE_SESSION)")
	flags.Var(idempotencyKey{&f.key}, "key", "idempotency key: a second call with it gets the first one's answer")
	flags.StringVar(&f.envelope, "envelope", "", "with --json, answer in the form of a contract: kernel, or shu with the HTTP status beside it")
	flags.StringVar(&f.dryRun, "dry-run", "", "change nothing and send nothing, and show what would have been; =reads lets it read outside")
	flags.Lookup("dry-run").NoOptDefVal = host.DryAll
	flags.BoolVar(&f.fresh, "fresh", false, "do not answer with an earlier result")
	flags.DurationVar(&f.timeout, "timeout", 0, "a shorter time limit than the operation's own")
	labelFlag(cmd, &f.labels, "the input is")
	flags.BoolVar(&f.noWait, "no-wait", false, "queue the call and come back at once; status 10, and the call's id")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for a call that does not end here; 0 is for ever. Without it, only approvals are waited for")
	flags.BoolVar(&c.debug, "debug", false, "show diagnostics, and everything the plugin logs")
	return c.withJSON(cmd)
}

// oneAndArguments is the one name of what is run, and whatever stands after --.
func oneAndArguments(cmd *cobra.Command, args []string) error {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		args = args[:n]
	}
	if len(args) > 1 {
		return fmt.Errorf("%s after %s: members of the input are given with --set key=value, or after --", quoted(args[1]), quoted(args[0]))
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// check refuses flags that cannot be meant.
func (f *runFlags) check(json bool) error {
	switch {
	case f.timeout < 0:
		return usage{fmt.Errorf("--timeout %s: it cannot be negative", f.timeout)}
	case f.envelope != "" && !slices.Contains(host.Envelopes(), f.envelope):
		return usage{fmt.Errorf("--envelope %s: there is %s", f.envelope, strings.Join(host.Envelopes(), ", "))}
	case f.envelope != "" && !json:
		return usage{errors.New("--envelope goes with --json")}
	case f.wait < 0:
		return usage{fmt.Errorf("--wait %s: it cannot be negative", f.wait)}
	case f.dryRun != "" && f.dryRun != host.DryAll && f.dryRun != host.DryReads:
		return usage{fmt.Errorf("--dry-run=%s: there is --dry-run, which asks nothing outside, and --dry-run=%s", f.dryRun, host.DryReads)}
	case f.dryRun != "" && (f.noWait || f.waits || f.envelope != ""):
		return usage{errors.New("--dry-run does not go with --wait, --no-wait or --envelope: it ends here, and no contract has a place for what it finds")}
	case f.noWait && f.waits:
		return usage{errors.New("--wait and --no-wait: only one of them")}
	}
	return checkLabels(f.labels)
}

// checkDry refuses a dry run that would have to change something before it
// begins: an investigation plugin works in a session, on what is registered there.
func (f *runFlags) checkDry(investigates bool) error {
	if f.dryRun == "" || !investigates {
		return nil
	}
	if f.session == "" {
		return usage{errors.New("--dry-run makes no session: name one that there is with --session")}
	}
	for _, given := range f.artifacts {
		if !artifactID.MatchString(given) {
			return usage{fmt.Errorf("--dry-run registers no files: in place of --artifact %s name an artifact of the session; 'mortise artifacts add' registers one", given)}
		}
	}
	return nil
}
