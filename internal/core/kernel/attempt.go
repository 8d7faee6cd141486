package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/usage"
	"github.com/mortise-dev/mortise/plugin"
)

// An attempt is one call on its way through the kernel, with what the stages have found
// out so far.
type attempt struct {
	k       *Kernel
	call    *plugin.Call
	started time.Time
	record  plugin.CallRecord
	phase   phase
	limits  *limits // as they were when it began

	target   *plugin.Target
	unknown  error           // what the caller hears of a reference that means nothing to them
	row      *ledger.CallRow // of a call that goes on, until it is claimed again
	lease    *ledger.Lease   // once claimed
	resumed  bool            // the call was made by another caller or process, or goes on without its caller
	halted   bool            // its host closed before it ended
	approval *approval.Row   // that policy requires, where it was given
	void     string          // why it does not count
	usage    usage.Grant     // what the plugin asked of the host; nil until it runs
	sampled  bool            // the host asked a model on its behalf
	journal  *ledger.Journal // of its effects; nil for a call without
	made     []string        // the labels of what its plugin answered, in a preview too
	goesOn   bool            // nothing but its uncertain record tells of it, and it goes on if that was written
	prior    *ledger.Prior   // the call whose answer this one gets
	input    []byte          // what the caller sent, where the plugin gets more
	overlay  string          // the hash of what only the host decides; "" for nothing
	open     bool            // the caller's input leaves something to the host
	misfit   error           // what the schema refuses, to be said after what is missing
	shown    json.RawMessage // the input with the paths of the files that it names
	seen     json.RawMessage // the input as policy judges it and a person is shown it
	bound    json.RawMessage // the input as the plugin gets it, once the call is equipped
	late     tooLate         // the error of one that took too long
	unused   func()          // gives back the process that the call has
	waited   time.Duration   // for that process
	begun    bool            // its runner was given it
	counted  func(bool)      // told, once, whether the call counts against the quotas; nil where none were asked

	passed func(stage string)           // hears of each stage that is over
	ended  func(rec *plugin.CallRecord) // hears how the attempt ended; nil where no one watches
}

// A phase is how far an attempt got.
type phase uint8

const (
	phaseNew       phase = iota // it has not run
	phaseGated                  // policy requires an approval that was not given
	phaseParked                 // the call is on record, and runs later or in another attempt
	phaseUnreached              // it ran, and its runner says that no plugin received it
	phaseReached                // the plugin may have received it
	phaseCut                    // the plugin received it, and the host ended it before there was an answer
	phaseUncertain              // its record in the ledger is uncertain: the sweep may have it run again
)

// labels returns the labels of all that is told of the call, however it ends: those of the call
// itself, those that its operation declares, and those of what its plugin answered.
func (a *attempt) labels() []string {
	labels := plugin.Labels(a.made, a.call.Labels)
	if a.target != nil {
		labels = plugin.Labels(labels, a.target.Operation.Labels)
	}
	return labels
}

// ran reports whether the plugin may have received the call.
func (a *attempt) ran() bool { return a.phase == phaseReached || a.phase == phaseCut }

// begin takes note of what was asked.
func (k *Kernel) begin(call *plugin.Call) *attempt {
	if call.ID == "" {
		call.ID = newID()
	}
	if call.Trace.Correlation == "" {
		call.Trace.Correlation = call.ID
	}
	if len(call.Input) == 0 {
		call.Input = []byte("{}")
	}
	asker := ""
	if call.By != "" {
		asker = printable(call.Asker, 300)
	}
	return &attempt{k: k, call: call, started: k.Now(), limits: k.limits.Load(), passed: func(string) {}, record: plugin.CallRecord{
		CallID:        call.ID,
		Operation:     printable(call.Operation, 300),
		Correlation:   call.Trace.Correlation,
		Workflow:      call.Trace.Workflow,
		Step:          call.Trace.Step,
		Principal:     call.Principal.Member(),
		Actor:         call.Actor,
		By:            call.By,
		Asker:         asker,
		Origin:        call.Origin,
		Parent:        call.Parent,
		Session:       call.Session,
		Agent:         call.Agent,
		Plan:          call.Plan,
		Labels:        call.Labels,
		Key:           printable(call.Key, 255),
		SchemaVersion: plugin.SchemaVersion,
		Dry:           call.Dry != nil,
	}}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// printable cuts what a caller sent to a length and to printable ASCII.
func printable(text string, most int) string {
	text = text[:min(len(text), most)]
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return text
	}
	return string(slices.DeleteFunc([]byte(text), func(c byte) bool { return c < ' ' || c > '~' }))
}

// watch has the attempt watched, where anything watches, and returns the context in which
// it goes on.
func (a *attempt) watch(ctx context.Context) context.Context {
	if a.k.Watch == nil {
		return ctx
	}
	ctx, a.passed, a.ended = a.k.Watch(ctx, a.call)
	return ctx
}
