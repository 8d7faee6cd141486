package mortise

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A Call is one request being answered. It is a [context.Context]: it has the
// call's deadline, and is done when the host cancels the call, as it does at the
// deadline, and when the call has ended. Its methods are safe for concurrent use.
//
// Beside what it says of itself, it has a method for each service of the host,
// named as the service is: storage.get is [Call.StorageGet], kb.ingest_text is
// [Call.KBIngestText]. Each needs the capability that docs/services.md names,
// such as "storage", except [Call.Call]. Their errors are:
//
//   - a [*ServiceError] where the host refuses or fails;
//   - [ErrCancelled] or [ErrTimeout] where the call is done before the answer;
//   - an [*Error] with the code limit_exceeded where the arguments do not fit
//     into a line of the protocol;
//   - any other error where a value is no JSON, or does not decode.
//
// A service that the SDK has no method for is asked with [Call.Service].
type Call struct {
	server   *server
	token    string
	seq      atomic.Int64
	about    jsontext.Value
	deadline time.Time // zero where the host gave none

	mu    sync.Mutex // guards the four below
	done  chan struct{}
	timer *time.Timer // closes done at the deadline
	err   error       // why the context is done
	lost  error       // why content that it emitted did not reach the host

	// Operation is the operation's name without the plugin's; in a hook, the event.
	Operation string
	// Agent is whose event it is, in a hook.
	Agent string
	// Limit is how much time the host gives the call, from its start; see [Call.Deadline].
	Limit time.Duration
}

// About returns who asks and what the call belongs to.
func (c *Call) About() protocol.Context {
	var about protocol.Context
	_ = json.Unmarshal(c.about, &about) // the host's own words; what is missing stays empty
	return about
}

// Scratch returns the directory that belongs to this process.
func (c *Call) Scratch() string { return c.server.opened.Paths.Scratch }

// Progress is how far a call has come.
type Progress struct {
	Message string `json:"message,omitempty"`
	Done    int64  `json:"done,omitzero"`
	Total   int64  `json:"total,omitzero"`
	Unit    string `json:"unit,omitempty"`
}

// Progress tells the caller how far the call has come; it may be dropped.
func (c *Call) Progress(p Progress) { _ = c.emit("progress", p) }

// Emit sends a piece of content to the caller; it is never dropped: where it
// cannot be sent, because it is longer than a line of the protocol or no JSON,
// the call fails.
func (c *Call) Emit(data any) {
	if err := c.emit("content", data); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lost == nil {
			c.lost = err
		}
	}
}

// unsent returns why content of the call did not reach the host, nil where all did.
func (c *Call) unsent() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *Call) emit(kind string, data any) error {
	raw, err := marshal(data)
	if err != nil {
		return err
	}
	return c.server.notify(protocol.MethodEmit, protocol.Emit{Call: c.token, Seq: c.seq.Add(1), Kind: kind, Data: raw})
}

// Log writes a record to the host's log, with the call it belongs to. Level is
// debug, info, warning or error; fields may be nil. Of a record that is longer
// than a line of the protocol the beginning of the message is kept. Under
// version 1 of the protocol records go to standard error.
func (c *Call) Log(level, message string, fields map[string]any) {
	record := protocol.Log{Call: c.token, Level: level, Message: message}
	if len(fields) > 0 {
		record.Fields, _ = json.Marshal(fields, codec, json.Deterministic(true))
	}
	if c.server.once {
		fmt.Fprintf(os.Stderr, "%s: %s %s\n", level, message, record.Fields)
		return
	}
	if c.server.notify(protocol.MethodLog, record) != nil {
		record.Fields, record.Message = nil, strings.ToValidUTF8(message[:min(len(message), protocol.MaxMessage)], "")
		_ = c.server.notify(protocol.MethodLog, record)
	}
}

// Service asks the host for a service, such as "cache.get", and decodes the
// value into value, which may be nil. A refusal is a [*ServiceError].
func (c *Call) Service(method string, args, value any) error {
	raw, err := encode(args)
	if err != nil {
		return err
	}
	return c.ask(method, protocol.ServiceCall{Call: c.token, Args: raw}, value)
}

func (c *Call) ask(method string, params, value any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer, err := c.server.request(c, method, raw)
	if err != nil || value == nil {
		return err
	}
	return decode(answer, value)
}

// Call asks the host to run another operation, which the manifest names under
// requires.tools, and decodes its data into data, which may be nil. The
// operation is named plugin/operation. A call that was refused, failed or timed
// out is a [*ServiceError] with the code of that call; below a tool or an agent
// an operation with effects is effect_undeclared. It is operations.call.
func (c *Call) Call(operation string, input, data any) error {
	return c.CallOnce(operation, "", input, data)
}

// CallOnce is [Call.Call] with an idempotency key: a later call of the operation
// with the same key is answered with the result of the first, and one with another
// input under the key is key_conflict.
func (c *Call) CallOnce(operation, key string, input, data any) error {
	raw, err := encode(input)
	if err != nil {
		return err
	}
	var result struct {
		Data jsontext.Value `json:"data"`
	}
	err = c.ask("operations.call", struct {
		Call      string         `json:"call"`
		Operation string         `json:"operation"`
		Input     jsontext.Value `json:"input"`
		Key       string         `json:"key,omitempty"`
	}{c.token, operation, raw, key}, &result)
	if err != nil || data == nil {
		return err
	}
	return decode(result.Data, data)
}

// A Result is an answer that says more than its data. A function may return it
// in place of the data alone.
type Result[T any] struct {
	Data           T
	Metrics        map[string]any
	Nondeterminism *Nondeterminism
	Summary        string
	Artifacts      []Artifact
	Diagnostics    []string
}

// Nondeterminism says that the same input need not give the same output.
type Nondeterminism struct {
	Is        bool     `json:"is_nondeterministic"`
	Reasons   []string `json:"reasons,omitempty"`
	Stability string   `json:"stability,omitempty"` // high, medium, low
}

// An Artifact is a file or object that a call produced.
type Artifact struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Hash string `json:"hash,omitempty"`
}

// answer is what execute's result carries.
type answer struct {
	Status         string          `json:"status"`
	Data           any             `json:"data"`
	Artifacts      []Artifact      `json:"artifacts,omitempty"`
	Metrics        map[string]any  `json:"metrics,omitempty"`
	Nondeterminism *Nondeterminism `json:"nondeterminism,omitempty"`
	Summary        string          `json:"summary,omitempty"`
	Diagnostics    []string        `json:"diagnostics,omitempty"`
}

func (r Result[T]) answer() answer {
	return answer{"succeeded", r.Data, r.Artifacts, r.Metrics, r.Nondeterminism, r.Summary, r.Diagnostics}
}

// answerer is a Result of any type.
type answerer interface{ answer() answer }
