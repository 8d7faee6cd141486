package shu

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/registry/dialect"
	"github.com/mortise-dev/mortise/plugin"
)

// Params makes of what somebody wrote the parameters of a call of t, and what of
// it the host alone decides. That is the same wherever the call comes from: a
// command, or a feed. Whatever is no plugin of Shu has its input as it was
// written. debug reports whether the call is to show its diagnostics.
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
