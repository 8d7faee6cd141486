package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// runOperation runs an operation. With an envelope, whatever keeps it from running is in
// the words of that contract too.
func (c *command) runOperation(ctx context.Context, ref string, f runFlags) error {
	err := c.runOnce(ctx, ref, f)
	var told reported
	if err == nil || f.envelope == "" || !slices.Contains(host.Envelopes(), f.envelope) || !c.json || errors.As(err, &told) {
		return err
	}
	return c.answerIn(f.envelope, nil, plugin.Result{}, err)
}

// A run is one call of an operation, from its flags to its answer.
type run struct {
	*command
	*ask
	flags runFlags
	given written

	ref     string
	target  *plugin.Target // nil where the reference means nothing: the call says so, on the record
	session host.Session
	exports []input.Export
}

func (r *run) investigates() bool { return r.target != nil && r.target.Manifest.Contract.Investigates }

func (c *command) runOnce(ctx context.Context, ref string, f runFlags) error {
	if err := f.check(c.json); err != nil {
		return err
	}
	given, err := c.readWritten(f)
	if err != nil {
		return err
	}
	return c.reach(ctx, inHost, func(q *ask) error { return c.runOn(ctx, q, ref, f, given) })
}

// runOn makes the call, on the host that was reached.
func (c *command) runOn(ctx context.Context, q *ask, ref string, f runFlags, given written) (err error) {
	r := &run{command: c, ask: q, flags: f, given: given}
	if ref, err = c.nameOf(ctx, q, ref); err != nil {
		return err
	}
	params, _ := given.compose(nil, false) // what is wrong with it is said where it counts
	r.ref, r.target = r.Plugins().Operation(ctx, ref, params)
	if err := f.checkDry(r.investigates()); err != nil {
		return err
	}
	in, err := r.prepare(ctx)
	if err != nil {
		return r.refuse(err)
	}
	var watch *terminal.Watch
	in.Begins = func(debug bool) func(plugin.Event) {
		c.debug = c.debug || debug
		watch = c.watch(r.ref + " runs")
		watch.Quiet = r.investigates() // as the console of its contract's host
		return watch.Hear
	}
	begun := time.Now()
	res, err := r.Invoke(ctx, in)
	if watch == nil {
		return r.refuse(err)
	}
	watch.End()
	if err == nil && !f.noWait && (res.Status == plugin.PendingApproval || res.Status == plugin.InProgress && f.waits) {
		limit := f.wait
		if res.Status == plugin.InProgress && limit > 0 { // the call with this key was waited for already
			limit = max(limit-time.Since(begun), time.Millisecond)
		}
		res, err = c.hold(ctx, r.ask, res, limit)
	}
	return r.finish(ctx, res, err)
}

// prepare puts together what is called: in its session, with its files.
func (r *run) prepare(ctx context.Context) (in host.Invocation, err error) {
	f := r.flags
	if err := r.findSession(ctx); err != nil {
		return in, err
	}
	in = host.Invocation{
		Operation: r.ref, Target: r.target, Session: r.session.ID, Joins: f.session != "", Origin: plugin.OriginCLI,
		Key: f.key, Fresh: f.fresh, Timeout: f.timeout, Labels: f.labels, NoWait: f.noWait, Patience: f.wait, Dry: f.dryRun,
	}
	if in.Input, err = r.given.compose(r.target, len(f.artifacts) > 0); err != nil {
		return in, err
	}
	if in.Given, err = r.attach(ctx); err != nil {
		return in, err
	}
	if !r.investigates() || in.Session == "" {
		return in, nil
	}
	if in.Input, err = r.takeFiles(ctx, in.Input); err != nil || f.dryRun != "" {
		return in, err
	}
	if r.exports, err = input.Exports(r.given.Outputs(f.input, in.Input)); err != nil {
		return in, err
	}
	in.Input, err = r.lendExports(ctx, in.Input)
	return in, err
}

// findSession finds the session that the call belongs to, or begins one.
func (r *run) findSession(ctx context.Context) (err error) {
	if r.flags.session != "" {
		r.session, err = inSession(ctx, r.Host, r.flags.session, func(id string) (host.Session, error) { return r.Sessions().For(ctx, r.target, id) })
		return err
	}
	if r.session, err = r.Sessions().For(ctx, r.target, ""); err == nil && r.session.ID != "" {
		r.say("session %s", r.session.ID)
	}
	return err
}

// finish writes what the call made and prints how it ended.
func (r *run) finish(ctx context.Context, res plugin.Result, err error) error {
	var done []exported
	if err == nil && res.Status == plugin.Succeeded {
		done, err = r.export(ctx, res.Artifacts)
	} else if err == nil && !res.Status.Ended() {
		r.sayUnwritten(res.CallID)
	}
	// The ledger is closed before anything is printed, so that an answer that a
	// user has seen is on record, whatever happens next.
	if closed := r.closeBooks(r.ask, err != nil || r.target != nil && len(r.target.Operation.Effects) > 0 && r.flags.dryRun == ""); closed != nil {
		return closed
	}
	answered := r.answerRun(res, done, err)
	if !r.json {
		r.adviseRun(ctx, r.ask, r.target, r.ref, r.given.Arguments, err)
	}
	return answered
}

// refuse answers for a call that was not made, in the words of its contract.
func (r *run) refuse(err error) error {
	if !r.investigates() || !r.json || isMisuse(err) {
		return err
	}
	return r.answerSpelled(plugin.Result{}, nil, err)
}

// closeBooks writes what the ledger has behind. Where that fails an answer is
// withheld, but for one that stands on its own: a call that was claimed is
// settled before it is answered, and an error is one in any case.
func (c *command) closeBooks(q *ask, stands bool) error {
	if q.app == nil { // the host that has them answers once they are written
		return nil
	}
	err := q.app.Ledger.Close()
	if err == nil || !stands {
		return err
	}
	c.say("mortise: the ledger could not write what was behind: %s", view.Message(err))
	return nil
}

// nameOf returns the name of what is meant. The plugin at a path is registered for
// development first.
func (c *command) nameOf(ctx context.Context, q *ask, ref string) (string, error) {
	if !input.IsPath(ref) {
		return ref, nil
	}
	defer c.errs.Begin("linking " + ref).End()
	return q.Plugins().Link(ctx, ref)
}

// readInput reads the value of --input.
func (c *command) readInput(given string) (json.RawMessage, error) {
	return c.readValue("the input", "--input", given)
}

// readValue reads JSON that a flag gives: as it stands, @FILE, or - for standard input.
// It is nil where the flag is not given.
func (c *command) readValue(what, flag, given string) (json.RawMessage, error) {
	return input.Value(c.in, what, flag, given)
}
