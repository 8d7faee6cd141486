package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Members of the _meta of a result.
const (
	callMeta  = "dev.mortise/call-id"
	errorMeta = "dev.mortise/error"
	moreMeta  = "dev.mortise/result"
)

// newestRevision is the first whose results may be any value.
const newestRevision = "2026-07-28"

// newest reports whether a request is of that revision or a later one.
func (s *session) newest(r interface{ ProtocolVersion() string }) bool {
	return r.ProtocolVersion() >= newestRevision
}

// A failure is why a call has no result.
type failure struct {
	Code       plugin.Code     `json:"code"`
	PluginCode string          `json:"plugin_code,omitempty"`
	Message    string          `json:"message"`
	Hint       string          `json:"hint,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Retryable  bool            `json:"retryable,omitempty"`
	RetryAfter float64         `json:"retry_after_seconds,omitempty"`
	CallID     string          `json:"call_id,omitempty"`
}

// A standing is what is answered of a call that has not ended.
type standing struct {
	Status    plugin.Status   `json:"status"`
	CallID    string          `json:"call_id"`
	URL       string          `json:"url,omitempty"`
	Why       string          `json:"why,omitempty"`
	Preview   json.RawMessage `json:"preview,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
}

// result is how a call ended or stands, as a client reads it. Refusals of the host and errors
// of plugins are results too, so that a model hears what it did wrong.
func (s *session) result(r interface{ ProtocolVersion() string }, t *plugin.Target, res plugin.Result, err error) *sdk.CallToolResult {
	switch {
	case err != nil && res.Status != plugin.Unknown:
		return s.failure(res, err)
	case res.Status == plugin.Unknown || !res.Status.Ended():
		return s.standing(res)
	}
	out := &sdk.CallToolResult{Meta: sdk.Meta{callMeta: res.CallID}, Content: []sdk.Content{}}
	for _, line := range []string{res.Summary, res.Message} {
		if line != "" {
			out.Content = append(out.Content, &sdk.TextContent{Text: line})
		}
	}
	add(out.Meta, map[string]any{"artifacts": res.Artifacts, "labels": res.Labels, "citations": res.Citations, "next_cursor": res.NextCursor})
	if returnsContent(t) {
		content, err := contentOf(res.Data)
		if err != nil {
			return s.failure(res, err)
		}
		out.Content = append(out.Content, content...)
		return out
	}
	data := bytes.TrimSpace(res.Data)
	if len(data) == 0 {
		data = []byte("null")
	}
	var text bytes.Buffer
	if json.Compact(&text, data) != nil {
		text.Write(data)
	}
	out.Content = append(out.Content, &sdk.TextContent{Text: text.String()})
	if data[0] == '{' || s.newest(r) && string(data) != "null" {
		out.StructuredContent = json.RawMessage(text.Bytes())
	}
	return out
}

// add adds the members of a result that the protocol has no place for to its _meta.
func add(meta sdk.Meta, members map[string]any) {
	more := map[string]any{}
	for name, value := range members {
		if raw, err := json.Marshal(value); err == nil && string(raw) != "null" && string(raw) != `""` {
			more[name] = json.RawMessage(raw)
		}
	}
	if len(more) > 0 {
		meta[moreMeta] = more
	}
}

// standing is the answer of a call that waits for a person, or that goes on: no error, so that
// a model does not try again.
func (s *session) standing(res plugin.Result) *sdk.CallToolResult {
	st := standing{Status: res.Status, CallID: res.CallID}
	text := fmt.Sprintf("The call %s is still at work. Do not call the tool again: call %s with its call_id for the outcome.", res.CallID, callResult)
	switch {
	case res.Status == plugin.Unknown:
		text = fmt.Sprintf("It is not known whether the call %s had its effect. Do not call the tool again: an operator of the host has to look. %s tells what they found out.", res.CallID, callResult)
	case res.Status == plugin.PendingApproval:
		text = fmt.Sprintf("The call %s waits for a person's approval and has done nothing yet. Do not call the tool again: tell the user, and call %s with its call_id for the outcome.", res.CallID, callResult)
		if a := res.Approval; a != nil {
			st.Why, st.Preview = a.Why, a.Preview
			if !a.ExpiresAt.IsZero() {
				at := a.ExpiresAt.UTC()
				st.ExpiresAt = &at
			}
			if s.Base != "" {
				st.URL = s.Base + "/decide/" + a.ID
				text += " The person decides at " + st.URL
			}
		}
	}
	meta := sdk.Meta{callMeta: res.CallID}
	add(meta, map[string]any{"labels": res.Labels})
	return structured(meta, text, st)
}

// structured is a result that is the host's own.
func structured(meta sdk.Meta, text string, value any) *sdk.CallToolResult {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("{}")
	}
	out := &sdk.CallToolResult{Meta: meta, StructuredContent: json.RawMessage(raw)}
	if text != "" {
		out.Content = append(out.Content, &sdk.TextContent{Text: text})
	}
	out.Content = append(out.Content, &sdk.TextContent{Text: string(raw)})
	return out
}

// failure is the answer of a call that was refused, or failed. It is no structured result: the
// schema of a tool is of what it answers where it succeeds.
func (s *session) failure(res plugin.Result, err error) *sdk.CallToolResult {
	f := s.failureOf(err)
	f.CallID = res.CallID
	raw, err := json.Marshal(f)
	if err != nil {
		f.Details = nil
		raw, _ = json.Marshal(f)
	}
	code := string(f.Code)
	if f.PluginCode != "" {
		code += " (" + f.PluginCode + ")"
	}
	text := code + ": " + f.Message
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	meta := sdk.Meta{errorMeta: json.RawMessage(raw)}
	if f.CallID != "" {
		meta[callMeta] = f.CallID
	}
	add(meta, map[string]any{"labels": res.Labels})
	return &sdk.CallToolResult{Meta: meta, IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// failureOf is an error as a client may read it. What is wrong inside the host is for its log.
func (s *session) failureOf(err error) failure {
	if plugin.CodeOf(err) == plugin.CodeInternal {
		s.Log.Error("a call failed inside the host", "cause", err.Error())
	}
	e := host.AsError(err)
	if e.Code == plugin.CodeInternal {
		return failure{Code: e.Code, Message: "something went wrong inside the host; its log says what"}
	}
	message, hint, advised := strings.Cut(e.Message, "; 'mortise ")
	if advised {
		hint = "At the command line of the host: 'mortise " + hint
	}
	if own := advice[e.Code]; hint == "" {
		hint = own
	}
	return failure{Code: e.Code, PluginCode: e.PluginCode, Message: message, Hint: hint, Details: e.Details, Retryable: e.Retryable, RetryAfter: e.RetryAfter.Seconds()}
}

// advice is what a model does about a refusal.
var advice = map[plugin.Code]string{
	plugin.CodeInvalidInput:   "Correct the arguments by the input schema and call again.",
	plugin.CodePolicyDenied:   "Do not try again: the policy of the host does not let this caller do it. Tell the user.",
	plugin.CodeScopeDenied:    "Do not try again: the caller lacks a permission. Tell the user.",
	plugin.CodeRateLimited:    "Try again later.",
	plugin.CodeOverloaded:     "Try again later.",
	plugin.CodeOutcomeUnknown: "Do not try again: it is not known whether the effect happened. Tell the user.",
}

// failed is an error of the protocol.
func (s *session) failed(err error) error {
	f := s.failureOf(err)
	raw, _ := json.Marshal(f)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: string(f.Code) + ": " + f.Message, Data: raw}
}

func unknownTool(name string) error {
	return wrongParams(fmt.Sprintf("unknown tool %q", strings.ToValidUTF8(name[:min(len(name), maxName)], "?")))
}

func wrongParams(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

func unknownMethod(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not served: lists have a time to live"}
}
