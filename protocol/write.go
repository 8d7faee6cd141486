package protocol

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions here append one whole line, newline included, to a buffer.
// They splice values in as they are: a value must be valid JSON without raw
// newlines, which [Line] makes sure of.

// Line returns raw on one line: itself, unless it holds a raw newline.
func Line(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	value := jsontext.Value(append([]byte(nil), raw...))
	if err := value.Compact(); err != nil {
		return raw
	}
	return value
}

// AppendRequest appends a request of the host.
func AppendRequest(b []byte, id int64, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	return appendMethod(b, method, params)
}

// AppendRequestID appends a request whose id is any JSON value.
func AppendRequestID(b []byte, id []byte, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return appendMethod(b, method, params)
}

// AppendNotification appends a notification.
func AppendNotification(b []byte, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	return appendMethod(b, method, params)
}

func appendMethod(b []byte, method string, params []byte) []byte {
	b = append(b, `,"method":`...)
	b = AppendString(b, method)
	b = append(b, `,"params":`...)
	b = append(b, params...)
	return append(b, '}', '\n')
}

// AppendResult appends a response that succeeded.
func AppendResult(b []byte, id, result []byte) []byte {
	b = append(AppendResultHead(b, id), result...)
	return append(b, ResultTail...)
}

// AppendResultHead appends what stands before the result in a response, for those who
// write the three apart; [ResultTail] is what stands behind it.
func AppendResultHead(b []byte, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return append(b, `,"result":`...)
}

// ResultTail ends a response that began with [AppendResultHead].
const ResultTail = "}\n"

// AppendError appends a response that failed.
func AppendError(b []byte, id []byte, e *Error) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":`...)
	b = e.append(b)
	return append(b, '}', '\n')
}

// AppendString appends text as a JSON string. Invalid UTF-8 is replaced.
func AppendString(b []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(b, text)
	if err != nil {
		quoted, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return quoted
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
