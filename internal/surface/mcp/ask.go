package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/consent"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A call that waits for an approval is answered with a question, if the client can show one
// (Multi Round-Trip Requests of revision 2026-07-28):
//
//	form   only if policy lets the caller confirm their own call: @self on a permit to approve
//	url    the page of the host on which an approver decides, after they have signed in there
//
// The record of the host decides in both cases. The client sends the call again with the answer
// and the request state, which says which approval was asked about. The state is sealed for the
// tenant, the principal, the tool and its arguments. The approval itself is bound to the package
// and the policies, and is used once, by compare-and-set.

const (
	askKey    = "approval" // of the one question
	askForm   = "form"
	askURL    = "url"
	askTime   = time.Hour // how long a question can be answered, if its approval does not expire before
	maxShown  = 8 << 10   // bytes of the lines of the arguments that a form shows; more are for the page
	formWidth = 100       // characters of a line of a form
)

// An approvalState is the request state of a call that asked about its approval.
type approvalState struct {
	Mode     string `json:"m"`
	Approval string `json:"a"`
	Call     string `json:"c"`
}

// answer is how a call ended or stands, as a question where the client can be asked one.
func (s *session) answer(ctx context.Context, r *sdk.CallToolRequest, t *plugin.Target, arguments json.RawMessage, res plugin.Result, err error) sdk.Result {
	if err == nil && res.Status == plugin.PendingApproval && res.Approval != nil && s.newest(r) {
		if asked := s.ask(ctx, r, t, arguments, res); asked != nil {
			return asked
		}
		if takesTasks(r) {
			return s.created(ctx, res)
		}
	}
	return s.result(r, t, res, err)
}

// ask returns the question about a call, nil if this client or this caller cannot be asked.
func (s *session) ask(ctx context.Context, r *sdk.CallToolRequest, t *plugin.Target, arguments json.RawMessage, res plugin.Result) *sdk.CallToolResult {
	form, url := elicits(r)
	q := approvalState{Approval: res.Approval.ID, Call: res.CallID}
	var shown *sdk.ElicitParams
	if form && s.api.Approvals().MayConfirm(ctx, res.Approval.ID) == nil {
		q.Mode, shown = askForm, s.form(ctx, res)
	}
	if shown == nil && url && s.Base != "" {
		q.Mode, shown = askURL, &sdk.ElicitParams{
			Mode: "url", URL: s.Base + "/decide/" + res.Approval.ID, ElicitationID: res.Approval.ID,
			Message: fmt.Sprintf("%s waits for a person's approval (%s). Sign in at this page to see the exact arguments and decide.", res.Operation, res.Approval.Why),
		}
	}
	if shown == nil {
		return nil
	}
	about, err := askedAbout(t, arguments)
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return nil
	}
	life := askTime
	if at := res.Approval.ExpiresAt; !at.IsZero() {
		life = min(life, time.Until(at))
	}
	state, err := s.api.Seal(raw, life, about...)
	if err != nil {
		s.Log.Error("a request state could not be sealed", "cause", err.Error())
		return nil
	}
	return &sdk.CallToolResult{Meta: sdk.Meta{callMeta: res.CallID}, InputRequests: sdk.InputRequestMap{askKey: shown}, RequestState: state}
}

// askedAbout is what a request state is bound to beside its caller.
func askedAbout(t *plugin.Target, arguments json.RawMessage) ([]string, error) {
	hash, err := canon.Hash(arguments)
	return []string{"tools/call", t.Name(), t.Package.Digest, hash}, err
}

// elicits reports which questions a client says that it can show.
func elicits(r *sdk.CallToolRequest) (form, url bool) {
	c := r.ClientCapabilities()
	if c == nil || c.Elicitation == nil {
		return false, false
	}
	e := c.Elicitation
	return e.Form != nil || e.URL == nil, e.URL != nil
}

// form asks a caller to confirm their own call. It shows exactly what the approval is bound to, a
// line for each leaf of the arguments; nil if that is too long for a form.
func (s *session) form(ctx context.Context, res plugin.Result) *sdk.ElicitParams {
	_, q, err := s.api.Approvals().Show(ctx, res.Approval.ID)
	if err != nil {
		return nil
	}
	message, fits := formMessage(q)
	if !fits {
		return nil
	}
	return &sdk.ElicitParams{
		Mode:    "form",
		Message: message,
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Approve",` +
			`"description":"true runs the call with exactly these arguments"}},"required":["approve"]}`),
	}
}

// formMessage is what a form says of a call. fits is false if the form could not show all of it.
func formMessage(q *host.Question) (message string, fits bool) {
	var arguments strings.Builder
	if consent.Write(&arguments, q.Input, formWidth) != nil || arguments.Len() > maxShown {
		return "", false
	}
	return fmt.Sprintf("Approve this call of %s %s?\nReason: %s\nEffects: %s\nArguments:\n%s",
		q.Operation, q.Version, consent.Quote(q.Why), strings.Join(q.Effects, ", "), arguments.String()), true
}

// resumed reads the request state of a call that asked about its approval, and returns how that
// call stands. is is false if the state is none, for this caller, tool, package and arguments.
func (s *session) resumed(ctx context.Context, r *sdk.CallToolRequest, t *plugin.Target, arguments json.RawMessage) (res plugin.Result, q approvalState, is bool, err error) {
	about, err := askedAbout(t, arguments)
	if err != nil {
		return res, q, false, err
	}
	raw, err := s.api.Unseal(r.Params.RequestState, about...)
	if err == nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		return res, q, false, err
	}
	res, err = s.api.Calls().Standing(ctx, q.Call)
	return res, q, true, err
}

// continued takes the answer to a question about an approval.
func (s *session) continued(ctx context.Context, r *sdk.CallToolRequest, t *plugin.Target, arguments json.RawMessage, q approvalState, res plugin.Result, err error) sdk.Result {
	if err != nil {
		return s.failure(plugin.Result{CallID: q.Call}, err)
	}
	given, answered := r.Params.InputResponses[askKey].(*sdk.ElicitResult)
	if !answered {
		return s.answer(ctx, r, t, arguments, res, nil) // asked again, with a new state
	}
	switch {
	case given.Action == "decline":
		_, _, err = s.api.Approvals().Decide(ctx, q.Approval, false, false, "declined in the client")
	case given.Action == "cancel":
		return s.result(r, t, res, nil)
	case given.Action != "accept":
		return s.answer(ctx, r, t, arguments, res, nil)
	case q.Mode == askForm:
		approve, is := given.Content["approve"].(bool)
		if !is {
			return s.answer(ctx, r, t, arguments, res, nil)
		}
		_, err = s.api.Approvals().Confirm(ctx, q.Approval, approve, "answered in the client")
	}
	if err != nil {
		return s.failure(plugin.Result{CallID: q.Call}, err)
	}
	res, err = s.outcome(ctx, q.Call, s.Wait)
	return s.result(r, t, res, err)
}

// outcome waits for the end of a call, and returns how it stands if that takes longer.
func (s *session) outcome(ctx context.Context, id string, limit time.Duration) (plugin.Result, error) {
	return s.within(ctx, id, func(ctx context.Context) (plugin.Result, error) {
		res, err := s.api.Calls().Wait(ctx, id, host.Waiting{Limit: limit})
		if _, waits := err.(host.Unfinished); waits {
			return res, err
		}
		return s.flushed(ctx)(res, err)
	})
}
