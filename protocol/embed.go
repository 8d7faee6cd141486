package protocol

import "embed"

// Source is the source of this package. A new plugin in Go gets a copy of it,
// so that it builds where this module cannot be fetched.
//
//go:embed *.go
var Source embed.FS

// AgentOutput is the JSON Schema of what an agent answers.
//
//go:embed schemas/agent_output.schema.json
var AgentOutput []byte

// SubmitRequest is the JSON Schema of what an adapter makes of an external event.
//
//go:embed schemas/kernel_submit_request.schema.json
var SubmitRequest []byte
