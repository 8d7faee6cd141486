package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// gatedBy is a policy under which every operator waits for a person.
const gatedBy = `
@id("operators_are_gated") @approval("it has effects")
permit (principal, action == Action::"execute", resource) when { resource.kind == "operator" };
@id("others") permit (principal, action == Action::"execute", resource) when { resource.kind != "operator" };
@id("bob_approves") permit (principal == User::"bob", action == Action::"approve", resource);
`

// cedar is a source whose text a test may change.
type cedar struct{ text atomic.Pointer[string] }

func (c *cedar) documents() ([]policy.Document, error) {
	return []policy.Document{{Name: "test.cedar", Text: []byte(*c.text.Load())}}, nil
}

// A gated bundle has a desk, and a policy in Cedar.
type gated struct {
	*bundle
	approvals *approval.Service
	rules     *cedar
	engine    *policy.Engine
	now       func() time.Time
}

func newGated(t *testing.T, targets ...*plugin.Target) *gated {
	t.Helper()
	g := &gated{bundle: newBundle(t, policy.Default, targets...), rules: &cedar{}, now: time.Now}
	text := gatedBy
	g.rules.text.Store(&text)
	var err error
	if g.engine, err = policy.Open(policy.Options{Sources: []policy.Source{g.rules.documents}}); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return g.now() }
	g.Kernel = kernel.New(kernel.Options{Registry: g, Policy: g.engine, Ledger: g.ledger, Runner: g, Services: g.broker, ApprovalTime: time.Hour, Now: clock})
	g.broker.Call = g.Run_
	g.approvals = &approval.Service{Store: g.store, Now: clock, May: func(ctx context.Context, row *store.ApprovalRow, by plugin.Principal) error {
		if by.ID != "bob" && by.ID != "eve" {
			return plugin.Errorf(plugin.CodePolicyDenied, "%s may not", by.ID)
		}
		return nil
	}}
	return g
}

// Run_ is the kernel's Run: the bundle has one of its own, the runner's.
func (g *gated) Run_(ctx context.Context, call plugin.Call) (plugin.Result, error) {
	return g.Kernel.Run(ctx, call)
}

func user(id string) plugin.Principal { return plugin.Principal{Type: "user", ID: id} }

// pending makes a call that waits and returns it.
func (g *gated) pending(t *testing.T, call plugin.Call) plugin.Result {
	t.Helper()
	res, err := g.Call(t.Context(), call)
	if err != nil || res.Status != plugin.PendingApproval || res.Approval == nil || res.Approval.ID == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	return res
}

func (g *gated) approve(t *testing.T, id string) {
	t.Helper()
	if _, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: id, Approve: true, By: user("bob")}); err != nil {
		t.Fatal(err)
	}
}

func TestAnApprovedCallRunsOnceAndItsCallerGetsItsResult(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	call := asking("mail/send", `{"n":7}`)
	call.Key = "order-1"
	res := g.pending(t, call)
	if g.runs.Load() != 0 {
		t.Fatal("it ran before it was approved")
	}
	again := g.pending(t, call) // a repeated key finds it, and opens no second question
	if again.CallID != res.CallID || again.Approval.ID != res.Approval.ID {
		t.Errorf("%+v", again)
	}
	if err := g.ledger.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.approve(t, res.Approval.ID)
	done, err := g.Await(t.Context(), "local", res.CallID)
	if err != nil || string(done.Data) != `{"n":7}` || g.runs.Load() != 1 {
		t.Fatalf("%s, %v, %d runs", done.Data, err, g.runs.Load())
	}
	if first, err := g.Call(t.Context(), call); err != nil || string(first.Data) != `{"n":7}` || g.runs.Load() != 1 {
		t.Errorf("%s, %v, %d runs", first.Data, err, g.runs.Load())
	}
	row, err := g.store.Approval(t.Context(), "local", res.Approval.ID)
	if err != nil || row.State != store.ApprovalConsumed || row.DecidedBy != "bob" {
		t.Errorf("%+v, %v", row, err)
	}
	g.want(t, "call.pending", "call.replayed", "call.queued", "call.started", "call.succeeded", "call.replayed")
}

func TestEachWayAnApprovalDoesNotCountHasItsCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func(g *gated, t *testing.T, res plugin.Result) error // what the desk, or else the call, says
		desk   plugin.Code
		call   plugin.Code
	}{
		{name: "used twice", desk: plugin.CodeApprovalUsed, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.approve(t, res.Approval.ID)
			return g.decide(t, res, "bob", true)
		}},
		{name: "denied, then approved", desk: plugin.CodeApprovalUsed, call: plugin.CodeApprovalDenied, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			if err := g.decide(t, res, "bob", false); err != nil {
				t.Fatal(err)
			}
			return g.decide(t, res, "eve", true)
		}},
		{name: "expired", desk: plugin.CodeApprovalExpired, call: plugin.CodeApprovalExpired, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			return g.decide(t, res, "bob", true)
		}},
		{name: "expired after it was given", call: plugin.CodeApprovalExpired, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.approve(t, res.Approval.ID)
			g.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			return nil
		}},
		{name: "by its requester", desk: plugin.CodeApprovalSelf, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			return g.decide(t, res, "ann", true)
		}},
		{name: "by an agent", desk: plugin.CodeApprovalSelf, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			_, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: res.Approval.ID, Approve: true, By: plugin.Principal{Type: "agent", ID: "bob"}})
			return err
		}},
		{name: "by someone whom policy does not let", desk: plugin.CodePolicyDenied, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			return g.decide(t, res, "carl", true)
		}},
		{name: "in another tenant", desk: plugin.CodeNotFound, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			_, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "other", Asker: "os:2", ID: res.Approval.ID, Approve: true, By: user("bob")})
			return err
		}},
		{name: "for an updated plugin", call: plugin.CodeApprovalVoid, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.approve(t, res.Approval.ID)
			g.targets["mail/send"].Package.Digest = "sha256:another"
			return nil
		}},
		{name: "under other policies", call: plugin.CodeApprovalVoid, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.approve(t, res.Approval.ID)
			text := gatedBy + "// another version\n"
			g.rules.text.Store(&text)
			if err := g.engine.Reload(); err != nil {
				t.Fatal(err)
			}
			return nil
		}},
		{name: "forbidden meanwhile", call: plugin.CodePolicyDenied, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			g.approve(t, res.Approval.ID)
			text := gatedBy + `@id("no") forbid (principal, action == Action::"execute", resource);`
			g.rules.text.Store(&text)
			if err := g.engine.Reload(); err != nil {
				t.Fatal(err)
			}
			return nil
		}},
		{name: "cancelled meanwhile", desk: plugin.CodeApprovalVoid, call: plugin.CodeCancelled, answer: func(g *gated, t *testing.T, res plugin.Result) error {
			if _, err := g.Cancel(t.Context(), "local", res.CallID, "ann", "changed my mind"); err != nil {
				t.Fatal(err)
			}
			return g.decide(t, res, "bob", true)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
			res := g.pending(t, asking("mail/send", `{"n":7}`))
			wantCode(t, c.answer(g, t, res), c.desk)
			if c.call != "" {
				_, err := g.Await(t.Context(), "local", res.CallID)
				wantCode(t, err, c.call)
			}
			if c.call != "" && g.runs.Load() != 0 {
				t.Errorf("it ran %d times", g.runs.Load())
			}
		})
	}
}

func (g *gated) decide(t *testing.T, res plugin.Result, by string, approve bool) error {
	t.Helper()
	_, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: res.Approval.ID, Approve: approve, By: user(by)})
	return err
}

// The arguments that were approved are those that run: under the same key
// others are a conflict, and nothing else can take their place.
func TestAnApprovalIsForExactArguments(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	call := asking("mail/send", `{"n":7}`)
	call.Key = "order-1"
	res := g.pending(t, call)
	g.approve(t, res.Approval.ID)
	call.Input = json.RawMessage(`{"n":8}`)
	_, err := g.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeKeyConflict)
	call.Input = json.RawMessage(`{"n":9007199254740993}`)
	call.Key = ""
	_, err = g.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeInvalidInput) // an integer above 2^53 is no argument that can be bound
}

func TestAnOwnCallIsApprovedOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	g.approvals.May = func(context.Context, *store.ApprovalRow, plugin.Principal) error { return nil }
	res := g.pending(t, asking("mail/send", `{}`))
	if _, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: res.Approval.ID, Approve: true, By: user("ann"), Own: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), "local", res.CallID); err != nil {
		t.Error(err)
	}
}

func TestAPreviewIsShownAndBound(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send"), func(t *plugin.Target) { t.Operation.Preview = true }))
	g.preview = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, s plugin.Services) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(`{"would_send":%s}`, call.Input)), nil
	}
	res := g.pending(t, asking("mail/send", `{"n":7}`))
	if string(res.Approval.Preview) != `{"would_send":{"n":7}}` {
		t.Errorf("%s", res.Approval.Preview)
	}
	row, err := g.store.Approval(t.Context(), "local", res.Approval.ID)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := g.store.Body(t.Context(), "local", row.PreviewHash); err != nil || string(body) != string(res.Approval.Preview) {
		t.Errorf("%s, %v", body, err)
	}
	g.preview = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
		return nil, plugin.Errorf(plugin.CodePluginError, "no")
	}
	_, err = g.Call(t.Context(), asking("mail/send", `{"n":8}`))
	wantCode(t, err, plugin.CodePluginError) // input that cannot be shown is never put up for approval
}

// A token is known only to approvers, and as good as the id for them.
func TestATokenFindsItsApproval(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	var tokens []string
	g.Kernel.Asked = func(a *approval.Asked, _ *plugin.Call) { tokens = append(tokens, a.Token) }
	res := g.pending(t, asking("mail/send", `{}`))
	if len(tokens) != 1 || len(tokens[0]) != 43 {
		t.Fatalf("%q", tokens)
	}
	for e, err := range g.store.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Body), tokens[0]) {
			t.Error("the ledger has the token")
		}
	}
	_, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", Token: tokens[0] + "x", Approve: true, By: user("bob")})
	wantCode(t, err, plugin.CodeNotFound)
	row, err := g.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", Token: tokens[0], Approve: true, By: user("bob")})
	if err != nil || row.ID != res.Approval.ID {
		t.Errorf("%+v, %v", row, err)
	}
}

// Two approvers at once, and two hosts that would go on at once: one decision
// and one execution each.
func TestTwoApproversAtOnce(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	for i := range rounds {
		before := g.runs.Load()
		res := g.pending(t, asking("mail/send", fmt.Sprintf(`{"n":%d}`, i)))
		var decided, used, ended atomic.Int64
		var wg sync.WaitGroup
		for _, by := range []string{"bob", "eve"} {
			wg.Go(func() {
				switch err := g.decide(t, res, by, true); plugin.CodeOf(err) {
				case "":
					decided.Add(1)
				case plugin.CodeApprovalUsed:
					used.Add(1)
				default:
					t.Error(err)
				}
				if done, err := g.Await(t.Context(), "local", res.CallID); err != nil || done.Status != plugin.Succeeded {
					t.Errorf("%+v, %v", done, err)
				} else {
					ended.Add(1)
				}
			})
		}
		wg.Wait()
		if decided.Load() != 1 || used.Load() != 1 || ended.Load() != 2 || g.runs.Load() != before+1 {
			t.Fatalf("round %d: %d decided, %d were late, %d ended, %d runs", i, decided.Load(), used.Load(), ended.Load(), g.runs.Load()-before)
		}
	}
}

// The same key 1,000 times from 50 callers: they wait, one runs, and all get the
// same answer.
func TestAThousandCallsWithOneKey(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	const callers = 50
	var begun sync.WaitGroup
	begun.Add(callers)
	var sent atomic.Int64
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		begun.Wait()
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(fmt.Sprintf(`{"sent":%d}`, sent.Add(1)))}, nil
	}
	answers := make([]string, 1000)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			begun.Done()
			for i := caller; i < len(answers); i += callers {
				call := asking("mail/send", `{"n":1}`)
				call.Key = "order-1"
				res, err := b.Call(t.Context(), call)
				if err != nil {
					t.Error(err)
				}
				answers[i] = string(res.Data)
			}
		})
	}
	wg.Wait()
	if b.runs.Load() != 1 {
		t.Errorf("%d runs", b.runs.Load())
	}
	for i, answer := range answers {
		if answer == "" || answer != answers[0] {
			t.Fatalf("answer %d is %q, and the first %q", i, answer, answers[0])
		}
	}
}

// A caller that waits for an approval which is never decided learns of its
// expiry without a sweep.
func TestAWaitingCallerHearsThatTimeIsOver(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	g.Kernel.Expire = g.approvals.Expire
	res := g.pending(t, asking("mail/send", `{}`))
	g.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	_, err := g.Await(t.Context(), "local", res.CallID)
	wantCode(t, err, plugin.CodeApprovalExpired)
}
