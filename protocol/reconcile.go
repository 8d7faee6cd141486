package protocol

import (
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
	OutcomeUnknown   = "unknown"  // nobody can say yet
)

// Reconciled is what an operator found out about an earlier run of a call.
type Reconciled struct {
	Outcome  string
	Data     jsontext.Value // of one that succeeded
	Err      *plugin.Error  // of one that failed
	Evidence jsontext.Value // whatever shows it
}
