package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// hooks are one agent's, as a test says what they do.
type hooks struct {
	given  bool
	before func(call *plugin.Call) (kernel.Heard, error)
	asked  int
}

func (h *hooks) Assigned(context.Context, *plugin.Call, string) (bool, error) { return h.given, nil }

func (h *hooks) Before(_ context.Context, _ *plugin.Target, call *plugin.Call) (kernel.Heard, error) {
	h.asked++
	return h.before(call)
}

func hooked(t *testing.T, rules []policy.Rule, before func(call *plugin.Call) (kernel.Heard, error), change ...func(*plugin.Target)) (*bundle, *hooks) {
	t.Helper()
	b := newBundle(t, rules, target(t, "mail", "send", change...))
	h := &hooks{given: true, before: before}
	b.Hooks = h
	return b, h
}

// byAgent is a call that an agent instance makes.
func byAgent(input string) plugin.Call {
	call := asking("mail/send", input)
	call.Agent, call.Origin = "desk", plugin.OriginAgent
	return call
}

func TestHooksHearOfAgentsAlone(t *testing.T) {
	t.Parallel()
	b, h := hooked(t, policy.Default, func(*plugin.Call) (kernel.Heard, error) { return kernel.Heard{Vetoed: "no"}, nil })
	if _, err := b.Call(t.Context(), asking("mail/send", `{}`)); err != nil || h.asked != 0 {
		t.Fatalf("%v, and %d hooks heard of a person's call", err, h.asked)
	}
	_, err := b.Call(t.Context(), byAgent(`{}`))
	wantCode(t, err, plugin.CodeHookVetoed)
	if plugin.AsError(err).Message != "no" || b.runs.Load() != 1 {
		t.Errorf("%v; it ran %d times", err, b.runs.Load())
	}
}

func TestAnAgentHasWhatItWasGiven(t *testing.T) {
	t.Parallel()
	b, h := hooked(t, policy.Default, nil)
	h.given = false
	_, err := b.Call(t.Context(), byAgent(`{}`))
	wantCode(t, err, plugin.CodeNotFound)
	if b.runs.Load() != 0 {
		t.Error("it ran")
	}
}

// What a hook makes of a call is what its schema sees, and what is recorded; the
// key stands for what the caller sent.
func TestAHookRewritesACallBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	made := `{"n":2}`
	b, h := hooked(t, policy.Default, func(*plugin.Call) (kernel.Heard, error) {
		return kernel.Heard{Input: json.RawMessage(made)}, nil
	})
	call := byAgent(`{"n":1}`)
	call.Key = "once"
	res, err := b.Call(t.Context(), call)
	if err != nil || string(res.Data) != made {
		t.Fatalf("%s, %v", res.Data, err)
	}
	_, recs := b.records(t)
	last := recs[len(recs)-1]
	if last.Agent != "desk" || last.AskedHash == "" || last.AskedHash == last.InputHash {
		t.Errorf("the record is %+v", last)
	}
	again, err := b.Call(t.Context(), call)
	if err != nil || !again.Replayed || h.asked != 1 || b.runs.Load() != 1 {
		t.Errorf("the same call again: %+v, %v; hooks were asked %d times", again, err, h.asked)
	}
	call.Input = json.RawMessage(made)
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeKeyConflict)

	made = `{"n":"many"}`
	_, err = b.Call(t.Context(), byAgent(`{"n":1}`))
	wantCode(t, err, plugin.CodeInvalidInput)
	made = `{"n":1,"n":2}`
	_, err = b.Call(t.Context(), byAgent(`{"n":1}`))
	wantCode(t, err, plugin.CodeHookFailed)
}

// What a hook writes into an input is no authority either: a path, a handle that the
// call was not given, what only the host says.
func TestAHookHandsOnNoFile(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, []byte("what only its owner reads"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{
		fmt.Sprintf(`{"artifacts":[{"path":%q}]}`, secret), fmt.Sprintf(`{"artifacts":[{"file_path":%q}]}`, secret), fmt.Sprintf(`{"\u0061rtifacts":[{"path":%q}]}`, secret),
		`{"artifacts":[{"artifact_id":"art_0123456789abcdef"}]}`,
	} {
		b, _ := hooked(t, policy.Default, func(*plugin.Call) (kernel.Heard, error) { return kernel.Heard{Input: json.RawMessage(made)}, nil })
		_, err := b.Call(t.Context(), byAgent(`{"n":1}`))
		wantCode(t, err, plugin.CodeInvalidInput)
		if !strings.Contains(fmt.Sprint(err), "artifacts[0]") || b.runs.Load() != 0 {
			t.Errorf("%s: %v, and it ran %d times", made, err, b.runs.Load())
		}
	}
}

// A veto hook that fails is skipped by its bus. The kernel refuses a call with
// effects then, and lets one without go on.
func TestAFailedGuardStopsWhatHasEffects(t *testing.T) {
	t.Parallel()
	failed := func(*plugin.Call) (kernel.Heard, error) { return kernel.Heard{Unguard: "tool-allowlist failed"}, nil }
	tool, _ := hooked(t, policy.Default, failed)
	if _, err := tool.Call(t.Context(), byAgent(`{}`)); err != nil {
		t.Error(err)
	}
	mail, _ := hooked(t, []policy.Rule{{Effects: []string{"*"}}}, failed, operator("gmail_send"))
	_, err := mail.Call(t.Context(), byAgent(`{}`))
	wantCode(t, err, plugin.CodeHookFailed)
	if mail.runs.Load() != 0 {
		t.Error("it ran")
	}
	mail.want(t, "call.refused hook_failed")
}

// An approval is for what the hooks made of a call, and they are not asked again
// once it was given.
func TestHooksAreNotAskedAgainAfterAnApproval(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	h := &hooks{given: true, before: func(*plugin.Call) (kernel.Heard, error) { return kernel.Heard{Input: json.RawMessage(`{"n":7}`)}, nil }}
	g.Hooks = h
	res, err := g.Call(t.Context(), byAgent(`{"n":1}`))
	if err != nil || res.Approval == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	g.approve(t, res.Approval.ID)
	done, err := g.Resume(t.Context(), "local", res.CallID)
	if err != nil || string(done.Data) != `{"n":7}` || h.asked != 1 {
		t.Errorf("%s, %v; hooks were asked %d times", done.Data, err, h.asked)
	}
}
