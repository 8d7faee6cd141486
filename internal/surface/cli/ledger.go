package cli

import (
	"context"
	"errors"
	"fmt"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) ledger() *cobra.Command {
	return group(spec{use: "ledger", short: "Read and verify the ledger"}, c.ledgerList(), c.ledgerShow(), c.ledgerVerify())
}

// reading opens the store for reading alone, and says so where there is none.
func (c *command) reading(ctx context.Context, do func(host.Store) error) (err error) {
	if c.home == "" {
		return usage{errNoHome}
	}
	if err := c.ofSite(); err != nil {
		return err
	}
	if err := c.isHere("this"); err != nil {
		return err
	}
	database, err := c.place().FindDatabase()
	if err != nil {
		return err
	}
	return setup.Read(ctx, c.home, database, c.scrubber, do)
}

func (c *command) ledgerList() *cobra.Command {
	var f host.EntryQuery
	var code string
	return c.command(spec{
		use: "list", short: "List entries, the newest last", example: "  mortise ledger list --last 5 --code policy_denied",
		anywhere: true, door: inStore, limit: &limit{"last", &f.Limit, 20, "how many entries"},
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
		if c.json {
			return c.print(map[string]any{"entries": append([]plugin.Entry{}, entries...)})
		}
		return view.Entries(c.out, entries, chains > 1)
	})
}

func (c *command) ledgerShow() *cobra.Command {
	return c.command(spec{
		use:   "show ID",
		short: "Show the entries of a call, or one entry",
		long: `Show the entries of a call, or one entry. Where
several nodes write to one database each has a chain of its own, and CHAIN/NUMBER
names an entry: 2/17.`,
		example: `  mortise ledger show 17
  mortise ledger show 3f21aa`,
		anywhere: true, door: inStore,
	}, func(ctx context.Context, q *ask) error {
		entries, err := q.Ledger().Find(ctx, q.args[0])
		if plugin.CodeOf(err) == plugin.CodeNotFound {
			return plugin.Errorf(plugin.CodeNotFound, "the ledger has no call and no entry %s; 'mortise ledger list' shows what it has", q.args[0])
		}
		if err != nil {
			return err
		}
		if !c.json {
			return view.Record(c.out, entries)
		}
		object, last := map[string]any{}, view.CallRecord(entries)
		if view.IsCall(last) {
			var record map[string]jsontext.Value // its numbers stay as they are spelled
			if err := json2.Unmarshal(last.Body, &record); err != nil {
				return err
			}
			for name, value := range record {
				object[name] = value
			}
		}
		object["kind_of_entry"], object["entries"] = last.Kind, entries
		return c.print(object)
	})
}

func (c *command) ledgerVerify() *cobra.Command {
	return c.command(spec{use: "verify", short: "Verify that no entry was changed, removed, moved or added", example: "  mortise ledger verify", door: nowhere},
		func(ctx context.Context, _ *ask) error {
			if database, err := c.place().FindDatabase(); err == nil && c.home != "" {
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
	} else if err := view.LedgerReport(c.out, c.errs, r); err != nil {
		return err
	}
	if r.Fault != nil {
		return reported{errTampered}
	}
	return nil
}
