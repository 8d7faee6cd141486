package mortise

import (
	"encoding/json"
	"reflect"
)

// SchemaOf returns the schemas of what the codec writes for a type, and of what it reads.
func SchemaOf(t reflect.Type) (writes, reads []byte, err error) {
	spell := func(s *shape) []byte {
		all := s.schema()
		if all == nil {
			return []byte("{}")
		}
		var raw []byte
		if raw, err = json.Marshal(all); err != nil {
			return nil
		}
		return raw
	}
	return spell(writtenShape(t)), spell(readShape(t)), err
}

// Missing returns the required property that a value lacks.
func Missing(t reflect.Type, raw []byte) string { return readShape(t).missing(raw) }

var (
	Encode = encode
	Decode = decode
)
