package plan_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func TestAPlanWithoutGatesRunsAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": "one", "data": map[string]any{"draft": map[string]any{"text": "Dear"}}}},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": "two", "data": map[string]any{"got": map[string]any{"$from": "s1", "pointer": "/draft/text"}}}},
		proposed{"step_id": "s3", "action": "desk/draft", "payload": map[string]any{"log": r.log, "say": map[string]any{"$from": "s2", "pointer": "/got"}}},
	))
	equal(t, "state", v.State, store.PlanQueued)
	if len(r.lines(t)) != 0 {
		t.Error("something ran before the plan did")
	}
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "steps", states(v), "[s1=succeeded s2=succeeded s3=succeeded]")
	equal(t, "lines", r.lines(t), "[one two Dear]")
	equal(t, "entries", r.kinds(t, "plan."), "[plan.proposed plan.started plan.succeeded]")
	v = r.run(t, v.ID) // has nothing to do
	equal(t, "lines", r.lines(t), "[one two Dear]")
	equal(t, "entries", len(r.kinds(t, "plan.")), 3)
	call, err := r.store.Call(t.Context(), "local", v.Steps[1].CallID)
	if err != nil || call.Parent != v.ProposalCall || call.Plan != v.ID || call.Origin != "plan" || call.Key != "p:"+v.ID+"/s2" {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestAGatedPlanIsApprovedOnceAsAWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "k", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "gate": "human_apply", "payload": r.say("draft")},
		proposed{"step_id": "s2", "action": "desk/send", "gate": "none", "payload": r.say("sent")}, // policy says otherwise
	))
	equal(t, "state", v.State, store.PlanPending)
	equal(t, "gates", v.Steps[0].Gate+" "+v.Steps[1].Gate, "human_apply human_apply")
	if v.Approval == nil || v.Approval.State != store.ApprovalOpen {
		t.Fatalf("%+v", v.Approval)
	}
	row, err := r.store.Approval(t.Context(), "local", v.Approval.ID)
	if err != nil || row.Binding != v.Hash {
		t.Fatalf("%+v, %v", row, err)
	}
	preview, err := r.store.Body(t.Context(), "local", row.PreviewHash)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"step_id":"s1"`, `"step_id":"s2"`, `"mail_send"`, `it sends a mail`, `the agent asks for it`, `"say":"sent"`} {
		if !strings.Contains(string(preview), want) {
			t.Errorf("the preview lacks %s: %s", want, preview)
		}
	}
	equal(t, "state", r.run(t, v.ID).State, store.PlanPending)
	equal(t, "lines", r.lines(t), "[]")
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "approval", v.Approval.State, store.ApprovalConsumed)
	equal(t, "lines", r.lines(t), "[draft sent]")
	asked, err := r.store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local"})
	if err != nil || len(asked) != 1 {
		t.Errorf("%d approvals, %v", len(asked), err)
	}
	// The same key again is the same plan, and sends no second mail.
	again := r.must(t, "k", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "gate": "human_apply", "payload": r.say("draft")},
		proposed{"step_id": "s2", "action": "desk/send", "gate": "none", "payload": r.say("sent")},
	))
	if again.ID != v.ID || !again.Replayed {
		t.Errorf("%+v", again)
	}
	r.run(t, again.ID)
	equal(t, "lines", r.lines(t), "[draft sent]")
	_, err = r.submit(t, "k", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"}))
	equal(t, "another input under the key", plugin.CodeOf(err), plugin.CodeKeyConflict)
}

func TestADeniedPlanRunsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("sent")}))
	r.decide(t, v.Approval.ID, false)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodeApprovalDenied)
	equal(t, "steps", states(v), "[s1=not_run]")
	equal(t, "lines", r.lines(t), "[]")
}

func TestWhatIsStoredMustBeWhatWasApproved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"an input":      `UPDATE steps SET input = replace(input, 'sent', 'spam')`,
		"a gate":        `UPDATE steps SET gate = 'none'`,
		"an operation":  `UPDATE steps SET operation = 'desk/die'`,
		"a digest":      `UPDATE steps SET package_digest = 'sha256:other'`,
		"an order":      `UPDATE steps SET needs = '[]' WHERE n = 2`,
		"a step less":   `DELETE FROM steps WHERE n = 1`,
		"the hash":      `UPDATE plans SET plan_hash = 'sha256:other'`,
		"for whom":      `UPDATE plans SET principal = 'eve'`,
		"the order":     `UPDATE plans SET request_hash = 'sha256:other'`,
		"no approval":   `DELETE FROM approvals`,
		"another's":     `UPDATE approvals SET binding_hash = 'sha256:other'`,
		"not yet given": `UPDATE approvals SET state = 'open'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			v := r.must(t, "", proposal(t, nil,
				proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say("draft")},
				proposed{"step_id": "s2", "action": "desk/send", "payload": r.say("sent")},
			))
			r.decide(t, v.Approval.ID, true)
			edit(t, r, change)
			if strings.HasPrefix(change, "UPDATE approvals") || strings.Contains(change, " steps ") { // they are signed: nothing goes on from there
				_, err := r.Run(t.Context(), "local", v.ID)
				if !errors.Is(err, store.ErrTampered) {
					t.Errorf("it is run: %v", err)
				}
				equal(t, "lines", r.lines(t), "[]")
				return
			}
			v = r.run(t, v.ID)
			equal(t, "state", v.State, store.PlanFailed)
			equal(t, "code", v.Error.Code, plugin.CodeApprovalVoid)
			equal(t, "lines", r.lines(t), "[]")
			if name != "no approval" {
				equal(t, "approval", v.Approval.State, store.ApprovalVoid)
			}
			kinds := r.kinds(t, "plan.")
			equal(t, "last entry", kinds[len(kinds)-1], plugin.EntryPlanFailed)
		})
	}
}

// edit changes the database behind the host's back.
func edit(t *testing.T, r *rig, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.home, "mortise.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA busy_timeout = 60000"); err != nil {
		t.Fatal(err)
	}
	if res, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	} else if n, err := res.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%s changed %d rows: %v", statement, n, err)
	}
}

func TestAnotherPackageIsNotWhatWasApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("sent")}))
	r.decide(t, v.Approval.ID, true)
	other := *r.targets["desk/send"]
	other.Package.Digest = "sha256:0000"
	r.targets["desk/send"] = &other
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodeApprovalVoid)
	equal(t, "lines", r.lines(t), "[]")
}

func TestFiftySubmitsWithOneKeyAreOnePlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	input := intentOf(t, r)
	ids := make([]string, 50)
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			v, err := r.Submit(t.Context(), plan.Submission{Tenant: "local", Principal: owner, Asker: "os:1", Agent: "desk/planner", Input: input, Key: "one"})
			if errs[i] = err; err == nil {
				ids[i] = v.ID
			}
		})
	}
	all.Wait()
	for i := range ids {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Fatalf("%d: %s and %s, %v", i, ids[0], ids[i], errs[i])
		}
	}
	plans, err := r.store.Plans(t.Context(), store.PlanFilter{Tenant: "local"})
	if err != nil || len(plans) != 1 {
		t.Errorf("%d plans, %v", len(plans), err)
	}
	asked, err := r.store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local"})
	if err != nil || len(asked) != 1 {
		t.Errorf("%d approvals, %v", len(asked), err)
	}
	equal(t, "calls of the agent", r.lines(t), "[planned]")
}

// intentOf is an input for which the agent writes a line itself.
func intentOf(t *testing.T, r *rig) []byte {
	return intent(t, map[string]any{"log": r.log, "proposal": map[string]any{
		"agent_name": "desk", "agent_version": "1.0.0", "kind": "plan_proposal", "confidence": 1, "rationale": map[string]any{"short": "", "signals": []string{"has_log"}},
		"proposed_plan": map[string]any{"steps": []proposed{{"step_id": "s1", "action": "desk/send", "payload": map[string]any{}}}},
	}}, nil)
}

func TestFiftyRunsOfOnePlanRunItOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": r.say("two")},
	))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if v, err := r.Wait(t.Context(), "local", v.ID, nil, nil); err != nil || v.State != store.PlanSucceeded {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	all.Wait()
	equal(t, "lines", r.lines(t), "[one two]")
	equal(t, "entries", r.kinds(t, "plan."), "[plan.proposed plan.started plan.succeeded]")
}

// host is a process that runs a plan until it is killed.
func host(home, id string) {
	r, _, err := assembled(home)
	if err == nil {
		_, err = r.Run(context.Background(), "local", id)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestAPlanWhoseHostIsKilledGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wait := filepath.Join(r.home, "go-on")
	held := r.say("two")
	held["wait"] = wait
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": held},
		proposed{"step_id": "s3", "action": "desk/send", "payload": r.say("three")},
	))
	r.decide(t, v.Approval.ID, true)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "host", r.home, v.ID)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the second step has begun", func() bool { return len(r.lines(t)) == 2 })
	// While the other host lives, this host does not take the plan over.
	equal(t, "state", r.run(t, v.ID).State, store.PlanRunning)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the killed host is settled", func() bool {
		n, err := r.ledger.Recover(t.Context())
		return err == nil && n == 1
	})
	due, err := r.Due(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != v.ID {
		t.Fatalf("%v, %v", due, err)
	}
	v, err = r.Wait(t.Context(), "local", v.ID, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one two two three]") // s2 has no effects and had not ended; s1 had
	equal(t, "entries", r.kinds(t, "plan."), "[plan.proposed plan.started plan.started plan.succeeded]")
}

func TestAStepThatFailsEndsThePlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/fail"},
		proposed{"step_id": "s3", "action": "desk/draft", "payload": r.say("three")},
	))
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodePluginError)
	equal(t, "steps", states(v), "[s1=succeeded s2=failed s3=not_run]")
	equal(t, "lines", r.lines(t), "[one]")
}

// A step that reaches no plugin at the moment ends no plan: it is tried again, later
// and later, until a quarter of an hour has passed.
func TestAStepThatReachesNoPluginIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	r.Engine.Now = func() time.Time { return now }
	submit := func(text string) *plan.View {
		return r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say(text)}))
	}
	due := func(id string) bool {
		items, err := r.Due(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(items, func(i plan.Item) bool { return i.ID == id })
	}
	v, other := submit("one"), submit("two") // while their planner answers
	r.broken.Store(true)
	for range 5 {
		v = r.run(t, v.ID)
		equal(t, "state", v.State, store.PlanQueued)
		equal(t, "steps", states(v), "[s1=waiting]")
		equal(t, "due at once", due(v.ID), false)
		now = now.Add(time.Minute)
		equal(t, "due a minute later", due(v.ID), true)
	}
	r.broken.Store(false)
	equal(t, "state", r.run(t, v.ID).State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one]")

	r.broken.Store(true)
	for range 20 {
		v = r.run(t, other.ID)
		now = now.Add(time.Minute)
	}
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodeLaunchFailed)
}

func TestAReferenceToNothingFailsItsStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": r.say("one")},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": map[string]any{"data": map[string]any{"$from": "s1", "pointer": "/absent"}}},
	))
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanFailed)
	equal(t, "code", v.Error.Code, plugin.CodeInvalidInput)
	equal(t, "steps", states(v), "[s1=succeeded s2=not_run]")
}

func TestAnUnknownStepStopsThePlanUntilItIsSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/die"},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": r.say("two")},
	))
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanUnknown)
	equal(t, "steps", states(v), "[s1=unknown s2=not_run]")
	_, err := r.Resume(t.Context(), "local", v.ID)
	equal(t, "resumed too early", plugin.CodeOf(err), plugin.CodeOutcomeUnknown)
	_, err = r.kernel.Settle(t.Context(), "local", v.Steps[0].CallID, kernel.Settlement{State: store.CallSucceeded, By: owner, Reason: "it is in the table"})
	if err != nil {
		t.Fatal(err)
	}
	if v, err = r.Resume(t.Context(), "local", v.ID); err != nil {
		t.Fatal(err)
	}
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "steps", states(v), "[s1=succeeded s2=succeeded]")
	_, err = r.Resume(t.Context(), "local", v.ID)
	equal(t, "resumed after the end", plugin.CodeOf(err), plugin.CodeInvalidInput)
}

// What is tainted asks a person again, for that step alone; the plan goes on
// when that call has ended.
func TestATaintedStepAsksAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/fetch", "payload": r.say("fetched")},
		proposed{"step_id": "s2", "action": "desk/send", "payload": map[string]any{"log": r.log, "say": map[string]any{"$from": "s1", "pointer": "/said"}}},
		proposed{"step_id": "s3", "action": "desk/send", "payload": r.say("clean")},
	))
	r.decide(t, v.Approval.ID, true)
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanPending)
	equal(t, "steps", states(v), "[s1=succeeded s2=pending_approval s3=waiting]")
	if due, err := r.Due(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("%v, %v", due, err)
	}
	equal(t, "state", r.run(t, v.ID).State, store.PlanPending)
	r.decide(t, v.Steps[1].Approval, true)
	if due, err := r.Due(t.Context(), 10); err != nil || len(due) != 1 {
		t.Errorf("%v, %v", due, err)
	}
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[fetched fetched clean]")
}

func TestACancelledPlanRunsNothingMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	held := r.say("one")
	held["wait"] = filepath.Join(r.home, "never")
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": held},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": r.say("two")},
	))
	ended := make(chan *plan.View)
	go func() {
		v, err := r.Run(t.Context(), "local", v.ID)
		if err != nil {
			t.Error(err)
		}
		ended <- v
	}()
	testwait.Until(t, "the step has begun", func() bool { return len(r.lines(t)) == 1 })
	if _, err := r.Cancel(t.Context(), "local", v.ID, owner, "never mind"); err != nil {
		t.Fatal(err)
	}
	v = <-ended
	equal(t, "state", v.State, store.PlanCancelled)
	equal(t, "steps", states(v), "[s1=failed s2=not_run]")
	equal(t, "lines", r.lines(t), "[one]")
	_, err := r.Cancel(t.Context(), "local", v.ID, owner, "")
	equal(t, "cancelled again", plugin.CodeOf(err), plugin.CodeInvalidInput)
	equal(t, "entries", r.kinds(t, "plan."), "[plan.proposed plan.started plan.cancelled]")
}

func TestACancelledQuestionTakesNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/send", "payload": r.say("sent")}))
	v, err := r.Cancel(t.Context(), "local", v.ID[:13], owner, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "state", v.State, store.PlanCancelled)
	equal(t, "approval", v.Approval.State, store.ApprovalVoid)
}

// If the process that runs a plan has to stop, the current step comes to its end, and
// the plan goes on elsewhere.
func TestALeavingRunFinishesItsStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wait := filepath.Join(r.home, "go-on")
	held := r.say("one")
	held["wait"] = wait
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "s1", "action": "desk/draft", "payload": held},
		proposed{"step_id": "s2", "action": "desk/draft", "payload": r.say("two")},
	))
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan *plan.View)
	go func() {
		v, err := r.Run(ctx, "local", v.ID)
		if err != nil {
			t.Error(err)
		}
		ended <- v
	}()
	testwait.Until(t, "the step has begun", func() bool { return len(r.lines(t)) == 1 })
	leave()
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v = <-ended
	equal(t, "state", v.State, store.PlanQueued)
	equal(t, "steps", states(v), "[s1=succeeded s2=waiting]")
	v = r.run(t, v.ID)
	equal(t, "state", v.State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[one two]")
}

func TestAPlanIsFoundByTheBeginningOfItsId(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"}))
	v, err := r.Show(t.Context(), "local", one.ID[:18])
	if err != nil || v.ID != one.ID {
		t.Errorf("%+v, %v", v, err)
	}
	r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"}))
	_, err = r.Show(t.Context(), "local", one.ID[:6]) // of the time, which the eight first digits tell to a minute
	equal(t, "two begin so", plugin.CodeOf(err), plugin.CodeInvalidInput)
	_, err = r.Show(t.Context(), "local", "ffffffff")
	equal(t, "none begins so", plugin.CodeOf(err), plugin.CodeNotFound)
	_, err = r.Show(t.Context(), "other", one.ID)
	equal(t, "another tenant's", plugin.CodeOf(err), plugin.CodeNotFound)
}
