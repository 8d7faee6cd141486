// Package plan turns what an agent proposes into steps that can be approved as a
// whole, and takes them to their end.
//
// An agent only ever proposes. [Agents] stands around its call: what it is told, and
// whether its answer may count. [Engine.Submit] makes steps of a proposal and pins
// everything they depend on; from then on nothing an agent, a plugin or a policy says
// can add to them. [Engine.Run] takes a plan as far as it goes: each step is one call
// through the kernel under an idempotency key of its own, so that a run that resumes
// the plan after a crash repeats nothing. Every write is fenced by the state and the
// lease of the plan.
package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Kernel runs calls.
type Kernel interface {
	Call(ctx context.Context, call plugin.Call) (plugin.Result, error)
	// Await returns how a call ends, and runs it itself if it is queued. If ctx
	// ends first, the result is in progress.
	Await(ctx context.Context, tenant, id string) (plugin.Result, error)
	// AwaitWhile is Await that waits no longer than patient lasts; what it runs
	// itself ends before its time only with ctx.
	AwaitWhile(ctx, patient context.Context, tenant, id string) (plugin.Result, error)
}

// Answers are what calls came to.
type Answers interface {
	Lookup(ctx context.Context, tenant, operation, key string) (*ledger.Prior, error)
}

// Approvers knows who may agree to something.
type Approvers interface {
	// Anyone reports whether a principal other than the requester may approve all of these.
	Anyone(ctx context.Context, targets []*plugin.Target, requester plugin.Principal) bool
}

// Options are the parts of an engine. The first five are needed.
type Options struct {
	Kernel   Kernel
	Registry Registry
	Policy   Policy
	Store    Store
	Answers  Answers

	Approvers Approvers                                           // nil assumes that there always is one
	Asked     func(ctx context.Context, question *approval.Asked) // is called when a plan needs an approval; may be nil
	Wake      func(ctx context.Context, kind, tenant, id string)  // hears that a plan can go on; may be nil
	Hold      func(ctx context.Context) error                     // refuses to go on with any plan, for the time being; may be nil
	Lapse     func(ctx context.Context) (int, error)              // closes the questions whose time is over, for those who wait; nil leaves that to others
	Expire    time.Duration                                       // how long an approval may take; a day where it is 0
	Patience  time.Duration                                       // how long Run waits for work of another process; 10 s where it is 0
	Watch     time.Duration                                       // how often Run looks whether it was cancelled elsewhere; 500 ms where it is 0
	Now       func() time.Time                                    // time.Now where it is nil
	Log       *slog.Logger                                        // discarded where it is nil
}

// An Engine makes and runs plans. It is safe for concurrent use, on any number
// of nodes. Goroutines of its own live no longer than the Run that started them.
type Engine struct {
	Options

	mu     sync.Mutex
	active map[string]context.CancelCauseFunc // the plans that this engine is running, by tenant and id
	pauses map[string]pause                   // of those whose next step reached no plugin, likewise
}

// New returns an engine made of these parts.
func New(o Options) *Engine {
	if o.Expire <= 0 {
		o.Expire = 24 * time.Hour
	}
	if o.Patience <= 0 {
		o.Patience = 10 * time.Second
	}
	if o.Watch <= 0 {
		o.Watch = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{Options: o, active: map[string]context.CancelCauseFunc{}, pauses: map[string]pause{}}
}

// now is the time as the store keeps it.
func (e *Engine) now() time.Time { return e.Now().UTC().Truncate(time.Microsecond) }

// A Submission asks an agent for a plan.
type Submission struct {
	Tenant      string
	Principal   plugin.Principal // for whom, with whose rights
	Actor       string           // who asks in their name, where that is someone else; rights intersect
	Asker       string           // who is known to ask, see [plugin.Call]
	Parent      string           // the call that this comes of, if any
	Agent       string           // a reference to the agent's operation
	Input       json.RawMessage  // see [Request]
	Key         string           // a second submission with it gets the first one's plan; "" for none
	Labels      []string
	Session     string
	Instance    string // the agent that has the operation as its brain: its hooks guard the steps, which are of its plugins
	Origin      plugin.Origin
	Correlation string
	Observe     func(plugin.Event) // hears what the agent says while it works; may be nil
}

// An order is what a plan keeps of its submission, as the body that the row's
// request hash names.
type order struct {
	Principal   plugin.Principal `json:"principal"`
	Actor       string           `json:"actor,omitempty"`
	Asker       string           `json:"asker,omitempty"`
	Agent       string           `json:"agent"`
	InputHash   string           `json:"input_hash"`
	Session     string           `json:"session"`
	Instance    string           `json:"instance,omitempty"`
	Correlation string           `json:"correlation_id"`
	Proposal    json.RawMessage  `json:"proposal"` // the agent's whole answer
}

// Submit asks an agent and makes a plan of its proposal: queued where policy
// allows every step of it as it is, and otherwise waiting for one approval of
// the whole. An answer that is no plan is in the view, which then has no id.
// A refusal leaves an entry plan.refused.
func (e *Engine) Submit(ctx context.Context, s Submission) (*View, error) {
	inputHash, err := canon.Hash(s.Input)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input is not one strict JSON value: %w", err)
	}
	id := uuid.Must(uuid.NewV7()).String()
	key := "c:" + id
	if s.Key != "" {
		key = keyPrefix(s.Origin) + s.Key
		prior, err := e.Store.PlanByKey(ctx, s.Tenant, key)
		if err != nil {
			return nil, err
		}
		if prior != nil {
			view, err := e.again(ctx, &s, prior, inputHash)
			if plugin.CodeOf(err) == plugin.CodeKeyConflict {
				return nil, e.refused(ctx, &s, nil, "", err)
			}
			return view, err
		}
	}
	if err := e.noAgent(ctx, &s); err != nil {
		return nil, err
	}
	res, err := e.ask(ctx, &s, id)
	if err != nil {
		return nil, e.refused(ctx, &s, nil, res.CallID, err)
	}
	proposal, err := ParseProposal(res.Data)
	if err != nil {
		return nil, e.refused(ctx, &s, nil, res.CallID, err)
	}
	if proposal.Kind != PlanProposal {
		return &View{Agent: res.Operation, ProposalCall: res.CallID, Principal: s.Principal.Member(), Labels: union(s.Labels, res.Labels), Answer: res.Data, Steps: []StepView{}}, nil
	}
	agent, err := e.Registry.Resolve(ctx, res.Operation+"@"+res.Version)
	if err != nil {
		return nil, e.refused(ctx, &s, proposal, res.CallID, err)
	}
	b := &builder{engine: e, agent: agent, submitted: &s, proposal: proposal, labels: union(s.Labels, res.Labels, agent.Operation.Labels)}
	steps, err := b.build(ctx)
	if err != nil {
		return nil, e.refused(ctx, &s, proposal, res.CallID, err)
	}
	return e.put(ctx, &s, draft{id: id, key: key, inputHash: inputHash, agent: agent, call: res, proposal: proposal, steps: steps, labels: b.labels})
}

// keyPrefix tells the keys of events that happened elsewhere from those that
// callers choose, so that no caller can take an event's.
func keyPrefix(origin plugin.Origin) string {
	if origin == plugin.OriginAdapter {
		return "w:"
	}
	return "k:"
}

// keyOf is keyPrefix for the key of the call that asks the agent.
func keyOf(origin plugin.Origin) string {
	if origin == plugin.OriginAdapter {
		return plugin.KeyOfEvent
	}
	return plugin.KeyOfProposal
}

// noAgent refuses what is no agent: to a principal who does not see it, as what
// there is not. The record has the reason.
func (e *Engine) noAgent(ctx context.Context, s *Submission) error {
	t, err := e.Registry.Resolve(ctx, s.Agent)
	if err != nil || t.Operation.Kind == plugin.Agent {
		return nil // the kernel refuses what there is not
	}
	err = e.refused(ctx, s, nil, "", plugin.Errorf(plugin.CodeInvalidInput, "%s is an %s and proposes nothing; 'mortise run' calls it", t.Name(), t.Operation.Kind))
	who := &plugin.Call{Tenant: s.Tenant, Principal: s.Principal, Actor: s.Actor, Origin: s.Origin}
	if _, hidden := e.Registry.ResolveFor(ctx, s.Agent, e.sees(who)); hidden != nil {
		return hidden
	}
	return err
}

// sees returns what a caller may see.
func (e *Engine) sees(who *plugin.Call) func(m *plugin.Manifest) ([]*plugin.Operation, bool) {
	return func(m *plugin.Manifest) ([]*plugin.Operation, bool) { return e.Policy.Visible(m, who) }
}

// ask calls the agent. A key of the submission becomes one of the call, so that
// submitting again does not call the agent again.
func (e *Engine) ask(ctx context.Context, s *Submission, id string) (plugin.Result, error) {
	key := "plan:" + id
	if s.Key != "" {
		key = "plan:" + strings.TrimPrefix(keyPrefix(s.Origin), "k:") + s.Key
		if len(key) > 255 {
			sum := sha256.Sum256([]byte(key))
			key = "plan:" + hex.EncodeToString(sum[:])
		}
	}
	res, err := e.Kernel.Call(ctx, plugin.Call{
		Tenant: s.Tenant, Principal: s.Principal, Actor: s.Actor, Asker: s.Asker, Origin: s.Origin, Parent: s.Parent, Session: s.Session, Labels: s.Labels,
		Operation: s.Agent, Input: s.Input, Key: key, KeyOf: keyOf(s.Origin), Trace: plugin.Trace{Correlation: s.Correlation}, Observe: s.Observe,
	})
	if err == nil && res.Status == plugin.InProgress { // the same submission is in progress elsewhere
		res, err = e.Kernel.Await(ctx, s.Tenant, res.CallID)
	}
	if err != nil {
		return res, err
	}
	switch res.Status {
	case plugin.Succeeded:
		return res, nil
	case plugin.PendingApproval:
		return res, &plugin.Error{
			Code: plugin.CodeUnavailable, Retryable: true, Details: details(map[string]any{"call_id": res.CallID, "approval": res.Approval}),
			Message: "the call of the agent itself waits for an approval; submit again with the same key once it is given",
		}
	default:
		return res, &plugin.Error{
			Code: plugin.CodeUnavailable, Retryable: true, Details: details(map[string]any{"call_id": res.CallID}),
			Message: "the agent is still at work; submit again with the same key",
		}
	}
}

// again answers a key that was seen before.
func (e *Engine) again(ctx context.Context, s *Submission, row *Row, inputHash string) (*View, error) {
	o, err := e.order(ctx, e.Store, row)
	if err != nil {
		return nil, err
	}
	if o.Principal.Member() != s.Principal.Member() { // whose plan it is, and which, is not theirs to know
		return nil, plugin.Errorf(plugin.CodeKeyConflict, "the key %s was used before by another principal; choose another key", s.Key)
	}
	if o.InputHash != inputHash || o.Agent != s.Agent {
		return nil, plugin.Errorf(plugin.CodeKeyConflict, "the key %s was used before for plan %s, with another input or agent", s.Key, row.ID)
	}
	view, err := e.view(ctx, row)
	if err == nil {
		view.Replayed = true
	}
	return view, err
}

// order reads what a plan keeps of its submission.
func (e *Engine) order(ctx context.Context, r bodies, row *Row) (*order, error) {
	body, err := r.Body(ctx, row.Tenant, row.RequestHash)
	if err != nil {
		return nil, err
	}
	if body == nil || canon.Sum(body) != row.RequestHash {
		return nil, plugin.Errorf(plugin.CodeApprovalVoid, "plan %s: what it was submitted with is gone or was changed", row.ID)
	}
	o := &order{}
	return o, json2.Unmarshal(body, o)
}

// A draft is a plan that is about to be written.
type draft struct {
	id, key   string
	inputHash string
	agent     *plugin.Target
	call      plugin.Result
	proposal  *Proposal
	steps     []*step
	labels    []string
}

// put writes a plan with its steps and, if it has gates, the approval request. If a
// concurrent submission with the same key was faster, put returns that plan.
func (e *Engine) put(ctx context.Context, s *Submission, d draft) (*View, error) {
	at := e.now()
	body, err := encode(order{
		Principal: s.Principal, Actor: s.Actor, Asker: s.Asker, Agent: s.Agent, InputHash: d.inputHash, Session: s.Session, Instance: s.Instance, Correlation: d.call.Correlation, Proposal: d.call.Data,
	})
	if err != nil {
		return nil, err
	}
	row := Row{
		Tenant: s.Tenant, ID: d.id, Key: d.key, Agent: d.agent.Name(), ProposalCall: d.call.CallID, Principal: s.Principal.Member(),
		RequestHash: canon.Sum(body), Labels: d.labels, CreatedAt: at, State: Queued, UpdatedAt: at,
	}
	rows := make([]StepRow, len(d.steps))
	for i, st := range d.steps {
		rows[i] = StepRow{
			Tenant: s.Tenant, PlanID: d.id, N: int64(i + 1), StepID: st.id, Operation: st.target.Name(), Version: st.target.Manifest.Version,
			PackageDigest: st.target.Package.Digest, Input: string(st.input), Needs: st.needs, Gate: st.gate, Why: st.why,
		}
	}
	if row.Hash, err = hash(rows, row.RequestHash); err != nil {
		return nil, err
	}
	question, err := e.question(&row, s, &d, at)
	if err != nil {
		return nil, err
	}
	if question != nil {
		row.State = Pending
	}
	proposed, err := e.entry(&row, plugin.EntryPlanProposed, s.Principal.Member(), at, func(ev *evidence) {
		ev.steps(rows)
		ev.Confidence, ev.Randomness = &d.proposal.Confidence, d.proposal.Randomness
		ev.AgentVersion = d.agent.Manifest.Version
		if question != nil {
			ev.Approval = question.Row.ID
		}
	})
	if err != nil {
		return nil, err
	}
	var prior *Row
	err = e.Store.Write(ctx, func(tx ledger.Tx) (err error) {
		if prior, err = tx.InsertPlan(row, rows); err != nil || prior != nil {
			return err
		}
		if _, err := tx.PutBody(row.Tenant, body, time.Time{}); err != nil {
			return err
		}
		tx.Append(proposed)
		if question != nil {
			return question.Put(tx)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if prior != nil {
		return e.again(ctx, s, prior, d.inputHash)
	}
	switch {
	case question != nil && e.Asked != nil:
		e.Asked(ctx, question)
	case question == nil && e.Wake != nil:
		e.Wake(ctx, "plan", row.Tenant, row.ID)
	}
	return e.view(ctx, &row)
}

// question returns what a person is asked about a plan with gates: the whole of
// it, once; nil where it has none.
func (e *Engine) question(row *Row, s *Submission, d *draft, at time.Time) (*approval.Asked, error) {
	var why []string
	shown := make([]map[string]any, len(d.steps))
	for i, s := range d.steps {
		op := s.target.Operation
		shown[i] = map[string]any{
			"step_id": s.id, "operation": s.target.Name(), "version": s.target.Manifest.Version, "kind": op.Kind, "effects": orEmpty(op.Effects),
			"policy_tags": orEmpty(op.PolicyTags), "needs": orEmpty(s.needs), "gate": s.gate, "why": s.why, "input": s.input,
		}
		if s.gate != GateNone {
			why = append(why, "step "+s.id+": "+s.why)
		}
	}
	if len(why) == 0 {
		return nil, nil
	}
	preview, err := encode(map[string]any{
		"plan": row.ID, "hash": row.Hash, "agent": row.Agent, "for": row.Principal, "rationale": d.proposal.Rationale.Short,
		"confidence": d.proposal.Confidence, "labels": orEmpty(row.Labels), "steps": shown,
	})
	if err != nil {
		return nil, err
	}
	return approval.New(approval.Question{
		Tenant: row.Tenant, SubjectKind: approval.SubjectPlan, SubjectID: row.ID, Requester: s.Principal.Member(), Asker: s.Asker, Binding: row.Hash,
		PolicyVersion: e.Policy.Version(), Why: strings.Join(why, "; "), Preview: json.RawMessage(preview), At: at, Expires: at.Add(e.Expire),
	}), nil
}

// refused puts on record that no plan came of a submission, and returns why.
func (e *Engine) refused(ctx context.Context, s *Submission, p *Proposal, call string, why error) error {
	failure := plugin.AsError(why)
	row := &Row{Tenant: s.Tenant, Agent: s.Agent, ProposalCall: call, Principal: s.Principal.Member()}
	entry, err := e.entry(row, plugin.EntryPlanRefused, s.Principal.Member(), e.now(), func(ev *evidence) {
		ev.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: failure.Message}
		if p != nil {
			ev.Confidence, ev.Randomness = &p.Confidence, p.Randomness
		}
	})
	if err != nil {
		return err
	}
	entry.Subject = call
	err = e.Store.Write(context.WithoutCancel(ctx), func(tx ledger.Tx) error {
		tx.Append(entry)
		return nil
	})
	if err != nil {
		return err
	}
	return why
}

// findAmong is how many of the newest plans are searched for a part of an id.
const findAmong = 10_000

// find returns the plan of an id, or of a part of one, at least four characters
// long, that no other plan's id contains.
func (e *Engine) find(ctx context.Context, tenant, id string) (*Row, error) {
	row, err := e.Store.Plan(ctx, tenant, id)
	if err != nil || row != nil {
		return row, err
	}
	if len(id) >= 4 {
		near, err := e.containing(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		switch len(near) {
		case 0:
		case 1:
			return &near[0], nil
		default:
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is part of more than one plan's id, such as %s and %s; write more of it", id, near[0].ID, near[1].ID)
		}
	}
	return nil, Missing(id)
}

// Missing says that there is no such plan, or none that the caller may know of.
func Missing(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no plan %.100s; 'mortise plans list' shows those there are", id)
}

// containing returns plans whose ids contain a text: all those that begin with
// it, or else those among the newest that have it elsewhere. Two are enough.
func (e *Engine) containing(ctx context.Context, tenant, part string) (found []Row, err error) {
	keep := func(rows []Row, fits func(id, part string) bool) {
		for _, row := range rows {
			if fits(row.ID, part) && len(found) < 2 {
				found = append(found, row)
			}
		}
	}
	// Ids are text in hexadecimal, so ~ comes after all that begin with part.
	rows, err := e.Store.Plans(ctx, Filter{Tenant: tenant, Before: part + "~", Limit: 2})
	keep(rows, strings.HasPrefix)
	if len(found) > 0 {
		return found, err
	}
	for seen, before := 0, ""; err == nil && len(found) < 2 && seen < findAmong; seen += len(rows) {
		rows, err = e.Store.Plans(ctx, Filter{Tenant: tenant, Before: before, Limit: 500})
		if len(rows) == 0 {
			break
		}
		before = rows[len(rows)-1].ID
		keep(rows, strings.Contains)
	}
	return found, err
}
