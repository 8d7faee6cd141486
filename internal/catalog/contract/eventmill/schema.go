package eventmill

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/schema"
)

// schemaOf returns the schema that stands here or in the file that is named
// here, or in the one called usual. One that is not there, or that cannot be
// used, is none: it is advice.
func schemaOf(v contract.Value, usual string) json.RawMessage {
	name, isPath := v.Is.(string)
	switch is := v.Is.(type) {
	case *contract.Mapping:
		raw := contract.ToJSON(is)
		if _, err := schema.Compile(raw); err != nil {
			v.Note("the schema is left out %v", err)
			return nil
		}
		return contract.Compact(raw)
	case nil, string:
	default:
		v.Note("a path or a JSON Schema belongs here, not %s", v.Kind())
	}
	if !isPath || name == "" {
		name = usual
	}
	raw, err := v.Page.Files.Schema(name)
	if err != nil {
		v.Note("%s: %v; nothing is said of what fits", contract.Clip(name), err)
		return nil
	}
	return raw
}

// outOfEnvelope returns the schema of a tool's result alone: the contract's
// describes the ToolResult around it.
func outOfEnvelope(v contract.Value, raw json.RawMessage) json.RawMessage {
	inner, wrapped := contract.Unwrap(raw, "result", "ok", "error_code", "output_artifacts")
	if !wrapped {
		return raw
	}
	if _, err := schema.Compile(inner); err != nil {
		v.Note("result does not stand for itself in it: %v", err)
		return nil
	}
	return inner
}
