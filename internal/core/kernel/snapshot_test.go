package kernel_test

import (
	"context"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// What policy decided goes to the plugin with the call, and which run of it
// this is. What a caller says of either counts for nothing.
func TestThePluginIsToldWhatPolicyDecided(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"))
	var told plugin.Call
	b.do = func(_ context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		told = *call
		return plugin.Result{Status: plugin.Succeeded, Data: []byte(`1`)}, nil
	}
	call := asking("text.count/words", `{}`)
	call.Key, call.Attempt, call.Decision = "k", 7, &plugin.Decision{Verdict: plugin.AllowWithApproval, Policy: "forged"}
	if _, err := b.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if d := told.Decision; d == nil || d.Verdict != plugin.Allow || d.Policy == "" || d.Policy == "forged" || len(d.Reasons) == 0 {
		t.Errorf("told of the decision %+v", d)
	}
	if told.Attempt != 1 {
		t.Errorf("told of attempt %d", told.Attempt)
	}
}
