package kernel_test

import (
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// overlays are what the host may decide about one call; those of one number are the same.
var overlays = []struct {
	same int
	text string
}{
	{0, ""}, {1, `{}`}, {2, `{"auth":{"mail":{"mode":"user"}}}`}, {3, `{"auth":{"mail":{"mode":"domain_delegate","subject":"<ceo>"}}}`},
	{3, `{ "auth": {"mail": {"subject":"\u003cceo>", "mode":"domain_delegate"}}}`},
}

// An approval is for what the host decides about a call as well, and the call that
// was approved runs.
func TestAnApprovalIsForWhatTheHostDecides(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
	bindings := map[string]int{}
	for _, o := range overlays {
		call := asking("mail/send", `{"n":1}`)
		call.Overlay = json.RawMessage(o.text)
		res := g.pending(t, call)
		row, err := g.store.Approval(t.Context(), "local", res.Approval.ID)
		if err != nil || row == nil {
			t.Fatalf("%+v, %v", row, err)
		}
		if same, had := bindings[row.Binding]; had && same != o.same {
			t.Errorf("%s: its approval is for another call as well", o.text)
		}
		bindings[row.Binding] = o.same
		g.approve(t, res.Approval.ID)
		if done, err := g.Resume(t.Context(), "local", res.CallID); err != nil || done.Status != plugin.Succeeded {
			t.Errorf("%s: %+v, %v", o.text, done, err)
		}
	}
	if len(bindings) != 4 {
		t.Errorf("%d bindings of 4 calls", len(bindings))
	}
}

// A key stands for what the host decides about a call as well.
func TestAKeyStandsForWhatTheHostDecides(t *testing.T) {
	t.Parallel()
	for _, first := range overlays {
		for _, second := range overlays {
			b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
			call := asking("mail/send", `{"n":1}`)
			call.Key, call.Overlay = "order-1", json.RawMessage(first.text)
			if _, err := b.Call(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			call.Overlay = json.RawMessage(second.text)
			res, err := b.Call(t.Context(), call)
			if first.same == second.same && (err != nil || !res.Replayed) || first.same != second.same && plugin.CodeOf(err) != plugin.CodeKeyConflict {
				t.Errorf("%s, then %s: %+v, %v", first.text, second.text, res, err)
			}
		}
	}
}
