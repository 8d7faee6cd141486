package host

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host/sessionhost"
	"github.com/mortise-dev/mortise/plugin"
)

// A SessionHost is the process that holds what plugins remember of one session.
type SessionHost struct {
	sessionhost.Launch
	Session string
	Idle    time.Duration // it ends after so long without a call

	// Open opens the host that the process is, once no other holds the session. earlier
	// reports whether another process held it before.
	Open func(ctx context.Context, earlier bool) (h *Host, closing func() error, err error)
}

// Serve takes calls of the session until ctx ends, a client ends it, or it was idle for
// long.
func (s SessionHost) Serve(ctx context.Context) error {
	identity, err := s.Identity()
	if err != nil {
		return err
	}
	var h *Host
	server := &sessionhost.Server{
		Place: s.Place(s.Session), Identity: identity, Idle: s.Idle,
		Advance: func(ctx context.Context, id string) error { return h.parts.Kernel.Advance(ctx, s.Tenant, id) },
		Call: func(ctx context.Context, principal string, call plugin.Call) (res plugin.Result, err error) {
			if call.Principal, err = h.Guard().Member(principal); err != nil {
				return res, err
			}
			if user := OSUser(); call.Asker != user { // only its own user reaches the socket
				call.Asker = approval.Delivered(cmp.Or(call.Asker, user), user)
			}
			if err := h.parts.CatchUp(ctx); err != nil {
				return res, err
			}
			res, err = h.parts.Kernel.Call(ctx, call)
			// What is answered is on record, whatever becomes of this process.
			return res, errors.Join(err, h.parts.Ledger.Flush(context.WithoutCancel(ctx)))
		},
	}
	return server.Serve(ctx, func(ctx context.Context) (closing func() error, err error) {
		h, closing, err = s.Open(ctx, server.Earlier())
		return closing, err
	})
}

// remembers reports whether an operation keeps something in memory for the session of
// its call.
func remembers(t *plugin.Target) bool {
	return t != nil && t.Manifest.Isolation == plugin.IsolationSession
}

// callInSession has a call made by the process that holds its session.
func (h *Host) callInSession(ctx context.Context, t *plugin.Target, call plugin.Call) (res plugin.Result, err error) {
	h.parts.Tell() // the process that holds the session says it to its log only
	for range 3 {  // one that ends at this moment is no reason to give up
		client, err := h.parts.SessionHosts.Connect(ctx, call.Session)
		if err != nil {
			return res, err
		}
		var sent bool
		res, sent, err = client.Call(ctx, principal.Name(call.Principal), call)
		if sent || ctx.Err() != nil || err == nil || !errors.Is(err, sessionhost.ErrGone) && plugin.CodeOf(err) != plugin.CodeUnavailable {
			return res, h.lost(ctx, t, err)
		}
	}
	return res, plugin.Errorf(plugin.CodeUnavailable, "the process of session %s ended three times before it took the call; its log is in %s", call.Session, filepath.Join(h.parts.Home, "keep"))
}

// lost turns the loss of a session host into outcome_unknown, if the call has effects.
func (h *Host) lost(ctx context.Context, t *plugin.Target, err error) error {
	if !errors.Is(err, sessionhost.ErrLost) || len(t.Operation.Effects) == 0 {
		return err
	}
	if _, failed := h.parts.Ledger.Recover(context.WithoutCancel(ctx)); failed != nil {
		return errors.Join(err, failed)
	}
	return plugin.Errorf(plugin.CodeOutcomeUnknown, "%s; what it had done by then is not known here", plugin.AsError(err).Message)
}

// advance resumes a call that is due, in the process that holds its session if it has
// one.
func (h *Host) advance(ctx context.Context, row *CallRow) error {
	if row.Session == "" {
		return h.parts.Kernel.Advance(ctx, row.Tenant, row.ID)
	}
	t, err := h.parts.Registry.Resolve(ctx, row.Operation)
	if err != nil || !remembers(t) {
		return h.parts.Kernel.Advance(ctx, row.Tenant, row.ID)
	}
	client, err := h.parts.SessionHosts.Connect(ctx, row.Session)
	if err != nil {
		return err
	}
	_, err = client.Advance(ctx, row.ID)
	if errors.Is(err, sessionhost.ErrGone) || errors.Is(err, sessionhost.ErrLost) {
		return nil // the waiting caller polls, and finds another session host
	}
	return err
}
