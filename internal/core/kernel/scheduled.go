package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/plugin"
)

// scheduled adds the member that tells a plugin which feed calls it. Its schema
// was looked at before, and need not know the member.
func scheduled(member string, input, overlay json.RawMessage) json.RawMessage {
	var o struct {
		Exec struct {
			Schedule string `json:"schedule_id"`
		} `json:"exec"`
	}
	members := map[string]json.RawMessage{}
	if len(overlay) == 0 || json.Unmarshal(overlay, &o) != nil || o.Exec.Schedule == "" || json.Unmarshal(input, &members) != nil || members == nil || members[member] != nil {
		return input
	}
	id, err := json.Marshal(o.Exec.Schedule)
	if err != nil {
		return input
	}
	members[member] = id
	if with, err := json.Marshal(members); err == nil {
		return with
	}
	return input
}

// schemaLast reports whether what policy refuses, and what a call lacks, is said
// before what the schema refuses, as the contract of the plugin has it. Input
// that does not fit its schema gets no further than that, whatever policy says.
func (a *attempt) schemaLast() bool { return a.target.Manifest.Contract.SchemaLast }

// sized adds to a refusal how many bytes there were and how many there may be.
func sized(err error, size, limit int) error {
	e := *plugin.AsError(err)
	e.Details = fmt.Appendf(nil, `{"limit":%d,"size":%d}`, limit, size)
	return &e
}

// unsent gives a result that was too long for the wire the host's code for it,
// where a shim serves the plugin. The shim says so, in a code that the plugin's own
// errors do not have: whatever code a plugin returns stays the plugin's.
func (a *attempt) unsent(err error) error {
	e := plugin.AsError(err)
	if e == nil || !a.target.Manifest.Contract.ShimLimits || e.Code != plugin.CodeLimitExceeded || e.PluginCode != string(plugin.CodeOutputTooLarge) {
		return err
	}
	own := *e
	own.Code, own.PluginCode = plugin.CodeOutputTooLarge, ""
	return &own
}

// verbatim reports whether the contract of the plugin passes its answer on without
// a check of the output schema.
func (a *attempt) verbatim(res *plugin.Result) bool {
	return res.Returned != "" && a.target.Manifest.Contract.Verbatim
}

// partial reports whether data stands beside a plugin's own error: where schemas
// are advisory, or the contract shows the data of any result. No schema promises anything of it.
func (a *attempt) partial(err error, size int) bool {
	own := plugin.CodeOf(err) == plugin.CodePluginError
	if a.target.Manifest.Contract.PartialData {
		own = own || plugin.CodeOf(err) == plugin.CodeTimeout && plugin.AsError(err).PluginCode != ""
	} else if !a.target.Operation.Advisory {
		return false
	}
	_, most := a.target.Manifest.Bounds()
	return own && size <= a.limits.output && (most == 0 || size <= most)
}
