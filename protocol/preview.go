package protocol

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// MaxPreview is how many bytes a preview may have: a person is to read it.
const MaxPreview = 64 << 10

// AppendPreview appends a preview request for call, which differs from
// [AppendExecute] in its method only.
func AppendPreview(b []byte, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64) []byte {
	return append(appendCall(b, MethodPreview, id, token, operation, input, call, deadlineMS), "}}\n"...)
}

// ParsePreview reads the result member of an answer to preview, which is known
// to be valid JSON. A preview that is too long is an [*plugin.Error] of code
// output_too_large; every other error means that it is no such answer.
func ParsePreview(raw []byte) (jsontext.Value, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, errors.New("the result is not an object")
	}
	var preview jsontext.Value
	for m := ScanMembers(raw); m.Next(); {
		if string(m.Name) == "preview" {
			preview = m.Value
		}
	}
	if len(preview) == 0 {
		return nil, errors.New("the result has no preview")
	}
	if n := len(preview); n > MaxPreview {
		return nil, plugin.Errorf(plugin.CodeOutputTooLarge, "the preview has %d bytes; at most %d are shown", n, MaxPreview)
	}
	return preview, nil
}
