package sessionhost

import (
	"encoding/json"
	"errors"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// What is said over the socket is HTTP/1.1, a JSON object in and JSON objects
// out, one a line:
//
//	POST /hello   {}                     who the session host is
//	POST /call    a request              events as they come, then one answer
//	POST /attend  {exchange, id}         one answer
//	POST /cancel  {exchange}             {}
//	POST /end     {now}                  {}; no new call is taken from then on
const (
	pathHello   = "/hello"
	pathCall    = "/call"
	pathAdvance = "/attend"
	pathCancel  = "/cancel"
	pathEnd     = "/end"
)

// Bounds of what is said.
const (
	maxRequest = 64 << 20 // bytes of a request
	maxLine    = 64 << 20 // bytes of one line of an answer
	maxCalls   = 64       // that a session host has under way
)

// A hello is what a session host says of itself.
type hello struct {
	Identity string `json:"identity"`
	Session  string `json:"session"`
	PID      int    `json:"pid"`
}

// A request is a call as it is carried. Tenant, origin and session are the
// session host's own.
type request struct {
	Exchange  string         `json:"exchange"` // by which it can be cancelled
	Principal string         `json:"principal"`
	ID        string         `json:"id"`
	Operation string         `json:"operation"`
	Input     jsontext.Value `json:"input"`
	Key       string         `json:"key,omitempty"`
	Fresh     bool           `json:"fresh,omitzero"`
	NoWait    bool           `json:"no_wait,omitzero"`
	TimeoutNS int64          `json:"timeout_ns,omitzero"`
	Patience  int64          `json:"patience_ns,omitzero"`
	Labels    []string       `json:"labels,omitempty"`
	Files     []plugin.File  `json:"files,omitempty"`
	Quiet     bool           `json:"quiet,omitzero"` // the client does not receive events
}

// An exchangeRequest names an exchange and, for /attend, the queued call to resume.
type exchangeRequest struct {
	Exchange string `json:"exchange"`
	ID       string `json:"id,omitempty"`
}

// An ending tells a session host to end: once it is idle, or now.
type ending struct {
	Now bool `json:"now,omitzero"`
}

// A line is one line of an answer: an event, or the end.
type line struct {
	Taken  bool           `json:"taken,omitzero"` // the session host has the call, and it may happen from here on
	Event  *plugin.Event  `json:"event,omitempty"`
	Result *plugin.Result `json:"result,omitempty"`
	Error  *failure       `json:"error,omitempty"`
	End    bool           `json:"end,omitzero"`
}

// A failure is a [plugin.Error] as it is carried. Both ends are the same user's,
// so that the cause of an internal one may be told.
type failure struct {
	Code         plugin.Code    `json:"code"`
	Message      string         `json:"message"`
	PluginCode   string         `json:"plugin_code,omitempty"`
	Details      jsontext.Value `json:"details,omitzero"`
	Retryable    bool           `json:"retryable,omitzero"`
	RetryAfterNS int64          `json:"retry_after_ns,omitzero"`
	Cause        string         `json:"cause,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	e := plugin.AsError(err)
	f := &failure{Code: e.Code, Message: e.Message, PluginCode: e.PluginCode, Details: jsontext.Value(e.Details), Retryable: e.Retryable, RetryAfterNS: int64(e.RetryAfter)}
	if e.Code == plugin.CodeInternal && e.Err != nil {
		f.Cause = e.Err.Error()
	}
	return f
}

func (f *failure) error() error {
	if f == nil {
		return nil
	}
	e := &plugin.Error{Code: f.Code, Message: f.Message, PluginCode: f.PluginCode, Details: json.RawMessage(f.Details), Retryable: f.Retryable, RetryAfter: time.Duration(f.RetryAfterNS)}
	if f.Cause != "" {
		e.Err = errors.New(f.Cause)
	}
	return e
}

func encode(value any) ([]byte, error) {
	raw, err := json2.Marshal(value, json2.Deterministic(true), jsontext.EscapeForHTML(false))
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}
