package mortise

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The codec is package json (v2) with one addition: a [time.Duration], which has
// no JSON form there, is a string such as "1m30s". What a type looks like under
// these rules is what [shapeOf] describes.
var codec = json.JoinOptions(
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d *time.Duration) error {
		return enc.WriteToken(jsontext.String(d.String()))
	})),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, d *time.Duration) error {
		var text *string
		if err := json.UnmarshalDecode(dec, &text); err != nil {
			return err
		}
		if *d = 0; text == nil { // null is the zero value, as everywhere
			return nil
		}
		read, err := time.ParseDuration(*text)
		*d = read
		return err
	})),
)

// encode writes a value of the plugin's.
func encode(value any) ([]byte, error) { return json.Marshal(value, codec) }

// decode reads a value for the plugin. Members that it does not name are passed over.
func decode(raw []byte, into any) error { return json.Unmarshal(raw, into, codec) }

// decodeInput reads an operation's input, and refuses what the schema of its type
// refuses.
func decodeInput[In any](s *shape, input jsontext.Value) (in In, err error) {
	if raw, ok := any(&in).(*jsontext.Value); ok {
		*raw = input
	} else if err := json.Unmarshal(input, &in, codec, json.RejectUnknownMembers(true)); err != nil {
		return in, &Error{code: "invalid_input", Message: err.Error()}
	} else if missing := s.missing(input); missing != "" {
		return in, &Error{code: "invalid_input", Message: "missing property " + missing}
	}
	return in, nil
}
