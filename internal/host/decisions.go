package host

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/reported"
	"github.com/mortise-dev/mortise/plugin"
)

// The most that a decision may be asked with, in bytes.
const (
	MaxArguments  = 1 << 20
	MaxDefinition = 256 << 10
	MaxUse        = 255
)

// A DecisionAsked is what a program asks before it runs a tool of its own.
type DecisionAsked struct {
	Program    string          // that runs the tool
	Tool       string          // as the program calls it
	Definition json.RawMessage // how the program describes it; nil where it does not
	Arguments  json.RawMessage // an object
	Key        string          // idempotency key
	Use        string          // what the program calls the one use that it asks for; "" where it does not say
	Labels     []string
	Trace      string // what the program calls the conversation that it belongs to
}

// The words of a decision.
const (
	DecisionAllow   = "allow"
	DecisionDeny    = "deny"
	DecisionPending = "pending" // a person is asked, or it is not on record yet
)

// A ToolDecision is whether a tool may run, as things stand.
type ToolDecision struct {
	ID        string
	Word      string // [DecisionAllow], [DecisionDeny] or [DecisionPending]
	Row       *CallRow
	Code      plugin.Code     // of a denial
	Reason    string          // what policy said, or why it is denied
	Approval  *plugin.Pending // what is asked of a person
	ExpiresAt time.Time       // when an approval, or what is allowed, is over
	Replayed  bool            // the answer to an earlier question with its key
}

// RunsElsewhere reports whether another program runs an operation: the host decides about its
// calls, and hears of their end only from that program.
func RunsElsewhere(operation string) bool { return strings.HasPrefix(operation, reported.Prefix) }

// Decisions are what programs ask the host about, for one principal, who sees and settles
// their own alone.
type Decisions struct {
	calls Calls
	api   API
}

// Decisions returns the decisions.
func (a API) Decisions() Decisions { return Decisions{a.Calls(), a} }

// Decide asks whether a tool may run with these arguments, and puts the answer on record:
// what it allows is a call in progress, until it is settled or its time is over. A denial is
// an answer and no error. Errors are all that leaves it undecided, which allows nothing.
func (d Decisions) Decide(ctx context.Context, in DecisionAsked) (ToolDecision, error) {
	if len(in.Arguments) > MaxArguments || len(in.Definition) > MaxDefinition {
		return ToolDecision{}, plugin.Errorf(plugin.CodeInputTooLarge, "the arguments have %d bytes and the definition %d; at most %d and %d are accepted", len(in.Arguments), len(in.Definition), MaxArguments, MaxDefinition)
	}
	if err := checkUse(in.Use); err != nil {
		return ToolDecision{}, err
	}
	hash := ""
	if len(in.Definition) > 0 {
		var err error
		if hash, err = canon.Hash(in.Definition); err != nil {
			return ToolDecision{}, plugin.Errorf(plugin.CodeInvalidInput, "the definition is not one strict JSON value: %w", err)
		}
	}
	ref := reported.Ref(in.Program, in.Tool, hash)
	if ref == "" {
		return ToolDecision{}, plugin.Errorf(plugin.CodeInvalidInput, "%.64q of %.64q is no tool: a program is called by small letters, digits, - and _, a tool by a letter and letters, digits, dots, - and _", in.Tool, in.Program)
	}
	name := reported.Prefix + in.Program + "/" + in.Tool
	if err := d.calls.g.covered(ctx, d.calls.caller, ScopeDecide, "decide", name, name); err != nil {
		return ToolDecision{}, err
	}
	res, err := d.calls.host.parts.Kernel.Call(ctx, plugin.Call{
		Tenant: d.calls.g.Tenant, Principal: d.calls.by, By: d.api.onBehalf(), Asker: d.api.asker(), Origin: plugin.OriginDecision, Operation: ref, Input: in.Arguments,
		Definition: in.Definition, Key: in.Key, Labels: plugin.Labels(nil, in.Labels), Trace: plugin.Trace{Workflow: in.Trace},
	})
	if err != nil && denies[plugin.CodeOf(err)] {
		e := plugin.AsError(err)
		return ToolDecision{ID: res.CallID, Word: DecisionDeny, Code: e.Code, Reason: e.Message, Replayed: res.Replayed}, nil
	}
	if err != nil && !res.Replayed {
		return ToolDecision{}, err
	}
	row, err := d.calls.host.parts.Ledger.Call(ctx, d.calls.g.Tenant, res.CallID)
	if err != nil || row == nil {
		return ToolDecision{}, orElse(err, missingDecision(res.CallID))
	}
	decision, err := d.held(ctx, row, in.Use)
	decision.Replayed = res.Replayed
	return decision, err
}

func checkUse(use string) error {
	if len(use) > MaxUse {
		return plugin.Errorf(plugin.CodeInvalidInput, "the use has %d bytes; at most %d are accepted", len(use), MaxUse)
	}
	return nil
}

// held returns the decision that a row is to a use: one that allows if the use has it, and a denial if
// another use does. A decision that no use has is for everyone who asks, if none of them names a use.
func (d Decisions) held(ctx context.Context, row *CallRow, use string) (ToolDecision, error) {
	decision, err := d.standing(ctx, row)
	if err != nil || decision.Word != DecisionAllow || use == "" && row.Lease == "" {
		return decision, err
	}
	has, err := d.calls.host.parts.Kernel.Reserve(ctx, d.calls.g.Tenant, decision.ID, use)
	if err != nil || has {
		return decision, err
	}
	decision.Word, decision.Code, decision.ExpiresAt = DecisionDeny, plugin.CodeApprovalUsed, time.Time{}
	decision.Reason = "it is for another use of the tool, which asked first: a decision is for one run"
	return decision, nil
}

// denies are the codes of refusals that answer the question; all others leave it open.
var denies = map[plugin.Code]bool{
	plugin.CodePolicyDenied: true, plugin.CodeNotFound: true, plugin.CodeScopeDenied: true, plugin.CodeApprovalDenied: true,
	plugin.CodeApprovalExpired: true, plugin.CodeApprovalVoid: true, plugin.CodeEffectUndeclared: true, plugin.CodeHookVetoed: true,
}

func missingDecision(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no decision %.64s", id)
}

// own returns a decision that they asked for.
func (d Decisions) own(ctx context.Context, id, action string) (*CallRow, error) {
	row, err := d.calls.host.parts.Ledger.Call(ctx, d.calls.g.Tenant, id)
	if err != nil {
		return nil, err
	}
	if row == nil || row.Origin != string(plugin.OriginDecision) {
		return nil, missingDecision(id)
	}
	made, err := d.calls.made(ctx, row)
	if err == nil && !made {
		err = d.calls.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: row.ID, action: action}, missingDecision(id))
	}
	return row, err
}

// Get returns how a decision stands for a use, which has it from then on if it allows and no other
// has it; "" names none. It stays up to limit for one that is pending.
func (d Decisions) Get(ctx context.Context, id, use string, limit time.Duration) (ToolDecision, error) {
	if err := checkUse(use); err != nil {
		return ToolDecision{}, err
	}
	row, err := d.own(ctx, id, "see")
	if err != nil {
		return ToolDecision{}, err
	}
	until := time.Now().Add(limit)
	n, err := d.calls.host.news(ctx, id)
	if err != nil {
		return ToolDecision{}, err
	}
	defer n.close()
	for {
		if row.State == CallQueued && !row.WakeAt.After(d.calls.g.Store.Now()) { // it was approved
			if err := d.calls.host.parts.Kernel.Advance(ctx, row.Tenant, row.ID); plugin.CodeOf(err) == plugin.CodeInternal {
				return ToolDecision{}, err
			}
		}
		if row.State == CallPending && !row.WakeAt.After(d.calls.g.Store.Now()) {
			if _, err := d.calls.host.parts.Approvals.Expire(ctx); err != nil {
				return ToolDecision{}, err
			}
		}
		if row, err = d.calls.host.parts.Ledger.Call(ctx, d.calls.g.Tenant, id); err != nil || row == nil {
			return ToolDecision{}, orElse(err, missingDecision(id))
		}
		waits := row.State == CallPending || row.State == CallQueued || row.State == CallRunning
		if !waits || ctx.Err() != nil || !time.Now().Before(until) {
			return d.held(context.WithoutCancel(ctx), row, use)
		}
		n.wait(ctx, min(untilDue(row, d.calls.g.Store.Now()), time.Until(until)))
	}
}

// standing returns the decision that a row is. A row that is in progress, and no other,
// allows.
func (d Decisions) standing(ctx context.Context, row *CallRow) (ToolDecision, error) {
	out := ToolDecision{ID: row.ID, Word: DecisionDeny, Row: row}
	switch row.State {
	case CallInProgress:
		if !row.WakeAt.After(d.calls.g.Store.Now()) || row.Cancelled {
			out.Code, out.Reason = plugin.CodeApprovalExpired, "the time for it is over"
			return out, nil
		}
		out.Word, out.ExpiresAt = DecisionAllow, row.WakeAt
		out.Reason = d.reason(ctx, row)
	case CallPending, CallQueued, CallRunning:
		out.Word = DecisionPending
		asked, err := d.calls.host.parts.Ledger.ApprovalOf(ctx, row.Tenant, row.ID)
		if err != nil {
			return out, err
		}
		if asked != nil {
			out.Approval = &plugin.Pending{ID: asked.ID, Why: asked.Why, ExpiresAt: asked.ExpiresAt}
			out.Reason, out.ExpiresAt = asked.Why, asked.ExpiresAt
		}
	case CallSucceeded:
		out.Code, out.Reason = plugin.CodeApprovalUsed, "it was used: a decision is for one run"
	case CallUnknown:
		out.Code, out.Reason = plugin.CodeOutcomeUnknown, "it was given, and no one said how the tool ended"
	default:
		prior, err := d.calls.host.parts.Ledger.Prior(ctx, row)
		if err != nil {
			return out, err
		}
		out.Code, out.Reason = plugin.Code(row.Code), "it may not run"
		if prior.Err != nil {
			out.Reason = prior.Err.Message
		}
		if out.Code == plugin.CodePluginError || out.Code == plugin.CodeCancelled {
			out.Code = plugin.CodeApprovalUsed
		}
	}
	return out, nil
}

// reason is what policy said of a call, as its last entry has it.
func (d Decisions) reason(ctx context.Context, row *CallRow) string {
	entries, err := ledger.Show(ctx, d.calls.g.Store, row.Tenant, row.ID)
	for i := len(entries) - 1; err == nil && i >= 0; i-- {
		var rec plugin.CallRecord
		if json.Unmarshal(entries[i].Body, &rec) == nil && rec.Decision != nil && len(rec.Decision.Reasons) > 0 {
			return rec.Decision.Reasons[0]
		}
	}
	return ""
}

// A Report is how a tool ended, as the program says that ran it.
type Report = kernel.Report

// Settle records how a tool ended. The same again gives the same answer. Errors:
// not_found, conflict, invalid_input.
func (d Decisions) Settle(ctx context.Context, id string, r Report) (*CallRow, error) {
	if _, err := d.own(ctx, id, "settle"); err != nil {
		return nil, err
	}
	r.By = d.calls.by
	return d.calls.host.parts.Kernel.Report(ctx, d.calls.g.Tenant, id, r)
}
