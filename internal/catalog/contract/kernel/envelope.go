package kernel

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

var _ contract.Enveloper = Contract{}

// An Answer is the return schema of operators (5.3.3). That of tools (5.4.2) has no status,
// artifacts and nondeterminism.
type Answer struct {
	Status         string                 `json:"status,omitempty"` // succeeded, failed, in_progress
	Result         json.RawMessage        `json:"result"`
	Artifacts      []plugin.Artifact      `json:"artifacts,omitzero"`
	Metrics        plugin.Metrics         `json:"metrics"`
	Error          *Failure               `json:"error"`
	Nondeterminism *plugin.Nondeterminism `json:"nondeterminism,omitzero"`
}

// A Failure is the error of an answer.
type Failure struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitzero"`
}

// codes are the host's codes for which the contract has one of its own: 5.2.3 and 5.3.4 D.
// The contract names no others; the rest are the host's.
var codes = map[plugin.Code]string{
	plugin.CodeInvalidInput:  "VALIDATION_ERROR",
	plugin.CodeInvalidOutput: "VALIDATION_ERROR",
	plugin.CodePolicyDenied:  "POLICY_DENIED",
	plugin.CodeScopeDenied:   "POLICY_DENIED",
	plugin.CodeNeedsContext:  "NEEDS_CONTEXT",
}

// Envelope implements [contract.Enveloper]. A call that waits for an approval is in_progress.
func (Contract) Envelope(op *plugin.Operation, res plugin.Result, err error, _ bool) any {
	a := Answer{Status: "succeeded", Result: orNull(res.Data), Metrics: res.Metrics}
	if a.Metrics == nil {
		a.Metrics = plugin.Metrics{}
	}
	switch {
	case err != nil:
		a.Status, a.Error = "failed", failure(plugin.AsError(err))
	case res.Status == plugin.Unknown:
		a.Status, a.Error = "failed", &Failure{Code: string(plugin.CodeOutcomeUnknown), Message: "the outcome of call " + res.CallID + " is unknown until it is settled"}
	case res.Status == plugin.InProgress || res.Status == plugin.PendingApproval:
		a.Status = "in_progress"
	}
	if op != nil && op.Kind == plugin.Tool && a.Status != "in_progress" {
		a.Status = ""
		return a
	}
	a.Artifacts, a.Nondeterminism = res.Artifacts, res.Nondeterminism
	if a.Artifacts == nil {
		a.Artifacts = []plugin.Artifact{}
	}
	if a.Nondeterminism == nil {
		a.Nondeterminism = &plugin.Nondeterminism{}
	}
	return a
}

func failure(e *plugin.Error) *Failure {
	f := &Failure{Code: string(e.Code), Message: e.Message, Details: e.Details}
	switch own, known := codes[e.Code]; {
	case e.Code == plugin.CodePluginError && e.PluginCode != "":
		f.Code = e.PluginCode
	case known:
		f.Code = own
	}
	return f
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
