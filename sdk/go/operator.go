package mortise

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// WithPreview gives an operator a function that shows what a call would do.
// People read its answer, of at most 64 KiB, before they agree to the call.
// Host services only read while it runs. It takes what the operator takes, and
// fails as the operator would.
func WithPreview[In, Out any](fn func(*Call, In) (Out, error)) Option {
	return func(o *operation) {
		o.takes(reflect.TypeFor[In](), "preview")
		o.described.Preview = true
		o.preview = decoding(fn)
	}
}

// WithReconcile gives an operator a function that finds out how an earlier run
// of a call ended, of which only effects are on record. Host services only read
// while it runs. An error says that it could not find out now.
func WithReconcile[In any](fn func(*Call, In, []Effect) (Reconciled, error)) Option {
	return func(o *operation) {
		o.takes(reflect.TypeFor[In](), "reconcile")
		o.described.Reconcile = true
		takes := readShape(reflect.TypeFor[In]())
		o.reconcile = func(c *Call, input jsontext.Value, effects []Effect) (Reconciled, error) {
			in, err := decodeInput[In](takes, input)
			if err != nil {
				return Reconciled{}, err
			}
			return fn(c, in, effects)
		}
	}
}

// Brokered declares that all effects of an operator go through host services,
// so that the host has every one on record.
func Brokered() Option { return func(o *operation) { o.described.Brokered = true } }

// takes panics where a function takes other input than its operation.
func (op *operation) takes(in reflect.Type, what string) {
	if in != op.input {
		panic(fmt.Sprintf("mortise: the %s takes %s and its operation %s: both get the same input", what, in, op.input))
	}
}

// An Effect is one effect of an earlier run of a call.
type Effect = protocol.Effect

// An Outcome is how an earlier run of a call ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = protocol.OutcomeSucceeded
	Failed    Outcome = protocol.OutcomeFailed
	NotDone   Outcome = protocol.OutcomeNotDone // it never happened, and may be done now
	Unknown   Outcome = protocol.OutcomeUnknown // the outcome is not known yet
)

// Reconciled is what an operator found out about an earlier run. The zero value means
// that the outcome is unknown.
type Reconciled struct {
	Outcome  Outcome
	Data     any    // of one that succeeded: what the operator would have returned
	Err      *Error // of one that failed; may be nil
	Evidence any    // whatever shows it, at most 64 KiB; may be nil
}

func (r Reconciled) marshal() ([]byte, error) {
	said := map[string]any{"outcome": r.Outcome}
	switch r.Outcome {
	case "":
		said["outcome"] = Unknown
	case Succeeded:
		said["data"] = r.Data
	case Failed:
		if r.Err != nil {
			e := wire(r.Err)
			e.Data.Message = e.Message
			if len(e.Data.Details) == 0 {
				e.Data.Details = jsontext.Value("{}")
			}
			said["error"] = e.Data
		}
	}
	if r.Evidence != nil {
		said["evidence"] = r.Evidence
	}
	return marshal(said)
}
