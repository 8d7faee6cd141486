package protocol

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// An Effect is one effect of an earlier run of a call, as the params of
// reconcile have it.
type Effect struct {
	Method      string         `json:"method"`
	Effect      string         `json:"effect"`
	RequestHash string         `json:"request_hash"`
	Occurrence  int            `json:"occurrence"`
	State       string         `json:"state"` // intent, done or late
	ProviderKey string         `json:"provider_key"`
	Response    jsontext.Value `json:"response,omitzero"`
}

// The outcomes that an operator may find out.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeFailed    = "failed"
	OutcomeNotDone   = "not_done" // it never happened, and may be done now
	OutcomeUnknown   = "unknown"  // the operator cannot tell yet
)

// Reconciled is what an operator found out about an earlier run of a call.
type Reconciled struct {
	Outcome  string
	Data     jsontext.Value // of one that succeeded
	Err      *plugin.Error  // of one that failed
	Evidence jsontext.Value // whatever shows it
}

// MaxEvidence is how many bytes of evidence are taken.
const MaxEvidence = 64 << 10

// A Reconcile is the params of a reconcile request, as a plugin reads them.
type Reconcile struct {
	Execute `json:",inline"`
	Effects []Effect `json:"effects"`
}

// AppendReconcile appends a reconcile request for call, with what is known of
// its effects. What answered an effect is left out from where it would make the
// line longer than limit; a line that is too long all the same is the caller's
// to refuse.
func AppendReconcile(b []byte, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64, effects []Effect, limit int) []byte {
	start := len(b)
	b = appendCall(b, MethodReconcile, id, token, operation, input, call, deadlineMS)
	b = append(b, `,"effects":[`...)
	room := limit - (len(b) - start) - len("]}}\n")
	for _, e := range effects {
		room -= len(appendEffect(nil, e, false)) + len(",")
	}
	for i, e := range effects {
		if i > 0 {
			b = append(b, ',')
		}
		answered := len(e.Response) > 0
		if answered {
			e.Response = Line(e.Response)
			room -= len(`,"response":`) + len(e.Response)
			answered = room >= 0
		}
		b = appendEffect(b, e, answered)
	}
	return append(b, "]}}\n"...)
}

func appendEffect(b []byte, e Effect, answered bool) []byte {
	b = append(b, `{"method":`...)
	b = AppendString(b, e.Method)
	b = append(b, `,"effect":`...)
	b = AppendString(b, e.Effect)
	b = append(b, `,"request_hash":`...)
	b = AppendString(b, e.RequestHash)
	b = append(b, `,"occurrence":`...)
	b = appendInt(b, int64(e.Occurrence))
	b = append(b, `,"state":`...)
	b = AppendString(b, e.State)
	b = append(b, `,"provider_key":`...)
	b = AppendString(b, e.ProviderKey)
	if answered {
		b = append(b, `,"response":`...)
		b = append(b, e.Response...)
	}
	return append(b, '}')
}

// ParseReconciled reads the result member of an answer to reconcile, which is
// known to be valid JSON. Evidence that is too long is an [*plugin.Error] of
// code output_too_large; every other error means that it is no such answer.
func ParseReconciled(raw []byte) (r Reconciled, err error) {
	if jsontext.Value(raw).Kind() != '{' {
		return r, errors.New("the result is not an object")
	}
	var failed jsontext.Value
	for m := ScanMembers(raw); m.Next(); {
		switch value := m.Value; string(m.Name) {
		case "outcome":
			if r.Outcome, err = member[string]("outcome", value); err != nil {
				return r, err
			}
		case "data":
			r.Data = value
		case "error":
			failed = value
		case "evidence":
			r.Evidence = value
		}
	}
	switch r.Outcome {
	case OutcomeSucceeded, OutcomeFailed, OutcomeNotDone, OutcomeUnknown:
	default:
		return r, fmt.Errorf("outcome is %.40q; it is succeeded, failed, not_done or unknown", r.Outcome)
	}
	if r.Outcome != OutcomeSucceeded {
		if !absent(r.Data) {
			return r, fmt.Errorf("outcome is %s and there is data", r.Outcome)
		}
		r.Data = nil
	}
	if !absent(failed) {
		if r.Outcome != OutcomeFailed {
			return r, fmt.Errorf("outcome is %s and there is an error", r.Outcome)
		}
		if r.Err, err = failureOf(failed); err != nil {
			return r, err
		}
	}
	if n := len(r.Evidence); n > MaxEvidence {
		return r, plugin.Errorf(plugin.CodeOutputTooLarge, "the evidence has %d bytes; at most %d are kept", n, MaxEvidence)
	}
	return r, nil
}

// absent reports whether nothing stands there, or null.
func absent(value jsontext.Value) bool { return len(value) == 0 || value.Kind() == 'n' }
