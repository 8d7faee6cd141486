package protocol

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// Methods of version 2.
const (
	MethodInitialize = "initialize"
	MethodDescribe   = "describe"
	MethodExecute    = "execute"
	MethodPreview    = "preview"
	MethodReconcile  = "reconcile"
	MethodHook       = "hook"
	MethodCancel     = "$/cancel"
	MethodShutdown   = "shutdown"
	MethodEmit       = "emit"
	MethodLog        = "log"
)

// Initialize is the params of the first request.
type Initialize struct {
	Protocol      string   `json:"protocol"`
	Host          Peer     `json:"host"`
	PackageDigest string   `json:"package_digest"`
	Scope         Scope    `json:"scope"`
	Services      []string `json:"services"`
	Limits        Limits   `json:"limits"`
	Paths         Paths    `json:"paths"`
}

// A Peer is a name and a version.
type Peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Scope is how widely the process is shared: with one call, session, agent
// or tenant, and which.
type Scope struct {
	Kind plugin.Isolation `json:"kind"`
	ID   string           `json:"id"`
}

// Limits are the bounds a plugin has to keep to.
type Limits struct {
	FrameBytes int `json:"frame_bytes"`
	InFlight   int `json:"in_flight"`
}

// Paths are directories the process may use.
type Paths struct {
	Scratch   string `json:"scratch"`
	Artifacts string `json:"artifacts,omitempty"`
}

// Initialized is a plugin's answer to [Initialize].
type Initialized struct {
	Protocol    string   `json:"protocol"`
	Plugins     []Peer   `json:"plugins"`
	Concurrency int      `json:"concurrency"` // 1 where absent
	Features    []string `json:"features"`
}

// MaxConcurrency is the most calls a process may ask to run at a time.
const MaxConcurrency = 1024

// ParseInitialized reads the answer and refuses one that is no answer.
func ParseInitialized(raw []byte) (Initialized, error) {
	in := Initialized{Concurrency: 1}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, err
	}
	if in.Concurrency < 1 || in.Concurrency > MaxConcurrency {
		return in, fmt.Errorf("concurrency is %d; it is 1 to %d", in.Concurrency, MaxConcurrency)
	}
	return in, nil
}

// Context is what execute, preview and reconcile say of the call beside its input.
type Context struct {
	Auth    Auth         `json:"auth"`
	Trace   plugin.Trace `json:"trace"`
	Policy  *Policy      `json:"policy,omitempty"` // where the call was judged
	Session string       `json:"session,omitempty"`
	Key     string       `json:"key"`
	CallID  string       `json:"call_id,omitempty"` // the call's own id, the same in each attempt
	Attempt int64        `json:"attempt"`           // 1, and one more each time the call is run again
}

// Policy is what policy decided about the call, as it stood then (the
// policy_snapshot of the kernel contracts, 5.3.2): an operator can hold its last
// step against it.
type Policy struct {
	Version string         `json:"version"` // of the rules
	Verdict plugin.Verdict `json:"verdict"` // allow or allow_with_approval; a call that is denied reaches no plugin
	Reasons []string       `json:"reasons"`
}

// Auth is who asks, in both spellings that plugins of the kernel contracts read.
type Auth struct {
	Tenant      string        `json:"tenant_id"`
	PrincipalID string        `json:"principal_id"`
	Principal   PrincipalName `json:"principal"`
	Scopes      []string      `json:"scopes"`
}

// A PrincipalName is a principal without its rights.
type PrincipalName struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// AppendExecute appends an execute request for call. input is spliced in as it
// is, and must hold no raw newline.
func AppendExecute(b []byte, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64) []byte {
	return append(appendCall(b, MethodExecute, id, token, operation, input, call, deadlineMS), "}}\n"...)
}

// appendCall appends a request about call up to the end of its params, which
// are left open.
func appendCall(b []byte, method string, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = appendInt(b, id)
	b = append(b, `,"method":"`...)
	b = append(b, method...)
	b = append(b, `","params":{"call":`...)
	b = AppendString(b, token)
	b = append(b, `,"operation":`...)
	b = AppendString(b, operation)
	b = append(b, `,"input":`...)
	if len(input) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(b, input...)
	}
	b = appendContext(append(b, `,"context":`...), call)
	b = append(b, `,"deadline_ms":`...)
	return appendInt(b, deadlineMS)
}

// appendContext appends what a plugin is told of call, a [Context].
func appendContext(b []byte, call *plugin.Call) []byte {
	b = append(b, `{"auth":{"tenant_id":`...)
	b = AppendString(b, call.Tenant)
	b = append(b, `,"principal_id":`...)
	b = AppendString(b, call.Principal.ID)
	b = append(b, `,"principal":{"type":`...)
	b = AppendString(b, call.Principal.Type)
	b = append(b, `,"id":`...)
	b = AppendString(b, call.Principal.ID)
	b = append(b, `},"scopes":`...)
	b = appendStrings(b, call.Principal.Scopes)
	b = append(b, `},"trace":{"correlation_id":`...)
	b = AppendString(b, call.Trace.Correlation)
	b = append(b, `,"workflow_id":`...)
	b = AppendString(b, call.Trace.Workflow)
	b = append(b, `,"step_id":`...)
	b = AppendString(b, call.Trace.Step)
	if call.Trace.Parent != "" {
		b = append(b, `,"traceparent":`...)
		b = AppendString(b, call.Trace.Parent)
	}
	b = append(b, '}')
	if d := call.Decision; d != nil {
		b = append(b, `,"policy":{"version":`...)
		b = AppendString(b, d.Policy)
		b = append(b, `,"verdict":`...)
		b = AppendString(b, string(d.Verdict))
		b = append(b, `,"reasons":`...)
		b = appendStrings(b, d.Reasons)
		b = append(b, '}')
	}
	if call.Session != "" {
		b = append(b, `,"session":`...)
		b = AppendString(b, call.Session)
	}
	b = append(b, `,"key":`...)
	b = AppendString(b, call.Key)
	if call.ID != "" {
		b = append(b, `,"call_id":`...)
		b = AppendString(b, call.ID)
	}
	b = append(b, `,"attempt":`...)
	b = appendInt(b, max(call.Attempt, 1))
	return append(b, '}')
}

func appendStrings(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, text)
	}
	return append(b, ']')
}

// Execute is the params of an execute or preview request, as a plugin reads them.
type Execute struct {
	Call       string         `json:"call"`
	Operation  string         `json:"operation"`
	Input      jsontext.Value `json:"input"`
	Context    Context        `json:"context"`
	DeadlineMS int64          `json:"deadline_ms"`
}

// A Cancel is the params of $/cancel.
type Cancel struct {
	Call   string `json:"call"`
	Reason string `json:"reason"` // timeout, cancelled or shutdown
}

// An Emit is the params of emit.
type Emit struct {
	Call string         `json:"call"`
	Seq  int64          `json:"seq"`
	Kind string         `json:"kind"` // progress or content
	Data jsontext.Value `json:"data"`
}

// A Log is the params of log.
type Log struct {
	Call    string         `json:"call,omitempty"`
	Level   string         `json:"level"`
	Message string         `json:"message"`
	Fields  jsontext.Value `json:"fields,omitzero"`
}

// A ServiceCall is the params of a request to the host.
type ServiceCall struct {
	Call string         `json:"call"`
	Args jsontext.Value `json:"args"`
}

// ParseResult reads the result member of an answer to execute, which is known
// to be valid JSON. A status of failed comes back as an error beside the
// result, whose metrics and diagnostics may still count.
func ParseResult(raw []byte) (res plugin.Result, failure *plugin.Error, err error) {
	if jsontext.Value(raw).Kind() != '{' {
		return res, nil, errors.New("the result is not an object")
	}
	var failed jsontext.Value
	for m := ScanMembers(raw); m.Next(); {
		switch value := m.Value; string(m.Name) {
		case "status":
			if res.Status, err = statusOf(value); err != nil {
				return res, nil, err
			}
		case "data":
			res.Data = []byte(value)
		case "error":
			failed = value
		case "artifacts":
			res.Artifacts, err = member[[]plugin.Artifact]("artifacts", value)
		case "metrics":
			res.Metrics, err = member[plugin.Metrics]("metrics", value)
		case "nondeterminism":
			res.Nondeterminism, err = member[*plugin.Nondeterminism]("nondeterminism", value)
		case "summary":
			res.Summary, err = member[string]("summary", value)
		case "diagnostics":
			res.Diagnostics = []byte(value)
		case "message":
			res.Message, err = member[string]("message", value)
		case "details":
			res.Details = unlessNull(value)
		case "output_artifacts":
			res.Outputs = unlessNull(value)
		case "skips":
			res.Skips = []byte(value)
		case "citations":
			res.Citations = []byte(value)
		case "next_cursor":
			res.NextCursor = []byte(value)
		case "members":
			res.Members = unlessNull(value)
		case "returned":
			res.Returned, err = member[plugin.Returned]("returned", value)
		}
		if err != nil {
			return res, nil, err
		}
	}
	switch res.Status {
	case plugin.Succeeded, plugin.InProgress:
		if failed != nil && failed.Kind() != 'n' {
			return res, nil, fmt.Errorf("status is %s and there is an error", res.Status)
		}
		return res, nil, nil
	case plugin.Failed:
		if failed == nil || failed.Kind() != '{' {
			return res, nil, errors.New("status is failed and there is no error")
		}
		failure, err = failureOf(failed)
		return res, failure, err
	default:
		return res, nil, fmt.Errorf("status is %.40q; it is succeeded, failed or in_progress", res.Status)
	}
}

// unlessNull returns a member that may hold anything, nil for null.
func unlessNull(value jsontext.Value) []byte {
	if value.Kind() == 'n' {
		return nil
	}
	return []byte(value)
}

// failureOf reads the error within a result.
func failureOf(value jsontext.Value) (*plugin.Error, error) {
	data := ErrorData{Code: string(plugin.CodePluginError)}
	if err := json.Unmarshal(value, &data); err != nil {
		return nil, fmt.Errorf("error: %w", err)
	}
	return data.Plugin(data.Message), nil
}

// statusOf reads a status, nearly always the one that needs no reading.
func statusOf(value jsontext.Value) (plugin.Status, error) {
	if string(value) == `"succeeded"` {
		return plugin.Succeeded, nil
	}
	return member[plugin.Status]("status", value)
}

// member reads one member of a result.
func member[T any](name string, value []byte) (T, error) {
	var into T
	if err := json.Unmarshal(value, &into); err != nil {
		return into, fmt.Errorf("%s: %w", name, err)
	}
	return into, nil
}
