package protocol

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// The numbers of JSON-RPC errors that the protocol uses.
const (
	RPCMethodNotFound = -32601
	RPCInvalidParams  = -32602
	RPCError          = -32000 // with data: see Error
)

// An Error is the error member of a response.
type Error struct {
	Number  int
	Message string
	Data    *ErrorData // with RPCError
}

// ErrorData is what [RPCError] carries; the same members make up the error of
// a result whose status is failed, with its message beside them.
type ErrorData struct {
	Code         string         `json:"code"`
	PluginCode   string         `json:"plugin_code"`
	Message      string         `json:"message,omitempty"`
	Details      jsontext.Value `json:"details,omitzero"`
	Retryable    bool           `json:"retryable"`
	RetryAfterMS int64          `json:"retry_after_ms"`
}

// append writes e as a JSON object.
func (e *Error) append(b []byte) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(e.Number), 10)
	b = append(b, `,"message":`...)
	b = AppendString(b, e.Message)
	if d := e.Data; d != nil {
		b = append(b, `,"data":{"code":`...)
		b = AppendString(b, d.Code)
		b = append(b, `,"plugin_code":`...)
		b = AppendString(b, d.PluginCode)
		b = append(b, `,"details":`...)
		if len(d.Details) == 0 {
			b = append(b, "{}"...)
		} else {
			b = append(b, Line(d.Details)...)
		}
		b = append(b, `,"retryable":`...)
		b = strconv.AppendBool(b, d.Retryable)
		b = append(b, `,"retry_after_ms":`...)
		b = strconv.AppendInt(b, d.RetryAfterMS, 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// FromPlugin returns err as the wire has it.
func FromPlugin(err error) *Error {
	e := plugin.AsError(err)
	return &Error{Number: RPCError, Message: e.Message, Data: &ErrorData{
		Code:         string(e.Code),
		PluginCode:   e.PluginCode,
		Details:      jsontext.Value(e.Details),
		Retryable:    e.Retryable,
		RetryAfterMS: e.RetryAfter.Milliseconds(),
	}}
}

// MaxMessage is how many bytes of a plugin's error message are kept.
const MaxMessage = 4 << 10

// pluginMay lists the codes a plugin may answer with; any other is its own.
var pluginMay = map[plugin.Code]bool{
	plugin.CodePluginError:       true,
	plugin.CodeInvalidInput:      true,
	plugin.CodeNeedsContext:      true,
	plugin.CodeDependencyMissing: true,
	plugin.CodeRateLimited:       true,
	plugin.CodeTimeout:           true,
	plugin.CodeCancelled:         true,
	plugin.CodeLimitExceeded:     true,
	plugin.CodeUnavailable:       true,
}

// Plugin returns the data as an error of the host. A code that a plugin may
// not use becomes its plugin_code: a plugin cannot speak with the host's voice.
func (d *ErrorData) Plugin(message string) *plugin.Error {
	e := &plugin.Error{
		Code:       plugin.Code(d.Code),
		PluginCode: cut(d.PluginCode, 128),
		Message:    cut(message, MaxMessage),
		Retryable:  d.Retryable,
		RetryAfter: time.Duration(min(max(d.RetryAfterMS, 0), 24*3600*1000)) * time.Millisecond,
	}
	if len(d.Details) > 0 && string(d.Details) != "{}" {
		e.Details = []byte(d.Details)
	}
	if !pluginMay[e.Code] {
		if e.PluginCode == "" {
			e.PluginCode = cut(d.Code, 128)
		}
		e.Code = plugin.CodePluginError
	}
	if e.Message == "" {
		e.Message = "the plugin gave no message"
	}
	return e
}

// ParseError reads the error member of a frame that answers a request. An error member
// that is none is refused.
func ParseError(raw []byte) (*plugin.Error, error) {
	var wire struct {
		Code    *int64         `json:"code"`
		Message *string        `json:"message"`
		Data    jsontext.Value `json:"data"`
	}
	if err := ReadPart(raw, &wire); err != nil {
		return nil, err
	}
	if wire.Code == nil || wire.Message == nil {
		return nil, errMissingMember
	}
	data := ErrorData{Code: string(plugin.CodePluginError)}
	switch *wire.Code {
	case RPCInvalidParams:
		data.Code = string(plugin.CodeInvalidInput)
	case RPCError:
		if len(wire.Data) > 0 && wire.Data.Kind() == '{' {
			if err := ReadPart(wire.Data, &data); err != nil {
				return nil, err
			}
		}
	default:
		data.PluginCode = strconv.FormatInt(*wire.Code, 10)
	}
	return data.Plugin(*wire.Message), nil
}

var errMissingMember = errorString("an error has a code and a message")

type errorString string

func (e errorString) Error() string { return string(e) }

// cut returns the first n bytes of text, whole characters only.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
