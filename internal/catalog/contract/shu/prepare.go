package shu

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

// Prepare implements [contract.Preparer]. The rules are the same for every source of
// calls: a command, or a feed.
func (Contract) Prepare(op *plugin.Operation, input json.RawMessage) (params, overlay json.RawMessage, debug bool, err error) {
	if params, overlay, err = Split(input, Unchecked(op)); err != nil {
		return nil, nil, false, err
	}
	params, debug = Debug(op, params, overlay)
	params, err = Named(op, params)
	return params, overlay, debug, err
}
