package adapter

import (
	"context"
	"encoding/json"
	"sync"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A Request is what an adapter makes of an event (kernel contracts, 5.5.1). It
// has no way to name rights, a tenant or a principal of this host.
type Request struct {
	Intent struct {
		Type    string         `json:"type"`
		Payload jsontext.Value `json:"payload"`
	} `json:"intent"`
	Principal      External       `json:"principal"`
	Context        jsontext.Value `json:"context"`
	Constraints    jsontext.Value `json:"constraints"`
	IdempotencyKey string         `json:"idempotency_key"` // the same for every delivery of the same event; "" for none
	Metadata       struct {
		Correlation jsontext.Value `json:"correlation_id"`
	} `json:"metadata"`
}

// An External is the identity of a user in another system.
type External struct {
	Provider   string `json:"provider"`
	ExternalID string `json:"external_id"`
}

// requestSchema is the one schema of what adapters make of events.
var requestSchema = sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(protocol.SubmitRequest) })

// ParseRequest reads what an adapter returned. The error is invalid_output, and
// names the place by JSON pointer.
func ParseRequest(output json.RawMessage) (*Request, error) {
	s, err := requestSchema()
	if err != nil {
		return nil, err
	}
	if err := s.Check(context.Background(), output); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "what it makes of the event %w", err)
	}
	req := &Request{}
	if err := json2.Unmarshal(output, req); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "what it makes of the event: %w", err)
	}
	return req, nil
}

// input is what the agent is given.
func (req *Request) input() (json.RawMessage, error) {
	in := plan.Request{Context: req.Context, Constraints: req.Constraints}
	var err error
	if in.Intent, err = json2.Marshal(req.Intent); err != nil {
		return nil, err
	}
	raw, err := json2.Marshal(in)
	return json.RawMessage(raw), err
}

// key tells one event of one adapter from every other.
func (req *Request) key(operation string) string {
	if req.IdempotencyKey == "" {
		return ""
	}
	return operation + ":" + req.IdempotencyKey
}

// correlationPattern is what an id of another system may look like here.
var correlationPattern = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// correlation is the other system's id for what this belongs to, if it gives
// one that can be told from other text, and otherwise usual.
func (req *Request) correlation(usual string) string {
	var id string
	if err := json2.Unmarshal(req.Metadata.Correlation, &id); err != nil || !correlationPattern.MatchString(id) {
		return usual
	}
	return id
}
