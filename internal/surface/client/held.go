package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Holding returns a host of this process whose calls are made by a host that stays, where what
// a plugin keeps in memory for a session would else be lost with the command. One is started in
// the background where none serves the data directory. tell says behind which walls plugins
// run. Where o names [Here], what is lost is said instead.
func Holding(api host.API, who Who, o Options, tell func()) Host {
	return embedded{api, who, &holder{o, tell}}
}

// A holder finds the host that holds the sessions of a data directory.
type holder struct {
	Options
	tell func()
}

// lost says that nothing holds a session.
func (h *holder) lost(operation, session string) {
	if h.Say != nil {
		h.Say("mortise: what %s keeps in memory for session %s ends with this command: without --embedded and --tenant a host in the background keeps it", operation, session)
	}
}

// tries is how often another host is looked for: one that ends at this moment is no reason to
// give up.
const tries = 3

// Invoke implements [Host].
func (e embedded) Invoke(ctx context.Context, in host.Invocation) (plugin.Result, error) {
	if e.held == nil || !in.Joins || in.Dry != "" || !host.Remembers(in.Target) {
		return e.API.Invoke(ctx, in)
	}
	if e.held.Server == Here {
		e.held.lost(in.Target.Name(), in.Session)
		return e.API.Invoke(ctx, in)
	}
	e.held.tell()
	for left := tries - 1; ; left-- {
		s := starter{Options: e.held.Options}
		h, err := s.reach(ctx)
		if err != nil {
			return plugin.Result{}, err
		}
		res, err := h.Invoke(ctx, in)
		if left == 0 || !absent(err) { // nothing was sent
			return res, err
		}
	}
}

// Calls implements [Host].
func (e embedded) Calls() Calls {
	if e.held == nil || e.held.Server == Here {
		return e.API.Calls()
	}
	return heldCalls{e.API.Calls(), e}
}

// heldCalls are the calls of a host of this process, of which those are waited for elsewhere
// that another host makes.
type heldCalls struct {
	host.Calls
	of embedded
}

// Wait implements [Calls]. Where the host that is asked ends before the call, this one sees to
// it.
func (c heldCalls) Wait(ctx context.Context, id string, w host.Waiting) (plugin.Result, error) {
	row, err := c.Get(context.WithoutCancel(ctx), id, "wait for")
	if err != nil || row == nil || row.Session == "" || row.State.Ended() {
		return c.Calls.Wait(ctx, id, w)
	}
	if _, t := c.of.Plugins().Operation(ctx, row.Operation, nil); !host.Remembers(t) {
		return c.Calls.Wait(ctx, id, w)
	}
	s := starter{Options: c.of.held.Options}
	h, err := s.reach(ctx)
	if err != nil {
		return plugin.Result{CallID: id}, err
	}
	res, err := h.Calls().Wait(ctx, id, w)
	if Gone(err) {
		return c.Calls.Wait(ctx, id, w)
	}
	return res, err
}

// lost is how a call ended whose host ended during it: where it may have had an effect, what
// became of it is not known here.
func (r *remote) lost(in *host.Invocation, err error) error {
	if r.who.Manner != OverSocket || !Gone(err) || absent(err) {
		return err
	}
	e := &plugin.Error{Code: plugin.CodeCrashed, Message: r.where() + " ended during the call", Err: err}
	if in.Dry == "" && in.Target != nil && len(in.Target.Operation.Effects) > 0 {
		e.Code = plugin.CodeOutcomeUnknown
		e.Message += "; what it had done by then is not known here"
	}
	return e
}
