package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/plugin"
)

// What becomes of the times of a feed that nothing served, and of those at which a run
// was not over.
type (
	Misfire = schedule.Misfire
	Overlap = schedule.Overlap
)

// MaxCatchUp is how many of the times that were missed a feed may make up for.
const MaxCatchUp = schedule.MaxCatchUp

// A Feed is a schedule as people see it.
type Feed struct {
	schedule.Schedule
	Owner   string `json:"owner"`
	Problem string `json:"problem,omitempty"` // why no run can be made now, and what to do
}

// A FeedTick is what became of one time of a feed.
type FeedTick struct {
	At      time.Time   `json:"at"`
	Since   *time.Time  `json:"since,omitempty"` // the first of the times that it stands for
	Outcome tickOutcome `json:"outcome"`
	Call    string      `json:"call_id,omitempty"`
	Status  string      `json:"status,omitempty"` // of that call
	Code    string      `json:"code,omitempty"`   // why there is no call, or how it failed
}

// A NewFeed is the specification of a schedule to create.
type NewFeed struct {
	Plugin    string // name or name/operation
	Op        string // the operation that the parameters name, which counts for a plugin of Shu where Plugin names none
	Spec      string // every 1h where it is empty
	Zone      string
	Misfire   schedule.Misfire
	CatchUp   int
	Overlap   schedule.Overlap
	OCR       string   // always, auto, fallback, never; empty leaves that to the host
	Knowledge []string // the knowledge bases it is about

	// Input returns what the operation is called with.
	Input func(t *plugin.Target) (json.RawMessage, error)
}

// Of returns the operation of a plugin that the feed is to run. Errors: invalid_input.
func (n *NewFeed) Of(m *plugin.Manifest) (*plugin.Operation, error) {
	_, op, _ := strings.Cut(n.Plugin, "/")
	if _, prepares := contract.Of[contract.Preparer](m); op == "" && prepares {
		op = n.Op
	}
	return schedule.Choose(m, op)
}

// Feeds are the schedules of the host's tenant, as one principal may see and
// change them: their own, and those of plugins that they may configure.
type Feeds struct {
	g         *Guard
	by        plugin.Principal
	caller    *Caller // nil for the user of this process
	asker     func() string
	registry  *registry.Registry
	schedules *schedule.Engine
	plugins   Plugins
	knowledge Knowledge
}

// Create makes a feed that runs in the name of who asks for it, who must be
// allowed to do now what it does.
func (f Feeds) Create(ctx context.Context, n NewFeed) (Feed, error) {
	name, _, _ := strings.Cut(n.Plugin, "/")
	if strings.Contains(n.Plugin, "@") {
		return Feed{}, plugin.Errorf(plugin.CodeInvalidInput, "a feed runs whatever version is active; write %s without one", n.Plugin)
	}
	shown, err := f.plugins.Show(ctx, name)
	if err != nil {
		return Feed{}, err
	}
	chosen, err := n.Of(shown.Manifest)
	if err != nil {
		return Feed{}, err
	}
	t, err := f.registry.ResolveFor(ctx, name+"/"+chosen.Name, f.plugins.sees)
	if err != nil {
		return Feed{}, err
	}
	written, err := n.Input(t)
	if err != nil {
		return Feed{}, err
	}
	input, overlay, err := f.prepared(ctx, t, &n, written, nil)
	if err != nil {
		return Feed{}, err
	}
	call := &plugin.Call{Tenant: f.g.Tenant, Principal: f.by, Origin: plugin.OriginFeed, Operation: t.Name(), Input: orEmpty(input)}
	if err := f.mayRunLater(ctx, t, call); err != nil {
		return Feed{}, err
	}
	if err := f.g.recent(ctx, f.caller, use{kind: plugin.EntryFeedRefused, subject: t.Name(), action: "create"}); err != nil {
		return Feed{}, err
	}
	if n.Spec == "" {
		n.Spec = "every 1h"
	}
	s, err := f.schedules.Create(ctx, f.g.Tenant, schedule.Schedule{
		Owner: f.by, Asker: f.asker(), Operation: t.Name(), Input: input, Overlay: overlay, Spec: n.Spec, Zone: n.Zone, Misfire: n.Misfire, CatchUp: n.CatchUp, Overlap: n.Overlap,
		AtOnce: t.Manifest.Contract.AtOnce && strings.HasPrefix(strings.TrimSpace(n.Spec), "every"), // as published hosts run the feeds of their plugins
	}, f.noting(plugin.EntryFeedCreated))
	return feedOf(s), err
}

// prepared splits what was written as the input of a feed into that and what the host alone
// decides, and checks both. Where nothing is written for the host, before holds.
func (f Feeds) prepared(ctx context.Context, t *plugin.Target, n *NewFeed, written, before json.RawMessage) (input, overlay json.RawMessage, err error) {
	input, decided, _, err := contract.Prepare(t, written)
	if err != nil {
		return nil, nil, err
	}
	nothing := func(string) (plugin.File, bool, error) { return plugin.File{}, false, nil }
	if _, _, err := handed.Resolve(input, nothing); err != nil { // a feed has no person beside it who hands files on
		return nil, nil, err
	}
	if err := f.mayFill(ctx, n, decided); err != nil {
		return nil, nil, err
	}
	if len(decided) == 0 {
		decided = before
	}
	if overlay, err = n.overlay(decided); err != nil {
		return nil, nil, err
	}
	gaps, err := placeholder.Gaps(t.Operation, orEmpty(input))
	if err != nil {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: input: %w", t.Name(), err)
	}
	if err := t.Input.Check(ctx, orEmpty(input)); err != nil && len(gaps) == 0 && !t.Operation.Advisory {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", t.Name(), err)
	}
	return input, overlay, nil
}

func orEmpty(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

// overlay is what the host alone decides about the runs of a feed: what was
// written under __host, and what was asked for beside it, which counts for more.
func (n *NewFeed) overlay(written json.RawMessage) (json.RawMessage, error) {
	members := map[string]any{}
	if len(written) > 0 {
		if err := json.Unmarshal(written, &members); err != nil {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", shu.HostMember, err)
		}
	}
	if n.OCR != "" {
		members["ocr"] = map[string]any{"mode": n.OCR}
	}
	if ocr, there := members["ocr"]; there {
		said, _ := ocr.(map[string]any)
		if mode, _ := said["mode"].(string); !slices.Contains([]string{"always", "auto", "fallback", "never"}, mode) {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "the OCR mode is always, auto, fallback or never, not %.40q", fmt.Sprint(said["mode"]))
		}
	}
	if len(n.Knowledge) > 0 {
		members["kb"] = map[string]any{"knowledge_base_ids": n.Knowledge}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

// mayFill refuses a feed that would write to a knowledge base of another: what it is
// about is checked as adding to it is. The administrator may name one that the feed
// itself begins.
func (f Feeds) mayFill(ctx context.Context, n *NewFeed, written json.RawMessage) error {
	if f.knowledge.unbounded() {
		return nil
	}
	var host struct {
		KB struct {
			IDs []string `json:"knowledge_base_ids"`
		} `json:"kb"`
	}
	if len(written) > 0 {
		if err := json.Unmarshal(written, &host); err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", shu.HostMember, err)
		}
	}
	for _, id := range slices.Concat(n.Knowledge, host.KB.IDs) {
		if _, err := f.knowledge.base(ctx, id, "add to"); err != nil {
			return err
		}
	}
	return nil
}

// List returns the feeds that they may see, newest first.
func (f Feeds) List(ctx context.Context) ([]Feed, error) {
	all, err := f.schedules.List(ctx, f.g.Tenant)
	if err != nil {
		return nil, err
	}
	feeds := []Feed{}
	for _, s := range all {
		if f.decide(ctx, s).Verdict == plugin.Allow {
			feeds = append(feeds, f.withProblem(ctx, s))
		}
	}
	return feeds, nil
}

// Show returns a feed with its next times and the last ones.
func (f Feeds) Show(ctx context.Context, id string) (feed Feed, next []time.Time, last []FeedTick, err error) {
	s, err := f.get(ctx, id, "see")
	if err != nil {
		return feed, nil, nil, err
	}
	if next, err = f.schedules.Coming(s, 5); err != nil {
		return feed, nil, nil, err
	}
	rows, err := f.schedules.Ticks(ctx, f.g.Tenant, id, 10)
	if err != nil {
		return feed, nil, nil, err
	}
	last = []FeedTick{}
	for _, row := range rows {
		tick := FeedTick{At: row.At, Outcome: row.Outcome, Call: row.CallID, Code: row.Code}
		if !row.Since.Equal(row.At) {
			tick.Since = &row.Since
		}
		if row.Outcome == tickCalled {
			call, err := f.g.Store.Call(ctx, row.Tenant, row.CallID)
			if err != nil {
				return feed, nil, nil, err
			}
			if call != nil {
				tick.Status, tick.Code = string(call.State), call.Code
			}
		}
		last = append(last, tick)
	}
	return f.withProblem(ctx, s), next, last, nil
}

// withProblem is a feed and why its runs would be refused by its plugin.
func (f Feeds) withProblem(ctx context.Context, s schedule.Schedule) Feed {
	feed := feedOf(s)
	t, err := f.registry.ResolveFor(ctx, s.Operation, f.plugins.sees)
	if err == nil {
		_, err = schedule.Choose(t.Manifest, t.Operation.Name)
	}
	if err != nil {
		feed.Problem = fmt.Sprintf("%s cannot run: %s; mend that and 'mortise feeds resume %s', or 'mortise feeds delete %s'", s.Operation, plugin.AsError(err).Message, s.ID, s.ID)
	}
	return feed
}

// Pause lets a feed make no more runs.
func (f Feeds) Pause(ctx context.Context, id string) (Feed, error) {
	return f.change(ctx, id, "pause", plugin.EntryFeedPaused, f.schedules.Pause)
}

// Resume lets a feed go on with the times that come from now on.
func (f Feeds) Resume(ctx context.Context, id string) (Feed, error) {
	s, err := f.get(ctx, id, "resume")
	if err == nil {
		err = f.covered(ctx, ScopeConfigure, "resume a feed of", s.Operation)
	}
	if err != nil {
		return Feed{}, err
	}
	return f.change(ctx, id, "resume", plugin.EntryFeedResumed, f.schedules.Resume)
}

// Delete forgets a feed with its times and its cursors.
func (f Feeds) Delete(ctx context.Context, id string) (Feed, error) {
	return f.change(ctx, id, "delete", plugin.EntryFeedDeleted, func(ctx context.Context, tenant, id string, also schedule.Also) (schedule.Schedule, error) {
		return f.schedules.Delete(ctx, tenant, id, func(tx Tx, s schedule.Schedule) error {
			if _, err := tx.DeleteKVs(cursorsOf(tenant, s)); err != nil {
				return err
			}
			return also(tx, s)
		})
	})
}

// ResetCursor deletes the cursor of a feed, so that its plugin starts from the
// beginning.
func (f Feeds) ResetCursor(ctx context.Context, id string) (Feed, error) {
	s, err := f.get(ctx, id, "reset")
	if err != nil {
		return Feed{}, err
	}
	err = f.g.Store.Write(ctx, func(tx Tx) error {
		s := s
		row, err := tx.Schedule(ctx, f.g.Tenant, id)
		if err != nil || row == nil {
			return err
		}
		s.LastCall = row.LastCall
		if err := f.resetCursor(ctx, tx, s); err != nil {
			return err
		}
		return f.noting(plugin.EntryFeedReset)(tx, s)
	})
	return feedOf(s), err
}

// resetCursor deletes the cursors of a feed, unless a run of it is at work.
func (f Feeds) resetCursor(ctx context.Context, tx Tx, s schedule.Schedule) error {
	if call, err := tx.Call(ctx, f.g.Tenant, s.LastCall); err != nil || call != nil && !call.State.Ended() {
		if err == nil {
			err = plugin.Errorf(plugin.CodeUnavailable, "feed %s is running and would go on from where it is; wait for call %s, or stop it with 'mortise calls cancel'", s.ID, call.ID)
		}
		return err
	}
	_, err := tx.DeleteKVs(cursorsOf(f.g.Tenant, s))
	return err
}

// cursorsOf is how the keys of a feed's cursors begin.
func cursorsOf(tenant string, s schedule.Schedule) kvKey {
	name, _, _ := strings.Cut(s.Operation, "/")
	return service.CursorPlace(tenant, name, cmp.Or(s.Owner.Type, "user")+"::"+s.Owner.ID, s.ID, "")
}

// Run makes a run of a feed now, beside its times, in the name of its owner.
func (f Feeds) Run(ctx context.Context, id string) (plugin.Result, error) {
	s, err := f.get(ctx, id, "run")
	if err == nil {
		err = f.covered(ctx, ScopeRun, "run a feed of", s.Operation)
	}
	if err != nil {
		return plugin.Result{}, err
	}
	return f.schedules.Run(ctx, f.g.Tenant, id)
}

func (f Feeds) change(ctx context.Context, id, what string, kind plugin.EntryKind,
	do func(ctx context.Context, tenant, id string, also schedule.Also) (schedule.Schedule, error)) (Feed, error) {
	if _, err := f.get(ctx, id, what); err != nil {
		return Feed{}, err
	}
	if err := f.g.recent(ctx, f.caller, use{kind: plugin.EntryFeedRefused, subject: id, action: what}); err != nil {
		return Feed{}, err
	}
	s, err := do(ctx, f.g.Tenant, id, f.noting(kind))
	return feedOf(s), err
}

// get returns a feed that they may see. Of another they do not hear that it is;
// the entry of the refusal says what was tried.
func (f Feeds) get(ctx context.Context, id, what string) (schedule.Schedule, error) {
	s, err := f.schedules.Get(ctx, f.g.Tenant, id)
	if err != nil {
		return s, err
	}
	if d := f.decide(ctx, s); d.Verdict != plugin.Allow {
		missing := plugin.Errorf(plugin.CodeNotFound, "there is no feed %s; 'mortise feeds list' shows those there are", id)
		return schedule.Schedule{}, f.g.refuse(ctx, f.by, use{kind: plugin.EntryFeedRefused, subject: s.ID, action: what}, missing, d)
	}
	return s, nil
}

// mayRunLater refuses a feed that does what its owner may not do now. That an
// approval would be asked for is no reason to.
func (f Feeds) mayRunLater(ctx context.Context, t *plugin.Target, call *plugin.Call) error {
	if err := f.covered(ctx, ScopeRun, "make a feed of", t.Name()); err != nil {
		return err
	}
	d := f.g.Policy.Decide(t, call)
	if d.Verdict == plugin.AllowWithApproval {
		return nil
	}
	return f.g.require(ctx, call.Principal, use{plugin.EntryFeedRefused, t.Name(), "create", "have " + t.Name() + " run"}, d)
}

// covered refuses to let an operation run that the token of the caller is not for.
func (f Feeds) covered(ctx context.Context, scope, action, operation string) error {
	return f.g.covered(ctx, f.caller, scope, action, operation, operation)
}

// decide allows a feed that is theirs, or of a plugin that they may configure.
func (f Feeds) decide(ctx context.Context, s schedule.Schedule) plugin.Decision {
	if principal.Name(s.Owner) == principal.Name(f.by) {
		return plugin.Decision{Verdict: plugin.Allow}
	}
	name, _, _ := strings.Cut(s.Operation, "/")
	target := f.g.part(name)
	if t, err := f.registry.Resolve(ctx, s.Operation); err == nil {
		target = t
	}
	return f.g.Policy.May(policy.Configure, target, f.g.call(f.by))
}

// noting puts a change on the record.
func (f Feeds) noting(kind plugin.EntryKind) schedule.Also {
	return func(tx Tx, s schedule.Schedule) error {
		return f.g.Note(tx, f.by, kind, s.ID, map[string]any{
			"operation": s.Operation, "owner": principal.Name(s.Owner), "spec": s.Spec, "zone": s.Zone, "misfire": s.Misfire, "overlap": s.Overlap, "state": s.State,
		})
	}
}

func feedOf(s schedule.Schedule) Feed { return Feed{Schedule: s, Owner: principal.Name(s.Owner)} }

// ofTurn has an agent asked at times, in the name of who wants that.
func (f Feeds) ofTurn(ctx context.Context, id, prompt, spec, zone string) (Feed, error) {
	t, err := f.registry.Resolve(ctx, agent.TurnOperation)
	if err != nil {
		return Feed{}, err
	}
	if row, err := f.g.Store.Agent(ctx, f.g.Tenant, id); err != nil || row == nil {
		if err == nil {
			err = plugin.Errorf(plugin.CodeNotFound, "there is no agent %s; mortise agents list shows those there are", id)
		}
		return Feed{}, err
	}
	input, err := json.Marshal(map[string]string{"agent": id, "text": prompt})
	if err != nil {
		return Feed{}, err
	}
	if err := t.Input.Check(ctx, input); err != nil {
		return Feed{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", t.Name(), err)
	}
	call := &plugin.Call{Tenant: f.g.Tenant, Principal: f.by, Origin: plugin.OriginFeed, Operation: t.Name(), Input: input}
	if err := f.mayRunLater(ctx, t, call); err != nil {
		return Feed{}, err
	}
	s, err := f.schedules.Create(ctx, f.g.Tenant, schedule.Schedule{Owner: f.by, Asker: f.asker(), Operation: t.Name(), Input: input, Spec: spec, Zone: zone},
		f.noting(plugin.EntryFeedCreated))
	return feedOf(s), err
}
