package ledger

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/store"
)

// A State is where a call stands. The store keeps states; this file alone says which
// may follow which. Outside, queued and running read as in_progress; see [Status].
type State = store.CallState

// The states of a call. One that has no row is in none of them.
const (
	None       State = ""
	Pending          = store.CallPending
	Queued           = store.CallQueued
	Running          = store.CallRunning
	InProgress       = store.CallInProgress
	Succeeded        = store.CallSucceeded
	Failed           = store.CallFailed
	Unknown          = store.CallUnknown
)

// An event is what happens to a call. Each leads to one state, wherever it comes from.
//
//	(none) ──ask──────▶ pending_approval
//	  │                     │ approve
//	  │                     ▼
//	  ├──enqueue─────────▶ queued ◀──retry──┬────────────┐
//	  │                     │  │            │            │
//	  │               start │  └──lose──────┼─────┐      │
//	  │                     ▼               │     ▼      │
//	  └──claim───────────▶ running ──lose───┼──▶ unknown ┤
//	                        │  └────────────┤            │
//	                        └──defer──▶ in_progress ─────┘
//
//	running, in_progress, unknown   ──succeed──▶ succeeded
//	all of these but (none)         ──fail─────▶ failed
type event string

const (
	eventClaim   event = "claim"   // the call runs in the process that claimed it
	eventEnqueue event = "enqueue" // it runs later, on any node
	eventAsk     event = "ask"     // policy requires approval
	eventApprove event = "approve" // a person gave it
	eventStart   event = "start"   // one of the competing nodes took the call, with a new attempt
	eventSucceed event = "succeed" // the attempt, reconciliation or a person has the result
	eventFail    event = "fail"    // it failed, or may not run: denied, expired, void, cancelled, refused
	eventDefer   event = "defer"   // the operator goes on by itself
	eventRetry   event = "retry"   // nothing was sent, or everything sent can be repeated: another attempt may follow
	eventLose    event = "lose"    // an effect may or may not have happened; in progress: the program that has it did not say in time
)

// transitions is the state machine of a call. docs/architecture.md has the same table.
var transitions = map[event]struct {
	to   State
	from []State
}{
	eventClaim:   {Running, []State{None}},
	eventEnqueue: {Queued, []State{None}},
	eventAsk:     {Pending, []State{None}},
	eventApprove: {Queued, []State{Pending}},
	eventStart:   {Running, []State{Queued}},
	eventSucceed: {Succeeded, []State{Running, InProgress, Unknown}},
	eventFail:    {Failed, []State{Pending, Queued, Running, InProgress, Unknown}},
	eventDefer:   {InProgress, []State{Running}},
	eventRetry:   {Queued, []State{Running, InProgress, Unknown}},
	eventLose:    {Unknown, []State{Queued, Running, InProgress}},
}

// transition returns the state that an event leads to. It refuses an event that cannot
// happen to a call in state from.
func transition(from State, e event) (to State, err error) {
	t, known := transitions[e]
	if !known || !slices.Contains(t.from, from) {
		return from, fmt.Errorf("a call in the state %q cannot %s", from, e)
	}
	return t.to, nil
}

// claimed returns the event with which a call is claimed in a state.
func claimed(first State) event {
	switch first {
	case Queued:
		return eventEnqueue
	case Pending:
		return eventAsk
	}
	return eventClaim
}

// event returns the event that an outcome is.
func (o *Outcome) event() (event, error) {
	switch o.State {
	case Succeeded:
		return eventSucceed, nil
	case Failed:
		return eventFail, nil
	case InProgress:
		return eventDefer, nil
	case Queued:
		return eventRetry, nil
	case Unknown:
		return eventLose, nil
	}
	return "", fmt.Errorf("%q is not how a call ends", o.State)
}
