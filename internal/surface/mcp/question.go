package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of the questions of an operation.
const (
	maxQuestions = 16
	maxQuestion  = 4096      // bytes of a message
	maxState     = 16 << 10  // bytes of a state
	stateLife    = time.Hour // that a client may take to answer
)

// An inquiry is what an operation returns that asks its caller something: questions, and what
// it wants to know again when they are answered.
type inquiry struct {
	Ask   map[string]question `json:"ask"`
	State string              `json:"state,omitzero"`
}

// A question is a form of a message and of flat members.
type question struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema"`
}

// An answer is what the user did with a form, as the operation gets it.
type answer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// A round is one call of an operation that may ask: what a client brings to it.
type round struct {
	responses    sdk.InputResponseMap
	state        string
	capabilities *sdk.ClientCapabilities
	newest       bool
}

// asks reports whether an operation may return questions.
func asks(t *plugin.Target) bool { return t != nil && t.Operation.MCP != nil && t.Operation.MCP.Asks }

// statePlace is what a state is bound to: it is of no use to another operation, another
// version of it, or with other arguments.
func statePlace(t *plugin.Target, arguments json.RawMessage) ([]string, error) {
	hash, err := canon.Hash(arguments)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the arguments: %v", err)
	}
	return []string{"question", t.Name(), t.Manifest.Version, t.Package.Digest, hash}, nil
}

// answered returns the arguments of an operation with what the user answered, and the key of
// the call. The members with the answers are not the caller's to write.
func (s *session) answered(t *plugin.Target, arguments json.RawMessage, key string, r round) (json.RawMessage, string, error) {
	if !asks(t) {
		return arguments, key, nil
	}
	var members map[string]json.RawMessage
	if err := json2.Unmarshal(arguments, &members); err != nil {
		return arguments, key, nil // the kernel says what is wrong with them
	}
	for _, own := range []string{plugin.AskAnswers, plugin.AskState} {
		if _, given := members[own]; given {
			return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "%s is what the user answers, and no argument", own)
		}
	}
	if len(r.responses) == 0 && r.state == "" {
		return arguments, key, nil
	}
	answers := map[string]answer{}
	for name, given := range r.responses {
		form, is := given.(*sdk.ElicitResult)
		if !is || form == nil || !slices.Contains([]string{"accept", "decline", "cancel"}, form.Action) {
			return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "the response %.64q is no answer to a form", name)
		}
		a := answer{Action: form.Action}
		if form.Action == "accept" {
			a.Content = form.Content
		}
		answers[name] = a
	}
	if len(answers) > maxQuestions {
		return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "there are %d responses; there may be %d", len(answers), maxQuestions)
	}
	state := ""
	if r.state != "" {
		place, err := statePlace(t, arguments)
		if err != nil {
			return nil, "", err
		}
		raw, err := s.api.Unseal(r.state, place...)
		if err != nil {
			return nil, "", err
		}
		state = string(raw)
	}
	full := maps.Clone(members)
	if full == nil {
		full = map[string]json.RawMessage{}
	}
	var err error
	if full[plugin.AskAnswers], err = json.Marshal(answers); err != nil {
		return nil, "", err
	}
	if state != "" {
		if full[plugin.AskState], err = json.Marshal(state); err != nil {
			return nil, "", err
		}
	}
	raw, err := json.Marshal(full)
	if err != nil {
		return nil, "", err
	}
	if key != "" { // each round is a call of its own
		sum := sha256.Sum256(append([]byte(key+"\x00"), raw...))
		key = hex.EncodeToString(sum[:])
	}
	return raw, key, nil
}

// inquiryOf returns what an operation asks, nil where it has its answer. said is what its
// result has as data.
func inquiryOf(t *plugin.Target, res *plugin.Result, err error) (*inquiry, error) {
	if err != nil || !asks(t) || res.Status != plugin.Succeeded {
		return nil, nil
	}
	var probe map[string]json.RawMessage
	if json.Unmarshal(res.Data, &probe) != nil || probe["ask"] == nil {
		return nil, nil
	}
	var asked inquiry
	if err := json2.Unmarshal(res.Data, &asked, json2.RejectUnknownMembers(true)); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the questions of the operation: %v", err)
	}
	if n := len(asked.Ask); n == 0 || n > maxQuestions || len(asked.State) > maxState {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "an operation asks 1 to %d questions, with a state of at most %d bytes", maxQuestions, maxState)
	}
	for name, q := range asked.Ask {
		if err := q.check(); err != "" {
			return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the question %.64q: %s", name, err)
		}
	}
	return &asked, nil
}

// check returns what is wrong with a question.
func (q question) check() string {
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if q.Message == "" || len(q.Message) > maxQuestion {
		return "its message is a text that is not too long"
	}
	if json.Unmarshal(q.Schema, &schema) != nil || schema.Type != "object" || len(schema.Properties) == 0 {
		return "its schema is that of an object with properties"
	}
	for _, p := range schema.Properties {
		var member struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(p, &member) != nil || !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, member.Type) {
			return "its properties are texts, numbers, truth values and choices"
		}
	}
	return ""
}

// requests are the questions of an operation as a client is asked them, and the state that it
// brings back. Each says which operation asks: to a client all of them are one server.
func (s *session) requests(ctx context.Context, t *plugin.Target, arguments json.RawMessage, asked *inquiry, r round) (sdk.InputRequestMap, string, error) {
	if !r.newest {
		return nil, "", plugin.Errorf(plugin.CodeNeedsContext, "%s asks its user something, which clients are asked from revision %s on", t.Name(), newestRevision)
	}
	if c := r.capabilities; c == nil || c.Elicitation == nil || c.Elicitation.Form == nil && c.Elicitation.URL != nil {
		data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{}}})
		return nil, "", &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: t.Name() + " asks its user something, and the client declares no elicitation", Data: data}
	}
	all := sdk.InputRequestMap{}
	for name, q := range asked.Ask {
		all[name] = &sdk.ElicitParams{Mode: "form", Message: t.Name() + " asks: " + q.Message, RequestedSchema: q.Schema}
	}
	if asked.State == "" {
		return all, "", nil
	}
	place, err := statePlace(t, arguments)
	if err != nil {
		return nil, "", err
	}
	if err := s.api.Flush(ctx, false); err != nil { // the key is there once something is on record
		return nil, "", err
	}
	state, err := s.api.Seal([]byte(asked.State), stateLife, place...)
	return all, state, err
}

// withoutAnswers is a schema of arguments without what only the host fills in.
func withoutAnswers(schema json.RawMessage) json.RawMessage {
	var top map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(schema, &top) != nil || json.Unmarshal(top["properties"], &properties) != nil {
		return schema
	}
	delete(properties, plugin.AskAnswers)
	delete(properties, plugin.AskState)
	raw, err := json.Marshal(properties)
	if err != nil {
		return schema
	}
	top["properties"] = raw
	if raw, err = json.Marshal(top); err != nil {
		return schema
	}
	return raw
}

// inquire answers a call of a tool with the questions of its operation.
func (s *session) inquire(ctx context.Context, r *sdk.CallToolRequest, t *plugin.Target, arguments json.RawMessage, asked *inquiry, brought round, call string) (sdk.Result, error) {
	requests, state, err := s.requests(ctx, t, arguments, asked, brought)
	if _, is := err.(*jsonrpc.Error); is {
		return nil, err
	}
	if err != nil {
		return s.result(r, t, plugin.Result{CallID: call}, err), nil
	}
	out := new(sdk.CallToolResult)
	if err := json.Unmarshal([]byte(`{"resultType":"input_required"}`), out); err != nil {
		return nil, err
	}
	out.Meta, out.InputRequests, out.RequestState = sdk.Meta{callMeta: call}, requests, state
	return out, nil
}
