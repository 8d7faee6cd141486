package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) ledger() *cobra.Command {
	return group(spec{use: "ledger", short: "Read and verify the record of every call"}, c.ledgerList(), c.ledgerShow(), c.ledgerVerify())
}

// reading opens the store for reading alone, and says so where there is none.
func (c *command) reading(ctx context.Context, do func(host.Store) error) (err error) {
	if c.home == "" {
		return usage{errNoHome}
	}
	database, err := c.whichDatabase()
	if err != nil {
		return err
	}
	return setup.Read(ctx, c.home, database, c.scrubber, do)
}

// whichDatabase returns where the state is: what the command line says or, where
// that says nothing, the configuration.
func (c *command) whichDatabase() (config.Database, error) {
	var configured config.Database
	if c.databaseURL() == "" {
		conf, _, err := setup.ReadConfig(c.home, c.config)
		if err != nil {
			return "", usage{fmt.Errorf("the configuration, which says which database it is, cannot be used: %w", err)}
		}
		configured = conf.Database
	}
	return setup.ChooseDatabase(c.databaseURL(), configured)
}

func (c *command) ledgerList() *cobra.Command {
	var f host.EntryQuery
	var code string
	return c.command(spec{
		use: "list", short: "List entries, the newest last", example: "  mortise ledger list --last 5 --code policy_denied",
		door: inStore, limit: &limit{"last", &f.Limit, 20, "how many entries"},
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.Int64Var(&f.After, "after", 0, "the entries after this number instead of the last")
			flags.StringVar(&f.Kind, "kind", "", `only this kind, such as call.failed, or the beginning of some: "call."`)
			flags.StringVar(&f.Operation, "operation", "", "only calls of this operation: plugin/operation")
			flags.StringVar(&code, "code", "", "only calls that failed with this code")
		},
		check: func([]string) error {
			if f.Code = plugin.Code(code); code != "" && !f.Code.Known() {
				return usage{fmt.Errorf("--code %s: there is no such code; docs/codes.md lists them", code)}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		entries, chains, err := q.Ledger().List(ctx, f)
		if err != nil {
			return err
		}
		return c.listEntries(entries, chains > 1)
	})
}

// listEntries prints entries; with their chains, where there are several of them.
func (c *command) listEntries(entries []plugin.Entry, several bool) error {
	if c.json {
		if entries == nil {
			entries = []plugin.Entry{}
		}
		return c.print(map[string]any{"entries": entries})
	}
	columns := []string{"SEQ", "TIME", "WHAT", "OUTCOME", "PRINCIPAL", "TOOK", "ID"}
	if several {
		columns = append([]string{"CHAIN"}, columns...)
	}
	t := terminal.NewTable(c.out, columns...)
	for _, e := range entries {
		what, outcome, took := e.Subject, string(e.Kind), "-"
		var rec plugin.CallRecord
		if isCall(e) && json2.Unmarshal(e.Body, &rec) == nil {
			what, outcome, took = operationAt(&rec), outcomeOf(e.Kind, &rec), terminal.Milliseconds(rec.Metrics["latency_ms"])
		}
		cells := []string{strconv.FormatInt(e.Seq, 10), terminal.Clock(e.At), what, outcome, e.Principal, took, e.Subject}
		if several {
			cells = append([]string{strconv.FormatInt(e.Chain, 10)}, cells...)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

func isCall(e plugin.Entry) bool { return strings.HasPrefix(string(e.Kind), "call.") }

// operationAt is the short form for people: a plugin's only operation goes
// without its own name.
func operationAt(rec *plugin.CallRecord) string {
	name := rec.Operation
	if plugin, op, found := strings.Cut(name, "/"); found && (op == plugin || strings.HasSuffix(plugin, "."+op)) {
		name = plugin
	}
	if rec.Version != "" {
		name += "@" + rec.Version
	}
	return terminal.Dash(name)
}

func outcomeOf(kind plugin.EntryKind, rec *plugin.CallRecord) string {
	switch {
	case rec.Error != nil && rec.Error.PluginCode != "":
		return fmt.Sprintf("%s (%s)", rec.Error.Code, rec.Error.PluginCode)
	case rec.Error != nil:
		return string(rec.Error.Code)
	case kind == plugin.EntryCallStarted:
		return "started"
	case kind == plugin.EntryCallReplayed:
		return "replayed"
	case rec.Cached:
		return "succeeded (cached)"
	case rec.Dry:
		return string(rec.Status) + " (dry run)"
	default:
		return string(rec.Status)
	}
}

func (c *command) ledgerShow() *cobra.Command {
	return c.command(spec{
		use:   "show ID",
		short: "Show all that is recorded of a call, by its id, or one entry, by its number",
		long: `Show all that is recorded of a call, by its id, or one entry, by its number. Where
several nodes write to one database each has a chain of its own, and CHAIN/NUMBER
names an entry: 2/17.`,
		example: `  mortise ledger show 17
  mortise ledger show 3f21aa`,
		door: inStore,
	}, func(ctx context.Context, q *ask) error {
		entries, err := q.Ledger().Find(ctx, q.args[0])
		if plugin.CodeOf(err) == plugin.CodeNotFound {
			return plugin.Errorf(plugin.CodeNotFound, "the ledger has no call and no entry %s; 'mortise ledger list' shows what it has", q.args[0])
		}
		if err != nil {
			return err
		}
		return c.showEntries(entries)
	})
}

// showEntries prints the entries of one call: the last of them, which says how
// it ended, in full.
func (c *command) showEntries(entries []plugin.Entry) error {
	last := entries[len(entries)-1]
	for i := len(entries) - 1; i >= 0; i-- { // what a plugin was refused may be written after the end
		if isCall(entries[i]) {
			last = entries[i]
			break
		}
	}
	if c.json {
		object := map[string]any{}
		if isCall(last) {
			if err := json2.Unmarshal(last.Body, &object); err != nil {
				return err
			}
		}
		object["kind_of_entry"], object["entries"] = last.Kind, entries
		return c.print(object)
	}
	for _, e := range entries {
		fmt.Fprintf(c.out, "entry %d of chain %d, %s, %s\n", e.Seq, e.Chain, e.Kind, terminal.Clock(e.At))
	}
	fmt.Fprintln(c.out)
	if err := terminal.Object(c.out, []byte(last.Body), c.width(), ""); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nhash:      %s\nprevious:  %s\n", last.Hash, terminal.Dash(last.Prev))
	return nil
}

func (c *command) ledgerVerify() *cobra.Command {
	return c.command(spec{use: "verify", short: "Prove that no entry was changed, removed, moved or added", example: "  mortise ledger verify", door: nowhere},
		func(ctx context.Context, _ *ask) error {
			if database, err := c.whichDatabase(); err == nil && c.home != "" {
				if err := setup.CheckDatabase(ctx, c.home, database); err != nil {
					return err
				}
			}
			return c.reading(ctx, func(st host.Store) error {
				var report host.LedgerReport
				if err := c.during("verifying the ledger", func() (err error) { report, err = c.verify(ctx, st); return err }); err != nil {
					return err
				}
				return c.verified(report)
			})
		})
}

func (c *command) verify(ctx context.Context, st host.Store) (host.LedgerReport, error) {
	return host.VerifyLedger(ctx, st, c.home)
}

var errTampered = errors.New("the ledger does not hold")

// verified prints the report; a fault makes the command fail.
func (c *command) verified(r host.LedgerReport) error {
	if c.json {
		object := map[string]any{"ok": r.Fault == nil, "entries": r.Entries, "chains": r.Chains, "bodies": r.Bodies, "head": r.Head, "notes": append([]string{}, r.Notes...)}
		if r.Fault != nil {
			object["fault"] = map[string]any{"chain": r.Fault.Chain, "seq": r.Fault.Seq, "what": r.Fault.What}
		}
		if err := c.print(object); err != nil {
			return err
		}
	} else {
		for _, note := range r.Notes {
			c.say("note: %s", note)
		}
		if r.Fault == nil {
			where := ""
			if r.Chains > 1 {
				where = fmt.Sprintf(" in %d chains", r.Chains)
			}
			fmt.Fprintf(c.out, "the ledger holds: %d entries%s, head %s\n", r.Entries, where, terminal.Dash(r.Head))
		} else {
			c.say("mortise: the ledger does not hold: entry %d of chain %d: %s", r.Fault.Seq, r.Fault.Chain, r.Fault.What)
		}
	}
	if r.Fault != nil {
		return reported{errTampered}
	}
	return nil
}
