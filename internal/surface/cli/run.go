package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
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
	dryRun    string   // "", all or reads
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

A call that policy wants a person's word for is waited for: this says what it waits
for, and who may approve it where. Ctrl-C, and the end of --wait, leave it waiting;
'mortise calls wait' goes on with it.`,
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
		return usage{fmt.Errorf("%w; members of the input stand after --: '%s'; see '%s --help'", err, c.afterDashes(cmd, err), cmd.CommandPath())}
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.input, "input", "i", "", "the input: a JSON object, @FILE, or - for standard input")
	flags.StringArrayVarP(&f.set, "set", "s", nil, "set a member of the input: key=value, or outer.inner=value (repeatable)")
	flags.StringArrayVarP(&f.artifacts, "artifact", "a", nil, "add a file to the input's artifacts or, for an investigation plugin, to the session; art_... is one of the session's (repeatable)")
	flags.StringVar(&f.session, "session", os.Getenv("MORTISE_SESSION"), "the session that the call belongs to, by its id or the beginning of it (or MORTISE_SESSION)")
	flags.Var(idempotencyKey{&f.key}, "key", "idempotency key: a second call with it gets the first one's answer")
	flags.StringVar(&f.envelope, "envelope", "", "with --json, answer as a contract spells it, with the HTTP status beside it: shu")
	flags.StringVar(&f.dryRun, "dry-run", "", "change nothing and send nothing, and show what would have been; =reads lets it read outside")
	flags.Lookup("dry-run").NoOptDefVal = dryAll
	flags.BoolVar(&f.fresh, "fresh", false, "do not answer with an earlier result")
	flags.DurationVar(&f.timeout, "timeout", 0, "a shorter time limit than the operation's own")
	flags.StringArrayVar(&f.labels, "label", nil, "what the input is tainted with: untrusted or private (repeatable)")
	flags.BoolVar(&f.noWait, "no-wait", false, "queue the call and come back at once; status 10, and the call's id")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for a call that does not end here; 0 is for ever. Without it, only approvals are waited for")
	flags.BoolVar(&c.debug, "debug", false, "show diagnostics, and everything the plugin logs")
	return c.withJSON(cmd)
}

func (c *command) runOnce(ctx context.Context, ref string, f runFlags) (err error) {
	if f.timeout < 0 {
		return usage{fmt.Errorf("--timeout %s: it cannot be negative", f.timeout)}
	}
	if err := f.check(c.json); err != nil {
		return err
	}
	input, err := c.readInput(f.input)
	if err != nil {
		return err
	}
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closing(a, &err)
	if isPath(ref) {
		if ref, err = c.linkPath(ctx, a, a.Principal, ref); err != nil {
			return err
		}
	}
	target, _ := a.Registry.Resolve(ctx, ref) // where there is none, the call says so, on the record
	if target == nil {
		ref, target = c.byOp(ctx, a, ref, input, f)
	}
	investigates := target != nil && target.Manifest.Contract.Investigates
	if err := f.checkDry(investigates); err != nil {
		return err
	}
	in, err := c.sessionOf(ctx, a, target, f.session)
	if err != nil {
		return c.refuseRun(ref, in.ID, investigates, err)
	}
	input, files, err := c.compose(ctx, a, target, in, input, f)
	if err != nil {
		return c.refuseRun(ref, in.ID, investigates, err)
	}
	input, overlay, err := c.paramsOf(target, input)
	if err != nil {
		return err
	}
	var exports []export
	if investigates && f.dryRun == "" {
		if exports, err = f.exports(input); err == nil {
			input, err = c.lendExports(ctx, a, in, exports, input)
		}
		if err != nil {
			return c.refuseRun(ref, in.ID, investigates, err)
		}
	}
	watch := c.watch(ref + " runs")
	watch.Quiet = investigates // as the console of its contract's host
	call := plugin.Call{
		Tenant:    a.Config.Tenant,
		Principal: a.Principal,
		Asker:     host.OSUser(),
		Origin:    plugin.OriginCLI,
		Session:   in.ID,
		Operation: ref,
		Input:     input,
		Overlay:   overlay,
		Files:     files,
		Key:       f.key,
		Fresh:     f.fresh,
		Timeout:   f.timeout,
		Labels:    plugin.Labels(nil, f.labels),
		NoWait:    f.noWait,
		Patience:  f.wait,
		Dry:       f.dryRecorder(),
		Observe:   watch.Hear,
	}
	var res plugin.Result
	begun := time.Now()
	if call.Dry == nil && f.session != "" && kept(target) {
		res, err = c.callKept(ctx, a, target, call)
	} else {
		res, err = a.Kernel.Call(ctx, call)
	}
	watch.End()
	if err == nil {
		res, err = currentSnapshot(ctx, a, res)
	}
	if err == nil && !f.noWait && (res.Status == plugin.PendingApproval || res.Status == plugin.InProgress && f.waits) {
		limit := f.wait
		if res.Status == plugin.InProgress && limit > 0 { // the call with this key was waited for already
			limit = max(limit-time.Since(begun), time.Millisecond)
		}
		res, err = c.hold(ctx, a, res, limit)
	}
	var done []exported
	if err == nil && res.Status == plugin.Succeeded {
		done, err = c.export(ctx, a, in.ID, exports, res.Artifacts)
	} else if err == nil && !res.Status.Ended() {
		c.sayUnwritten(in.ID, res.CallID, exports)
	}
	// The ledger is closed before anything is printed, so that an answer that a
	// user has seen is on record, whatever happens next.
	if closed := c.closeBooks(a, err != nil || target != nil && len(target.Operation.Effects) > 0 && call.Dry == nil); closed != nil {
		return closed
	}
	answered := c.answerAs(ref, in.ID, target, f, res, done, err)
	if !c.json {
		c.adviseRun(ctx, a, target, ref, f, err)
	}
	return answered
}

// closeBooks writes what the ledger has behind. Where that fails an answer is
// withheld, but for one that stands on its own: a call that was claimed is
// settled before it is answered, and an error is one in any case.
func (c *command) closeBooks(a *app.App, stands bool) error {
	err := a.Ledger.Close()
	if err == nil || !stands {
		return err
	}
	c.say("mortise: the ledger could not write what was behind: %s", messageOf(err))
	return nil
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

// refuseRun answers for a call that was not made, in the words of its contract.
func (c *command) refuseRun(ref, session string, investigates bool, err error) error {
	var wrong usage
	if !investigates || !c.json || errors.As(err, &wrong) {
		return err
	}
	return c.answerEventMill(ref, session, plugin.Result{}, nil, err)
}

// answer prints a result, or why there is none. One that has not ended is
// reported as unfinished.
func (c *command) answer(ref string, res plugin.Result, err error) error {
	var waits unfinished
	if errors.As(err, &waits) || err == nil && res.Status != "" && !res.Status.Ended() {
		if waits.error == nil {
			waits.error = errNotFinished
		}
		return c.answerUnfinished(res, waits)
	}
	if !c.debug {
		res.Diagnostics = nil
	}
	if c.json {
		return c.answerJSON(res, err)
	}
	if err != nil {
		c.say("mortise: %s", messageOf(err))
		if _, statErr := os.Stat(ref); statErr == nil && plugin.CodeOf(err) == plugin.CodeNotFound {
			c.say("to run the plugin in the directory of that name: mortise run ./%s", ref)
		} else if next := nextStep(err); next != "" {
			c.say("%s", next)
		}
		c.adviseDenied(err)
		if res.CallID != "" && (res.Status == plugin.Unknown || plugin.CodeOf(err) == plugin.CodeOutcomeUnknown) {
			c.say("'mortise calls show %s' has what is known of it", res.CallID)
		} else if res.CallID != "" {
			c.say("call %s failed; 'mortise ledger show %s' has the record", res.CallID, res.CallID)
		}
		return reported{err}
	}
	if res.Summary != "" {
		fmt.Fprintf(c.out, "%s\n\n", terminal.Safe(res.Summary))
	}
	if err := terminal.Value(c.out, jsontext.Value(res.Data), c.width()); err != nil {
		return err
	}
	if len(res.Diagnostics) > 0 {
		c.say("diagnostics: %s", res.Diagnostics)
	}
	how := terminal.Milliseconds(res.Metrics["latency_ms"])
	switch {
	case res.Replayed:
		how = "the first answer to this key"
	case res.Cached:
		how = "an earlier answer; --fresh asks again"
	}
	c.say("%s %s, call %s, %s", res.Operation, res.Version, res.CallID, how)
	return nil
}

// answerUnfinished prints how a call stands, and how to go on with it.
func (c *command) answerUnfinished(res plugin.Result, why unfinished) error {
	if c.json {
		if err := c.print(res); err != nil {
			return err
		}
	} else {
		if _, err := fmt.Fprintln(c.out, res.CallID); err != nil {
			return err
		}
		c.say("%s", c.howToFollow(res))
	}
	return reported{why}
}

// answerJSON prints one object: the result, with an error beside it if it failed.
func (c *command) answerJSON(res plugin.Result, err error) error {
	if err == nil {
		return c.print(res)
	}
	if res.Status != plugin.Unknown {
		res.Status = plugin.Failed
	}
	raw, encodeErr := json2.Marshal(res, json2.Deterministic(true))
	if encodeErr != nil {
		return encodeErr
	}
	failure, encodeErr := json2.Marshal(errorOf(err), json2.Deterministic(true))
	if encodeErr != nil {
		return encodeErr
	}
	raw = append(append(append(raw[:len(raw)-1], `,"error":`...), failure...), '}')
	if printErr := c.printRaw(raw); printErr != nil {
		return printErr
	}
	return reported{err}
}

// isPath reports whether a reference is the path of a plugin rather than a name.
func isPath(ref string) bool {
	if strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") || filepath.IsAbs(ref) || ref == "." {
		return true
	}
	switch filepath.Ext(ref) {
	case ".py", ".ts", ".js", ".mjs":
		_, err := os.Stat(ref)
		return err == nil
	}
	return false
}

// linkPath registers the plugin at a path for development and returns its name.
func (c *command) linkPath(ctx context.Context, a *app.App, by plugin.Principal, path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() && !hasManifest(path) {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s holds no %s: name the directory or the source file of one plugin, or use 'mortise plugins register' for a tree of them",
			path, strings.Join(contract.Manifests(), ", "))
	}
	defer c.errs.Begin("linking " + path).End()
	report, err := a.As(by).Plugins().Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	if err != nil {
		return "", err
	}
	return report.Registered[0].Name, nil
}

func hasManifest(dir string) bool {
	return contract.HasManifest(dir)
}

// maxInput bounds what is read as input, before the host's own limit applies.
const maxInput = 64 << 20

// readInput reads the value of --input.
func (c *command) readInput(given string) (json.RawMessage, error) {
	return c.readValue("the input", "--input", given)
}

// readValue reads JSON that a flag gives: as it stands, @FILE, or - for standard
// input. It is nil where the flag is not given.
func (c *command) readValue(what, flag, given string) (json.RawMessage, error) {
	from := given
	var raw []byte
	var err error
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		from = "standard input"
		raw, err = io.ReadAll(io.LimitReader(c.in, maxInput+1))
	case strings.HasPrefix(given, "@"):
		from = given[1:]
		var file *os.File
		if file, err = os.Open(from); err == nil {
			raw, err = io.ReadAll(io.LimitReader(file, maxInput+1))
			file.Close()
		}
	default:
		from, raw = flag, []byte(given)
	}
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "reading %s from %s: %w", what, from, err)
	}
	if len(raw) > maxInput {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%s from %s has more than %d MiB", what, from, maxInput>>20)
	}
	value := jsontext.Value(bytes.TrimSpace(raw))
	if len(value) == 0 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s from %s is empty; write {} for an object without members", what, from)
	}
	if err := value.Compact(); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s from %s is not one JSON value: %s; text goes in quotes, or with --set key=value", what, from, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return json.RawMessage(value), nil
}

// compose adds what stands after --, --set and --artifact to the input, and
// returns the files of --artifact that are handed on beside it.
func (c *command) compose(ctx context.Context, a *app.App, t *plugin.Target, in session.Session, input json.RawMessage, f runFlags) (json.RawMessage, []plugin.File, error) {
	object, arguments, err := readArguments(f.arguments)
	if err != nil {
		return nil, nil, err
	}
	if object != "" {
		if len(input) > 0 {
			return nil, nil, usage{errors.New("the input is given twice: with --input, and as an object after --")}
		}
		if input, err = c.readValue("the input", "the object after --", object); err != nil {
			return nil, nil, err
		}
	}
	investigates := t != nil && t.Manifest.Contract.Investigates
	places := f.typedPlaces(object, arguments)
	if len(f.set) == 0 && len(f.artifacts) == 0 && len(arguments) == 0 {
		if investigates && in.ID != "" && len(places) > 0 {
			input, err = c.takeTypedObject(ctx, a, in, places, input)
		}
		return input, nil, err
	}
	members := map[string]any{}
	if len(input) > 0 {
		if err := decodeExact(input, &members); err != nil || members == nil { // null leaves no map
			return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "--set, --artifact and arguments after -- add to an object, and the input is none")
		}
	}
	var schema json.RawMessage
	if t != nil {
		schema = t.Operation.Input
	}
	seen := map[string]bool{}
	for _, arg := range arguments {
		if seen[arg.name] && !investigates { // there the last one counts
			return nil, nil, usage{fmt.Errorf("--%s is given twice after --", arg.name)}
		}
		seen[arg.name] = true
		switch {
		case arg.bare:
			members[arg.name] = true
		case investigates:
			members[arg.name] = argumentOf(arg.text, propertyOf(schema, arg.name))
		default:
			members[arg.name] = valueOf(arg.text, schema, []string{arg.name})
		}
	}
	if err := setMembers(members, f.set, schema); err != nil {
		return nil, nil, err
	}
	var files []plugin.File
	if !investigates {
		files, err = c.handOn(ctx, a, in, members, f.artifacts)
	} else if in.ID != "" {
		var list []session.Artifact
		if list, err = c.takeArtifacts(ctx, a, in, f); err == nil {
			err = (&typed{command: c, app: a, session: in}).take(ctx, places, members)
		}
		if err == nil {
			err = c.nameArtifact(ctx, a, t, in, members, list)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	input, err = json2.Marshal(members, json2.Deterministic(true))
	return input, files, err
}

// decodeExact reads an object whose numbers stay as they are spelled.
func decodeExact(raw []byte, into *map[string]any) error {
	numbers := json2.UnmarshalFromFunc(func(dec *jsontext.Decoder, value *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported // tells the decoder to read the value in its own way
		}
		number, err := dec.ReadValue()
		*value = number.Clone()
		return err
	})
	return json2.Unmarshal(raw, into, json2.WithUnmarshalers(numbers))
}
