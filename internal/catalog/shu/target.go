package shu

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/catalog/registry/dialect"
	"github.com/mortise-dev/mortise/plugin"
)

// Params splits an input as a user wrote it into the parameters of a call of t and the
// part that only the host interprets. The rules are the same for every source of calls:
// a command, or a feed. The input of an operation that is not a plugin of Shu is
// unchanged. debug reports whether the call is to show its diagnostics.
func Params(t *plugin.Target, input json.RawMessage) (params, overlay json.RawMessage, debug bool, err error) {
	if t == nil || t.Manifest.Dialect != dialect.Shu {
		return input, nil, false, nil
	}
	if params, overlay, err = Split(input, dialect.Unchecked(t.Operation)); err != nil {
		return nil, nil, false, err
	}
	params, debug = Debug(t.Operation, params, overlay)
	params, err = Named(t.Operation, params)
	return params, overlay, debug, err
}
