package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A step that was approved on its own and waits to be run is over with its plan.
func TestACancelledPlansQueuedStepNeverRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s0", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": "drafted", "data": "sent"}},
		proposed{"step_id": "s1", "action": "desk/send", "payload": map[string]any{"log": r.log, "say": map[string]any{"$from": "s0"}}},
	), plugin.Untrusted)
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanPending)
	step := v.Steps[1]
	r.decide(t, step.Approval, true) // and before it is run
	if _, err := r.Cancel(t.Context(), "local", v.ID, owner, "never mind"); err != nil {
		t.Fatal(err)
	}
	if err := r.kernel.Advance(t.Context(), "local", step.CallID); err != nil {
		t.Error(err)
	}
	equal(t, "lines", r.lines(t), "[drafted]")
	row, err := r.store.Call(t.Context(), "local", step.CallID)
	if err != nil || row.State != store.CallFailed || row.Code != string(plugin.CodeCancelled) {
		t.Errorf("%+v, %v", row, err)
	}
	asked, err := r.store.Approval(t.Context(), "local", step.Approval)
	if err != nil || asked.State != store.ApprovalVoid {
		t.Errorf("%+v, %v", asked, err)
	}
}

// An approval is for its time: a plan that begins after it is not covered.
func TestAPlanThatBeginsTooLateIsNotCovered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("sent")}))
	r.decide(t, v.Approval.ID, true)
	r.Engine.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodeApprovalExpired)
	equal(t, "approval", v.Approval.State, store.ApprovalVoid)
	equal(t, "lines", r.lines(t), "[]")
}

// answers cannot be read for a while.
type answers struct {
	plan.Answers
	broken atomic.Bool
}

func (a *answers) Lookup(ctx context.Context, tenant, operation, key string) (*ledger.Prior, error) {
	if a.broken.Load() {
		return nil, errors.New("the database is away")
	}
	return a.Answers.Lookup(ctx, tenant, operation, key)
}

// A run that cannot go on because of the database leaves its plan to the next.
func TestAPlanThatARunLeftBehindIsDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &answers{Answers: r.ledger}
	r.Engine.Answers = a
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say("one")}))
	a.broken.Store(true)
	if _, err := r.Run(t.Context(), "local", v.ID); err == nil {
		t.Fatal("it ran")
	}
	a.broken.Store(false)
	due, err := r.Due(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != v.ID {
		t.Fatalf("due are %v, %v", due, err)
	}
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one]")
}

// What another node is running is not due here, nor what this one is.
func TestAPlanThatRunsIsNotDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	held := r.say("one")
	held["wait"] = r.home + "/go-on"
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft", "payload": held}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := r.Run(ctx, "local", v.ID); err != nil {
			t.Error(err)
		}
	}()
	testwait.Until(t, "the step has begun", func() bool { return len(r.lines(t)) == 1 })
	if due, err := r.Due(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("due are %v, %v", due, err)
	}
	if _, err := r.Cancel(t.Context(), "local", v.ID, owner, ""); err != nil {
		t.Error(err)
	}
	<-ended
	stop()
}

// What stands in a plan was shown when the plan was approved: it is not asked
// about again, wherever the plan came from. What is filled in from outside while
// it runs is, and only that.
func TestAnUntrustedPlanAsksAgainOnlyForWhatWasFilledIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/send", "payload": r.say("two")},
		proposed{"step_id": "s3", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": "three", "data": map[string]any{"text": "Dear"}}},
		proposed{"step_id": "s4", "action": "desk/send", "payload": map[string]any{"log": r.log, "say": map[string]any{"$from": "s3", "pointer": "/text"}}},
	), plugin.Untrusted)
	equal(t, "state", v.State, store.PlanPending)
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "steps", states(v), "[s1=succeeded s2=succeeded s3=succeeded s4=pending_approval]")
	equal(t, "lines", r.lines(t), "[one two three]")
	open, err := r.store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", State: store.ApprovalOpen})
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	r.decide(t, open[0].ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one two three Dear]")
}

// What stands for a secret in a plan was shown as a reference, and never its value:
// where that came from outside, the step asks, also in a plan that was approved.
func TestAPlanThatWasApprovedAsksForASecretFromOutside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kernel.Seen = func(_ context.Context, target *plugin.Target, call *plugin.Call) (json.RawMessage, []string, error) {
		if strings.Contains(string(call.Input), "two") { // as if that stood for one
			return call.Input, []string{plugin.Untrusted}, nil
		}
		return call.Input, nil, nil
	}
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/send", "payload": r.say("two")},
	), plugin.Untrusted)
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "steps", states(v), "[s1=succeeded s2=pending_approval]")
	open, err := r.store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", State: store.ApprovalOpen})
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	r.decide(t, open[0].ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one two]")
}

// What is in a file that a step names was not shown with the plan: where that came from
// outside, the step asks, also in a plan that was approved.
func TestAPlanThatWasApprovedAsksForAFileFromOutside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kernel.Artifact = func(_ context.Context, _ *plugin.Call, name string) (plugin.File, bool, error) {
		f, err := handed.Open(filepath.Join(r.home, name))
		if f.Session = true; name == "art_0000000000000002" {
			f.Labels = []string{plugin.Untrusted}
		}
		return f, true, err
	}
	with := func(line, file string) map[string]any {
		if err := os.WriteFile(filepath.Join(r.home, file), []byte("Dear"), 0o600); err != nil {
			t.Fatal(err)
		}
		payload := r.say(line)
		payload["artifacts"] = []any{map[string]any{"artifact_id": file}}
		return payload
	}
	v, err := r.Submit(t.Context(), plan.Submission{Tenant: "local", Principal: owner, Asker: "os:1", Agent: "desk/planner", Session: "sess_1", Origin: plugin.OriginCLI, Input: proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/send", "payload": with("one", "art_0000000000000001")},
		proposed{"step_id": "s2", "action": "desk/send", "payload": with("two", "art_0000000000000002")},
	)})
	if err != nil {
		t.Fatal(err)
	}
	asksAgain(t, r, v, "[s1=succeeded s2=pending_approval]", "[one two]")
}

// A rewriter is the hooks of an agent that make another line of one.
type rewriter struct{ from, to string }

func (rewriter) Assigned(context.Context, *plugin.Call, string) (bool, error) { return true, nil }

func (h rewriter) Before(_ context.Context, _ *plugin.Target, call *plugin.Call) (kernel.Heard, error) {
	return kernel.Heard{Input: json.RawMessage(" " + strings.ReplaceAll(string(call.Input), h.from, h.to))}, nil
}

// An approval of a plan is for the arguments that stand in it. A step that hooks made
// another of asks for its own; one that they only spelled in another way does not.
func TestAStepThatHooksRewroteAsksAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kernel.Hooks = rewriter{"two", "three"}
	v, err := r.Submit(t.Context(), plan.Submission{Tenant: "local", Principal: owner, Asker: "os:1", Agent: "desk/planner", Instance: "desk", Origin: plugin.OriginCLI, Input: proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/send", "payload": r.say("two")},
	)})
	if err != nil {
		t.Fatal(err)
	}
	asksAgain(t, r, v, "[s1=succeeded s2=pending_approval]", "[one three]")
}

// asksAgain approves a plan, which then stops so, and its step, which lets it end so.
func asksAgain(t *testing.T, r *rig, v *plan.View, steps, lines string) {
	t.Helper()
	equal(t, "state", v.State, store.PlanPending)
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "steps", states(v), steps)
	open, err := r.store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", State: store.ApprovalOpen})
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	r.decide(t, open[0].ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), lines)
}
