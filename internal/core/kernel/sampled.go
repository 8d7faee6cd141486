package kernel

import (
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// bySampling is why an answer is not the same each time once a model was asked:
// the host asks models without setting a temperature, and theirs is above 0.
const bySampling = "llm_sampling"

// sampled reports whether the host has asked a model on behalf of a call, and was
// answered, by what it counted.
func sampled(counted plugin.Metrics) bool {
	switch n := counted["tokens_out"].(type) {
	case int:
		return n > 0
	case int64:
		return n > 0
	case float64:
		return n > 0
	}
	return false
}

// disclose says of an answer that a model had a part in it, where the host itself
// asked the model. A plugin that does not say so (kernel contracts, 5.3.4 C; for
// agents, randomness_disclosure) is reported, with a warning in the log, and its
// answer counts.
func (a *attempt) disclose(res *plugin.Result) {
	if !a.sampled {
		return
	}
	said := isNondeterministic(res)
	if a.target.Operation.Kind == plugin.Agent {
		said = said || len(a.record.Randomness) > 0 && string(a.record.Randomness) != "null"
	}
	n := plugin.Nondeterminism{}
	if res.Nondeterminism != nil {
		n = *res.Nondeterminism
	}
	n.Is, n.Undisclosed = true, !said
	if !slices.Contains(n.Reasons, bySampling) {
		n.Reasons = append(slices.Clone(n.Reasons), bySampling)
	}
	res.Nondeterminism = &n
	if !said {
		a.k.Log.Warn("a plugin asked a model and does not say that its answer may differ the next time", "call_id", a.call.ID, "operation", a.target.Name())
	}
}
