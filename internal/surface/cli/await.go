package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// unfinished says that a call has not ended, although nothing is wrong with it.
type unfinished = host.Unfinished

// await waits until a call has ended and returns its result: without a deadline
// where limit is 0. An approval that may be answered here is prompted for
// meanwhile; asks may be nil.
func (c *command) await(ctx context.Context, q *ask, id string, limit time.Duration, asks *prompt) (plugin.Result, error) {
	w := host.Waiting{Limit: limit, Resumes: func(row *host.CallRow) func() { return c.resumes(ctx, row.ID) }}
	if asks != nil {
		w.Left = asks.leave
		w.Between = func(ctx context.Context) (bool, error) {
			done, err := asks.wait(ctx)
			return !done, err
		}
	}
	res, err := q.Calls().Wait(ctx, id, w)
	if q.app != nil || !client.Gone(err) || q.Who().Manner != client.OverSocket {
		return res, err
	}
	err = c.reach(ctx, inHost, func(q *ask) (err error) { // the host has ended, and the call may go on here
		res, err = q.Calls().Wait(ctx, id, w)
		return err
	})
	return res, err
}

// resumes tells a person that this command runs a call, until what it returns is called:
// Ctrl-C does not end it.
func (c *command) resumes(ctx context.Context, id string) (done func()) {
	stop := context.AfterFunc(ctx, func() {
		c.aside("call %s runs in this command, which brings it to its end; Ctrl-C again does not wait for that", id)
	})
	shown := c.errs.Begin("call " + id + " runs here")
	return func() {
		shown.End()
		stop()
	}
}

// hold waits for a call that has not ended, and before it tells a person why.
func (c *command) hold(ctx context.Context, q *ask, res plugin.Result, limit time.Duration) (plugin.Result, error) {
	var asks *prompt
	look := context.WithoutCancel(ctx) // an interrupted command still tells the user how to continue
	if res.Status != plugin.PendingApproval {
		c.aside("call %s is still at work; Ctrl-C leaves it", res.CallID)
	} else if res.Approval != nil {
		var err error
		if asks, err = c.askHere(look, q, res.Approval.ID); err != nil {
			return res, err
		}
	}
	done, err := c.await(ctx, q, res.CallID, limit, asks)
	var waits unfinished
	if errors.As(err, &waits) {
		res.Status = done.Status
		return res, err
	}
	return done, err
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
func (c *command) askHere(ctx context.Context, q *ask, id string) (*prompt, error) {
	if c.json && !terminal.Is(c.errs) {
		return nil, nil
	}
	asked, err := q.Approvals().Asked(ctx, id)
	if err != nil {
		return nil, err
	}
	c.say("%s %s waits for approval: %s\n", asked.Question.Operation, asked.Question.Version, asked.Question.Why)
	if err := view.Question(c.errs, asked.Question); err != nil {
		return nil, err
	}
	if !c.json && asked.Theirs && c.own() {
		return newPrompt(c, q, id), nil
	}
	c.say("\n%s", c.toDecide(q.Who(), &asked))
	c.say("Ctrl-C leaves the call waiting; nothing is lost")
	return nil, nil
}

// own reports whether a person is at this terminal, who may approve their own requests
// where the configuration allows it to the owner.
func (c *command) own() bool { return terminal.Is(c.in) && terminal.Is(c.errs) }

// toDecide says what those do, at another terminal, who may decide.
func (c *command) toDecide(who client.Who, asked *host.Asked) string {
	names := asked.Deciders
	if len(names) == 0 {
		return "the configuration names no approver other than " + asked.Row.Requester + ", who asked for it; see 'mortise help approvals'"
	}
	as, where := "", "at another terminal"
	switch {
	case who.Manner == client.AtURL:
		where = "with a token of their own"
	case !asked.TrustAs:
		where = "as another user of the operating system"
	}
	if names[0] != asked.Owner && who.Manner != client.AtURL {
		as = " --as " + quoted(names[0])
	}
	most := names[:min(len(names), 5)]
	return fmt.Sprintf("%s may approve it, %s:\n  %s approvals approve %s%s", strings.Join(most, ", "), where, c.program(who), asked.Row.ID, as)
}

// program is this program with what makes it find the same host in a shell that
// knows nothing of this one.
func (c *command) program(who client.Who) string {
	line := "mortise"
	if who.Manner == client.AtURL {
		return line + " --server " + quoted(who.Server)
	}
	if usual, err := filepath.Abs(setup.UsualHome()); err != nil || usual != who.Home {
		line += " --home " + quoted(who.Home)
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
func quoted(word string) string { return input.Quoted(word) }
