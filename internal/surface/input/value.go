// Package input reads the input of a call from what a person wrote: JSON, files,
// arguments and assignments.
package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// A Misuse says that something was not written as it must be.
type Misuse struct{ Err error }

// Error implements error.
func (m Misuse) Error() string { return m.Err.Error() }

// Unwrap returns what is wrong.
func (m Misuse) Unwrap() error { return m.Err }

// maxBytes bounds what is read as input, before the host's own limit applies.
const maxBytes = 64 << 20

// Value reads JSON that a flag gives: as it stands, @FILE, or - for standard input. It
// is nil where the flag is not given.
func Value(stdin io.Reader, what, flag, given string) (json.RawMessage, error) {
	from := given
	var raw []byte
	var err error
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		from = "standard input"
		raw, err = io.ReadAll(io.LimitReader(stdin, maxBytes+1))
	case strings.HasPrefix(given, "@"):
		from = given[1:]
		var file *os.File
		if file, err = os.Open(from); err == nil {
			raw, err = io.ReadAll(io.LimitReader(file, maxBytes+1))
			file.Close()
		}
	default:
		from, raw = flag, []byte(given)
	}
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "reading %s from %s: %w", what, from, err)
	}
	if len(raw) > maxBytes {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%s from %s has more than %d MiB", what, from, maxBytes>>20)
	}
	value := jsontext.Value(bytes.TrimSpace(raw))
	if len(value) == 0 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s from %s is empty; write {} for an object without members", what, from)
	}
	if err := value.Compact(); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s from %s is not one JSON value: %s; text goes in quotes, or with --set key=value", what, from, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return json.RawMessage(value), nil
}

// Object returns the members of an object, whose numbers stay as they are spelled. No
// input is an object without members.
func Object(raw json.RawMessage) (map[string]any, error) {
	members := map[string]any{}
	if len(raw) == 0 {
		return members, nil
	}
	err := decode(raw, &members)
	if err == nil && members == nil { // null leaves no map
		err = errors.New("it is null")
	}
	return members, err
}

// Spelled returns the object of some members.
func Spelled(members map[string]any) (json.RawMessage, error) {
	return json2.Marshal(members, json2.Deterministic(true))
}

// decode reads an object whose numbers stay as they are spelled.
func decode(raw []byte, into *map[string]any) error {
	numbers := json2.UnmarshalFromFunc(func(dec *jsontext.Decoder, value *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported // tells the decoder to read the value in its own way
		}
		number, err := dec.ReadValue()
		*value = number.Clone()
		return err
	})
	return json2.Unmarshal(raw, into, json2.WithUnmarshalers(numbers))
}
