package mortise

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// An Error is a plugin's own failure, in its own words.
type Error struct {
	Code         string // the plugin's own, such as "FILE_NOT_FOUND"
	Message      string // for the caller: what, which, and what to do next
	Details      any    // an object for programs; may be nil
	Retryable    bool
	RetryAfterMS int64

	code string // one of the protocol's, where it is not plugin_error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a code of the plugin's own.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// What a service returns where the call is done before its answer, and what a
// call fails with that returns any error after that.
var (
	// ErrCancelled is that of a call that the host cancelled, or that has ended.
	ErrCancelled = &Error{code: "cancelled", Message: "the call was cancelled"}
	// ErrTimeout is that of a call that has reached its deadline.
	ErrTimeout = &Error{code: "timeout", Message: "the call's deadline has passed"}
)

// A ServiceError is the host's refusal of a service call.
type ServiceError struct {
	Code         string // of the closed list
	Message      string
	Details      jsontext.Value // an object for programs; may be nil
	Retryable    bool           // the same request may succeed later
	RetryAfterMS int64
}

// Error returns the code and the message.
func (e *ServiceError) Error() string { return e.Code + ": " + e.Message }

// wire returns err as the protocol has it.
func wire(err error) *protocol.Error {
	var own *Error
	if !errors.As(err, &own) {
		own = &Error{Code: typeName(err), Message: err.Error()}
	}
	code := own.code
	if code == "" {
		code = "plugin_error"
	}
	data := &protocol.ErrorData{Code: code, PluginCode: strings.ToValidUTF8(own.Code[:min(len(own.Code), maxCode)], ""), Retryable: own.Retryable, RetryAfterMS: own.RetryAfterMS}
	if own.Details != nil {
		if raw, err := encode(own.Details); err == nil {
			data.Details = raw
		}
	}
	message := own.Message
	if len(message) > protocol.MaxMessage {
		message = strings.ToValidUTF8(message[:protocol.MaxMessage], "")
	}
	return &protocol.Error{Number: protocol.RPCError, Message: message, Data: data}
}

// maxCode is how many bytes of a plugin's own code the host keeps.
const maxCode = 128

// typeName returns the name of an error's type, without its package.
func typeName(err error) string {
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name := t.Name(); name != "" {
		return name
	}
	return "error"
}
