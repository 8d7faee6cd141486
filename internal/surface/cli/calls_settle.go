package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
)

// settleFlags are the flags of `mortise calls settle`.
type settleFlags struct {
	succeeded, failed, notDone, ask bool
	data, reason, evidence          string
}

func (c *command) callsSettle() *cobra.Command {
	var f settleFlags
	var s host.Settlement
	return c.command(spec{
		anywhere: true,
		use:      "settle ID (--succeeded | --failed | --not-done | --ask)",
		short:    "Settle a call whose outcome is unknown",
		long: `Settle a call whose outcome is unknown.

A call is unknown when an effect was sent and its answer never came. It is not
repeated. Check the other system, then record how the call ended and how you know;
the record is in your name. The principal that made the call may do so, and so may
those who may approve its operation.

With --not-done the call may be run again: by 'mortise serve', or by 'mortise calls
wait'. --ask asks the operator, where it has a reconcile operation, and changes
nothing else.`,
		example: `  mortise calls settle 3f21aa --succeeded --data '{"id": "m-17"}' --reason "it is in the outbox"
  mortise calls settle 3f21aa --not-done --reason "the provider never saw it" --evidence @log.json`,
		args:     cobra.ExactArgs(1),
		complete: c.completeCalls,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.BoolVar(&f.succeeded, "succeeded", false, "it happened")
			flags.StringVar(&f.data, "data", "", "what it would have answered: JSON, @FILE, or - for standard input; null if it is not given")
			flags.BoolVar(&f.failed, "failed", false, "it went wrong, and is not to be run again")
			flags.BoolVar(&f.notDone, "not-done", false, "it never happened, and may be run again")
			flags.BoolVar(&f.ask, "ask", false, "ask the operator")
			flags.StringVar(&f.reason, "reason", "", "what is known, and from where; needed but with --ask")
			flags.StringVar(&f.evidence, "evidence", "", "what shows it, kept in the ledger: JSON, @FILE, or - for standard input")
		},
		check: func([]string) (err error) { s, err = c.settlement(f); return err },
	}, func(ctx context.Context, q *ask) error { return c.settleCall(ctx, q, q.args[0], f.ask, s) })
}

// settlement is what the flags say.
func (c *command) settlement(f settleFlags) (s host.Settlement, err error) {
	said := 0
	for state, is := range map[host.CallState]bool{host.CallSucceeded: f.succeeded, host.CallFailed: f.failed, host.CallQueued: f.notDone, "": f.ask} {
		if is {
			said++
			s.State = state
		}
	}
	switch {
	case said != 1:
		return s, usage{errors.New("one of --succeeded, --failed, --not-done and --ask says how the call is settled")}
	case f.ask && (f.reason != "" || f.evidence != ""):
		return s, usage{errors.New("--ask takes neither --reason nor --evidence: both are the operator's")}
	case !f.ask && f.reason == "":
		return s, usage{errors.New("--reason says what is known, and from where")}
	case f.data != "" && !f.succeeded:
		return s, usage{errors.New("--data is the answer of a call that succeeded")}
	case f.data == "-" && f.evidence == "-":
		return s, usage{errors.New("--data and --evidence cannot both be standard input")}
	}
	s.Reason = f.reason
	if s.Data, err = c.readValue("the answer", "--data", f.data); err != nil {
		return s, err
	}
	s.Evidence, err = c.readValue("the evidence", "--evidence", f.evidence)
	return s, err
}

func (c *command) settleCall(ctx context.Context, q *ask, given string, ask bool, s host.Settlement) error {
	row, err := q.Calls().FindToControl(ctx, given, "settle")
	if err != nil {
		return err
	}
	if ask {
		return c.askOperator(ctx, q, row)
	}
	if row, err = q.Calls().Settle(ctx, row.ID, s); err != nil {
		return err
	}
	next := ""
	if s.State == host.CallQueued {
		next = fmt.Sprintf("it may be run again: by 'mortise serve', or here with 'mortise calls wait %s'", row.ID)
	}
	return c.showRow(row, next)
}

// askOperator asks the operator how a call ended, and shows what it found out.
func (c *command) askOperator(ctx context.Context, q *ask, row *host.CallRow) error {
	now, err := q.Calls().Reconcile(ctx, row.ID)
	if err != nil {
		return err
	}
	next := ""
	switch now.State {
	case host.CallUnknown, host.CallInProgress:
		next = "the operator does not know; ask again later, or record the outcome when you know it"
	case host.CallQueued:
		next = fmt.Sprintf("it never happened, and may be run again: by 'mortise serve', or here with 'mortise calls wait %s'", row.ID)
	}
	return c.showRow(now, next)
}
