package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// unfinished says that a call has not ended, although nothing is wrong with it.
type unfinished struct{ error }

func (u unfinished) Unwrap() error { return u.error }

var errNotFinished = errors.New("the call has not ended")

// How often a waiting command polls the state of a call.
const (
	lookFirst = 20 * time.Millisecond
	lookLast  = 200 * time.Millisecond

	recoverEvery = time.Second // and whether nodes have died
)

// await waits until a call has ended and returns its result: without a deadline
// where limit is 0. It resumes a call that can go on, unless another process
// was faster; limit does not bound that. An approval that may be answered here
// is prompted for between polls; asks may be nil.
//
// Where the call has not ended the error is unfinished, and the result says how
// it stands.
func (c *command) await(ctx context.Context, a *app.App, id string, limit time.Duration, asks *prompt) (plugin.Result, error) {
	waiting, stop := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		waiting, stop = context.WithTimeoutCause(ctx, limit, errNotFinished)
	}
	defer stop()
	looked := time.Now()
	for pause := lookFirst; ; pause = min(2*pause, lookLast) {
		if time.Since(looked) > recoverEvery { // the node that runs it may have died
			if _, err := a.Ledger.Recover(context.WithoutCancel(ctx)); err != nil {
				return plugin.Result{}, err
			}
			looked = time.Now()
		}
		row, err := a.Ledger.Call(context.WithoutCancel(ctx), a.Config.Tenant, id)
		switch {
		case err != nil:
			return plugin.Result{}, err
		case row == nil:
			return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be waited for", id)
		case row.State.Ended():
			asks.leave()
			return a.Kernel.Await(context.WithoutCancel(ctx), row.Tenant, id)
		case waiting.Err() != nil:
			asks.leave()
			return snapshot(row), unfinished{context.Cause(waiting)}
		case row.State == store.CallPending && !row.WakeAt.After(time.Now()): // its time is over, and no host may be there to say so
			if _, err := a.Approvals.Expire(context.WithoutCancel(ctx)); err != nil {
				return snapshot(row), err
			}
			pauseFor(waiting, lookFirst)
			continue
		case due(row):
			// Whatever comes of it, the row tells; but not what keeps it from being tried.
			if err := c.bring(ctx, a, row); plugin.CodeOf(err) == plugin.CodeInternal && ctx.Err() == nil {
				if now, _ := a.Ledger.Call(ctx, row.Tenant, id); now == nil || !now.State.Ended() {
					return snapshot(row), err
				}
			}
			if ctx.Err() == nil {
				pauseFor(waiting, pause)
			}
			continue
		}
		if asks != nil && row.State != store.CallPending {
			asks.leave()
			asks = nil
		}
		if asks == nil {
			pauseFor(waiting, pause)
			continue
		}
		done, err := asks.wait(waiting, pause)
		if err != nil {
			return snapshot(row), err
		}
		if done {
			asks = nil
		}
	}
}

// bring advances a call and ignores a cancelled wait: a call that this command began
// runs to its end.
func (c *command) bring(ctx context.Context, a *app.App, row *store.CallRow) error {
	stop := context.AfterFunc(ctx, func() {
		c.aside("call %s runs in this command, which brings it to its end; Ctrl-C again does not wait for that", row.ID)
	})
	defer stop()
	defer c.errs.Begin("call " + row.ID + " runs here").End()
	return c.advance(context.WithoutCancel(ctx), a, row)
}

// due reports whether a call may be resumed or reconciled now.
func due(row *store.CallRow) bool {
	now := time.Now()
	return row.State == store.CallQueued && !row.WakeAt.After(now) ||
		row.State == store.CallInProgress && !row.WakeAt.IsZero() && !row.WakeAt.After(now)
}

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// snapshot returns the result of a call that has not ended, as its row has it.
func snapshot(row *store.CallRow) plugin.Result {
	res := plugin.Result{CallID: row.ID, Operation: row.Operation, Version: row.Version, Status: plugin.InProgress, SchemaVersion: plugin.SchemaVersion}
	if row.State == store.CallPending {
		res.Status = plugin.PendingApproval
	}
	return res
}

// hold waits for a call that has not ended, and before it tells a person why.
func (c *command) hold(ctx context.Context, a *app.App, res plugin.Result, limit time.Duration) (plugin.Result, error) {
	var asks *prompt
	look := context.WithoutCancel(ctx) // an interrupted command still tells the user how to continue
	if res.Status == plugin.PendingApproval {
		row, err := a.Ledger.ApprovalOf(look, a.Config.Tenant, res.CallID)
		if err != nil {
			return res, err
		}
		if row != nil {
			if asks, err = c.askHere(look, a, row); err != nil {
				return res, err
			}
		}
	} else {
		c.aside("call %s is still at work; Ctrl-C leaves it", res.CallID)
	}
	done, err := c.await(ctx, a, res.CallID, limit, asks)
	var waits unfinished
	if errors.As(err, &waits) {
		res.Status = done.Status
		return res, err
	}
	return done, err
}

// currentSnapshot completes the result of a call that has not ended: the answer to a
// repeated idempotency key does not say what the call waits for.
func currentSnapshot(ctx context.Context, a *app.App, res plugin.Result) (plugin.Result, error) {
	if res.Status.Ended() {
		return res, nil
	}
	ctx = context.WithoutCancel(ctx) // as in hold
	call, err := a.Ledger.Call(ctx, a.Config.Tenant, res.CallID)
	if err != nil || call == nil {
		return res, err
	}
	res.Version = call.Version
	if res.Status != plugin.PendingApproval {
		res.Approval = nil
		return res, nil
	}
	row, err := a.Ledger.ApprovalOf(ctx, a.Config.Tenant, res.CallID)
	if err != nil || row == nil {
		return res, err
	}
	res.Approval = &plugin.Pending{ID: row.ID, Why: row.Why, ExpiresAt: row.ExpiresAt}
	res.Approval.Preview, err = store.Preview(ctx, a.Store, row)
	return res, err
}

// aside tells a person something while a command goes on. A program that reads
// JSON hears nothing before the end.
func (c *command) aside(format string, args ...any) {
	if !c.json || terminal.Is(c.errs) {
		c.say(format, args...)
	}
}

// askHere tells a person what a call waits for. It returns the prompt where the
// person may answer here and now, and nil otherwise.
func (c *command) askHere(ctx context.Context, a *app.App, row *store.ApprovalRow) (*prompt, error) {
	if c.json && !terminal.Is(c.errs) {
		return nil, nil
	}
	q, err := a.Host.Approvers().Question(ctx, row)
	if err != nil {
		return nil, err
	}
	c.say("%s %s waits for approval: %s\n", q.Operation, q.Version, q.Why)
	if err := c.showQuestion(c.errs, q); err != nil {
		return nil, err
	}
	if !c.json && c.own(a) && a.Host.Approvers().MayApprove(ctx, row, a.Principal) == nil {
		return newPrompt(c, a, row), nil
	}
	c.say("\n%s", c.toDecide(ctx, a, row))
	c.say("Ctrl-C leaves the call waiting; nothing is lost")
	return nil, nil
}

// own reports whether the user at this terminal may approve their own requests:
// the owner, where the configuration allows it.
func (c *command) own(a *app.App) bool {
	return a.Config.Approvals.Self && a.Owner() && terminal.Is(c.in) && terminal.Is(c.errs)
}

// toDecide says what those do, at another terminal, who may decide.
func (c *command) toDecide(ctx context.Context, a *app.App, row *store.ApprovalRow) string {
	names := a.Host.Approvers().Deciders(ctx, row)
	if len(names) == 0 {
		return "the configuration names no approver other than " + row.Requester + ", who asked for it; see 'mortise help approvals'"
	}
	as := ""
	if names[0] != a.Config.Principal {
		as = " --as " + quoted(names[0])
	}
	most := names[:min(len(names), 5)]
	where := "at another terminal"
	if !a.Config.Approvals.TrustAs {
		where = "as another user of the operating system"
	}
	return fmt.Sprintf("%s may approve it, %s:\n  %s approvals approve %s%s", strings.Join(most, ", "), where, c.program(a), row.ID, as)
}

// program is this program with what makes it find the same host in a shell that
// knows nothing of this one.
func (c *command) program(a *app.App) string {
	line := "mortise"
	if usual, err := filepath.Abs(usualHome()); err != nil || usual != a.Home {
		line += " --home " + quoted(a.Home)
	}
	if c.config != "" {
		path, err := filepath.Abs(c.config)
		if err != nil {
			path = c.config
		}
		line += " --config " + quoted(path)
	}
	if c.databaseURL() != "" {
		line += ` --database "$MORTISE_DATABASE"` // there may be a password in it
	}
	return line
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// howToFollow is what to do about a call that has not ended.
func (c *command) howToFollow(res plugin.Result) string {
	if res.Status != plugin.PendingApproval {
		return fmt.Sprintf("call %s has not ended; 'mortise calls wait %s' waits for it, and runs it if no other process does", res.CallID, res.CallID)
	}
	ask := ""
	if res.Approval != nil {
		ask = fmt.Sprintf("'mortise approvals show %s' has the question, and ", res.Approval.ID)
	}
	return fmt.Sprintf("call %s waits for approval; %s'mortise calls wait %s' waits for its end", res.CallID, ask, res.CallID)
}
