package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/registry"
	"github.com/mortise-dev/mortise/internal/registry/dialect"
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
}

func (c *command) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run NAME[/OPERATION][@VERSIONS]",
		Short: "Call an operation of a plugin",
		Long: `Call an operation of a plugin and print its result.

NAME alone is enough where the plugin has one operation. In place of a name, the
path of a plugin's directory or source file is registered with --dev first.

The input is a JSON object: given whole with --input, or member by member with
--set, or both, in which case --set has the last word. The value of --set is read
as JSON where the operation's schema does not ask for text, and else as text.`,
		Example: `  mortise run pattern_extractor --artifact /var/log/dpkg.log
  mortise run hello --set name=Ada --json
  mortise run mail/send@1.x --input @mail.json --key order-4711
  mortise run ./word_count.py --set text="to be or not"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeOperations,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.runOperation(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.input, "input", "i", "", "the input: a JSON object, @FILE, or - for standard input")
	flags.StringArrayVarP(&f.set, "set", "s", nil, "set a member of the input: key=value, or outer.inner=value (repeatable)")
	flags.StringArrayVarP(&f.artifacts, "artifact", "a", nil, "add a file to the input's artifacts (repeatable)")
	flags.StringVar(&f.key, "key", "", "idempotency key: a second call with it gets the first one's answer")
	flags.BoolVar(&f.fresh, "fresh", false, "do not answer with an earlier result")
	flags.DurationVar(&f.timeout, "timeout", 0, "a shorter time limit than the operation's own")
	flags.BoolVar(&c.debug, "debug", false, "show diagnostics, and everything the plugin logs")
	return c.withJSON(cmd)
}

func (c *command) runOperation(ctx context.Context, ref string, f runFlags) (err error) {
	if f.timeout < 0 {
		return usage{fmt.Errorf("--timeout %s: it cannot be negative", f.timeout)}
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
		if ref, err = linkPath(ctx, a, c.principal(a), ref); err != nil {
			return err
		}
	}
	if input, err = c.compose(ctx, a, ref, input, f); err != nil {
		return err
	}
	watch := c.watch()
	res, err := a.Kernel.Call(ctx, plugin.Call{
		Tenant:    a.Config.Tenant,
		Principal: plugin.Principal{Type: "user", ID: a.Config.Principal, Scopes: []string{"*"}},
		Origin:    plugin.OriginCLI,
		Operation: ref,
		Input:     input,
		Key:       f.key,
		Fresh:     f.fresh,
		Timeout:   f.timeout,
		Observe:   watch.hear,
	})
	watch.end()
	// The books are closed before anything is printed, so that whatever happens
	// next, an answer that somebody has seen is on record.
	if err := a.Ledger.Close(); err != nil {
		return err
	}
	return c.answer(ref, res, err)
}

// answer prints a result, or why there is none.
func (c *command) answer(ref string, res plugin.Result, err error) error {
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
		if res.CallID != "" {
			c.say("call %s failed; 'mortise ledger show %s' has the record", res.CallID, res.CallID)
		}
		return reported{err}
	}
	if res.Summary != "" {
		fmt.Fprintf(c.out, "%s\n\n", safe(res.Summary))
	}
	if err := renderValue(c.out, jsontext.Value(res.Data), c.width()); err != nil {
		return err
	}
	if len(res.Diagnostics) > 0 {
		c.say("diagnostics: %s", res.Diagnostics)
	}
	how := ms(res.Metrics["latency_ms"])
	switch {
	case res.Replayed:
		how = "the first answer to this key"
	case res.Cached:
		how = "an earlier answer; --fresh asks again"
	case res.Status == plugin.InProgress:
		how = "still at work under this key"
	}
	c.say("%s %s, call %s, %s", res.Operation, res.Version, res.CallID, how)
	return nil
}

// answerJSON prints one object: the result, with an error beside it if it failed.
func (c *command) answerJSON(res plugin.Result, err error) error {
	if err == nil {
		return c.print(res)
	}
	res.Status = plugin.Failed
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
func linkPath(ctx context.Context, a *app.App, by plugin.Principal, path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() && !hasManifest(path) {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s holds no %s: name the directory or the source file of one plugin, or use 'mortise plugins register' for a tree of them",
			path, strings.Join(dialect.Manifests, ", "))
	}
	report, err := a.Plugins(by).Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	if err != nil {
		return "", err
	}
	return report.Registered[0].Name, nil
}

func hasManifest(dir string) bool {
	return slices.ContainsFunc(dialect.Manifests, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// maxInput bounds what is read as input, before the host's own limit applies.
const maxInput = 64 << 20

// readInput reads the value of --input.
func (c *command) readInput(given string) (json.RawMessage, error) {
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
		from, raw = "--input", []byte(given)
	}
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "reading the input from %s: %w", from, err)
	}
	if len(raw) > maxInput {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the input from %s has more than %d MiB", from, maxInput>>20)
	}
	value := jsontext.Value(bytes.TrimSpace(raw))
	if len(value) == 0 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input from %s is empty; write {} for an input without members", from)
	}
	if err := value.Compact(); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input from %s is not one JSON value: %s; text goes in with --set key=value", from, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return json.RawMessage(value), nil
}

// compose adds --set and --artifact to the input.
func (c *command) compose(ctx context.Context, a *app.App, ref string, input json.RawMessage, f runFlags) (json.RawMessage, error) {
	if len(f.set) == 0 && len(f.artifacts) == 0 {
		return input, nil
	}
	members := map[string]any{}
	if len(input) > 0 {
		if err := decodeExact(input, &members); err != nil || members == nil { // null leaves no map
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "--set and --artifact add to an object, and the input is none")
		}
	}
	var schema json.RawMessage
	if t, err := a.Registry.Resolve(ctx, ref); err == nil { // if not, the call says so, on the record
		schema = t.Operation.Input
	}
	for _, pair := range f.set {
		path, text, found := strings.Cut(pair, "=")
		switch {
		case !found || path == "":
			return nil, usage{fmt.Errorf("--set %s: write key=value", pair)}
		case !utf8.ValidString(pair):
			return nil, usage{fmt.Errorf("--set %s: it is not UTF-8, as JSON must be", pair)}
		}
		if err := setMember(members, strings.Split(path, "."), text, schema); err != nil {
			return nil, usage{fmt.Errorf("--set %s: %w", pair, err)}
		}
	}
	if err := addArtifacts(members, f.artifacts); err != nil {
		return nil, err
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// setMember puts one value into its place.
func setMember(members map[string]any, path []string, text string, schema json.RawMessage) error {
	wanted := schema
	for i, name := range path {
		wanted = propertyOf(wanted, name)
		if i == len(path)-1 {
			members[name] = valueOf(text, wanted)
			return nil
		}
		switch inner := members[name].(type) {
		case nil:
			next := map[string]any{}
			members[name], members = next, next
		case map[string]any:
			members = inner
		default:
			return fmt.Errorf("%s is not an object", strings.Join(path[:i+1], "."))
		}
	}
	return nil
}

// propertyOf returns the schema of a property, nil where it is not known.
func propertyOf(schema json.RawMessage, name string) json.RawMessage {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) == 0 || json2.Unmarshal(schema, &object) != nil {
		return nil
	}
	return object.Properties[name]
}

// valueOf reads the text of --set: as it stands where the schema wants text or
// it is no JSON, else as JSON.
func valueOf(text string, schema json.RawMessage) any {
	var wanted struct {
		Type any `json:"type"`
	}
	if len(schema) > 0 && json2.Unmarshal(schema, &wanted) == nil && wanted.Type == "string" {
		return text
	}
	if value := jsontext.Value(text); value.IsValid() {
		return value
	}
	return text
}

// addArtifacts adds an item for each file to the member artifacts.
func addArtifacts(members map[string]any, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	list, ok := members["artifacts"].([]any)
	if !ok && members["artifacts"] != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input's artifacts are not a list")
	}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(absolute)
		switch {
		case err != nil:
			return plugin.Errorf(plugin.CodeInvalidInput, "--artifact: %w", err)
		case info.IsDir():
			return plugin.Errorf(plugin.CodeInvalidInput, "--artifact: %s is a directory; name a file", path)
		case !utf8.ValidString(absolute):
			return plugin.Errorf(plugin.CodeInvalidInput, "--artifact: the name %s is not UTF-8, as JSON must be; link the file under another", path)
		}
		list = append(list, map[string]any{"path": absolute, "name": filepath.Base(absolute), "size": info.Size()})
	}
	members["artifacts"] = list
	return nil
}

// decodeExact reads an object whose numbers stay as they are spelled.
func decodeExact(raw []byte, into *map[string]any) error {
	numbers := json2.UnmarshalFromFunc(func(dec *jsontext.Decoder, value *any) error {
		if dec.PeekKind() != '0' {
			return errSkip
		}
		number, err := dec.ReadValue()
		*value = number.Clone()
		return err
	})
	return json2.Unmarshal(raw, into, json2.WithUnmarshalers(numbers))
}
