package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Code says what kind of failure an [Error] is. It is public: it crosses the
// wire, fills the ledger and appears in every SDK. Codes are added, never
// renamed or reused; the list is protocol/codes.json.
type Code string

// Meaning returns the sentence that defines c, empty for a code that is not on
// the list.
func (c Code) Meaning() string { return meanings[c] }

// Known reports whether c is on the closed list.
func (c Code) Known() bool { _, known := meanings[c]; return known }

// An Error is what every failed call comes down to.
type Error struct {
	Code       Code
	Message    string          // safe for the caller to read: what, which, and what to do next
	PluginCode string          // the plugin's own code, with CodePluginError
	Details    json.RawMessage // an object the plugin or the host adds; may be nil
	Retryable  bool            // the same call may succeed later
	RetryAfter time.Duration   // when, where that is known
	Err        error           // the cause, for errors.Is and the log; never sent over the wire
}

// Error returns the code and the message.
func (e *Error) Error() string {
	if e.PluginCode != "" {
		return fmt.Sprintf("%s (%s): %s", e.Code, e.PluginCode, e.Message)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the given code. The message is what the caller
// reads; an operand of %w is kept as the cause too.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf returns the code of err: its own if it is or wraps an [*Error],
// cancelled or timeout for the errors of a context, internal for anything
// else, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// AsError returns err as an [*Error]. An error of unknown origin becomes
// internal, with a message that gives nothing away and the cause kept for the log.
func AsError(err error) *Error {
	if err == nil { // what errors.As needs is made for each call
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeTimeout, Message: "the deadline passed", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Message: "the call was cancelled", Err: err}
	default:
		return &Error{Code: CodeInternal, Message: "a fault of the host itself; its log has the cause", Err: err}
	}
}
