package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// Entries lists entries; with their chains, where there are several of them.
func Entries(w io.Writer, entries []plugin.Entry, several bool) error {
	columns := []string{"SEQ", "TIME", "WHAT", "OUTCOME", "PRINCIPAL", "TOOK", "ID"}
	if several {
		columns = append([]string{"CHAIN"}, columns...)
	}
	t := terminal.NewTable(w, columns...)
	for _, e := range entries {
		what, outcome, took := e.Subject, string(e.Kind), "-"
		var rec plugin.CallRecord
		if IsCall(e) && json.Unmarshal(e.Body, &rec) == nil {
			what, outcome, took = operationAt(&rec), outcomeOf(e.Kind, &rec), terminal.Milliseconds(rec.Metrics["latency_ms"])
		}
		cells := []string{count(e.Seq), terminal.Clock(e.At), what, outcome, e.Principal, took, e.Subject}
		if several {
			cells = append([]string{count(e.Chain)}, cells...)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// IsCall reports whether an entry is about a call.
func IsCall(e plugin.Entry) bool { return strings.HasPrefix(string(e.Kind), "call.") }

// CallRecord returns the entry of a call that says how it ended, the last of its entries
// but for what a plugin was refused, which may be written after the end.
func CallRecord(entries []plugin.Entry) plugin.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if IsCall(entries[i]) {
			return entries[i]
		}
	}
	return entries[len(entries)-1]
}

// Record shows the entries of one call, and in full the one that says how it ended.
func Record(w io.Writer, entries []plugin.Entry) error {
	for _, e := range entries {
		fmt.Fprintf(w, "entry %d of chain %d, %s, %s\n", e.Seq, e.Chain, e.Kind, terminal.Clock(e.At))
	}
	fmt.Fprintln(w)
	last := CallRecord(entries)
	if err := terminal.Object(w, []byte(last.Body), width(w), ""); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nhash:      %s\nprevious:  %s\n", last.Hash, terminal.Dash(last.Prev))
	return err
}

// LedgerReport says whether the ledger holds.
func LedgerReport(w, errs io.Writer, r host.LedgerReport) error {
	for _, note := range r.Notes {
		Say(errs, "note: %s", note)
	}
	if r.Fault != nil {
		Say(errs, "mortise: the ledger does not hold: entry %d of chain %d: %s", r.Fault.Seq, r.Fault.Chain, r.Fault.What)
		return nil
	}
	where := ""
	if r.Chains > 1 {
		where = fmt.Sprintf(" in %d chains", r.Chains)
	}
	_, err := fmt.Fprintf(w, "the ledger holds: %d entries%s, head %s\n", r.Entries, where, terminal.Dash(r.Head))
	return err
}

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
