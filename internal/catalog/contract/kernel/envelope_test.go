package kernel

import (
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestAnswersAreSpelledAsTheContractHasThem: the return schemas of 5.3.3 and 5.4.2, and the
// three codes that the contract names (KN-07, KN-13).
func TestAnswersAreSpelledAsTheContractHasThem(t *testing.T) {
	t.Parallel()
	operator, tool := &plugin.Operation{Kind: plugin.Operator}, &plugin.Operation{Kind: plugin.Tool}
	done := plugin.Result{Status: plugin.Succeeded, CallID: "c1", Data: json.RawMessage(`{"n":1}`), Metrics: plugin.Metrics{"latency_ms": 9},
		Nondeterminism: &plugin.Nondeterminism{Is: true, Reasons: []string{"llm_sampling"}, Stability: "low"}}
	for name, c := range map[string]struct {
		op   *plugin.Operation
		res  plugin.Result
		err  error
		want string
	}{
		"operator": {operator, done, nil, `{"status":"succeeded","result":{"n":1},"artifacts":[],"metrics":{"latency_ms":9},"error":null,"nondeterminism":{"is_nondeterministic":true,"reasons":["llm_sampling"],"stability":"low"}}`},
		"tool":     {tool, done, nil, `{"result":{"n":1},"metrics":{"latency_ms":9},"error":null}`},
		"waits":    {operator, plugin.Result{Status: plugin.PendingApproval}, nil, `{"status":"in_progress","result":null,"artifacts":[],"metrics":{},"error":null,"nondeterminism":{"is_nondeterministic":false}}`},
		"bad payload": {operator, plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "text is missing"),
			`{"status":"failed","result":null,"artifacts":[],"metrics":{},"error":{"code":"VALIDATION_ERROR","message":"text is missing"},"nondeterminism":{"is_nondeterministic":false}}`},
		"bad payload of a tool": {tool, plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "text is missing"), `{"result":null,"metrics":{},"error":{"code":"VALIDATION_ERROR","message":"text is missing"}}`},
		"its own code": {tool, plugin.Result{}, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "NO_SUCH_PROFESSOR", Message: "none", Details: json.RawMessage(`{"id":9}`)},
			`{"result":null,"metrics":{},"error":{"code":"NO_SUCH_PROFESSOR","message":"none","details":{"id":9}}}`},
		"unknown": {operator, plugin.Result{Status: plugin.Unknown, CallID: "c1"}, nil,
			`{"status":"failed","result":null,"artifacts":[],"metrics":{},"error":{"code":"outcome_unknown","message":"the outcome of call c1 is unknown until it is settled"},"nondeterminism":{"is_nondeterministic":false}}`},
	} {
		got, err := json.Marshal(Contract{}.Envelope(c.op, c.res, c.err, false))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, c.want)
		}
	}
	for code, want := range map[plugin.Code]string{plugin.CodePolicyDenied: "POLICY_DENIED", plugin.CodeScopeDenied: "POLICY_DENIED", plugin.CodeNeedsContext: "NEEDS_CONTEXT", plugin.CodeTimeout: "timeout"} {
		if got := failure(&plugin.Error{Code: code}).Code; got != want {
			t.Errorf("%s is spelled %s, want %s", code, got, want)
		}
	}
}
