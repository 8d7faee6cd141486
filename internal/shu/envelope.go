package shu

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/registry/dialect"
	"github.com/mortise-dev/mortise/plugin"
)

// An Answer is how the contract answers a call.
type Answer struct {
	HTTP int            `json:"http_status"`
	Body map[string]any `json:"body"`
}

// Envelope spells the answer of an operation: a ToolResult for whatever came of
// the plugin, an ActionResult for an action, and an error of HTTP for what the
// host refused before or after. op is nil where it is not known. Diagnostics are
// shown only where debug is asked for.
func Envelope(op *plugin.Operation, res plugin.Result, err error, debug bool) Answer {
	acts := op != nil && slices.Contains(op.PolicyTags, dialect.ActionTag)
	switch {
	case err != nil:
		return failure(acts, res, plugin.AsError(err), debug)
	case res.Status == plugin.PendingApproval:
		body := map[string]any{"status": "pending_approval", "action_id": res.CallID}
		if res.Approval != nil {
			body["preview"], body["approval_id"] = orNull(res.Approval.Preview), res.Approval.ID
		}
		return Answer{http.StatusAccepted, body}
	case res.Status == plugin.InProgress || res.Status == plugin.Unknown:
		return Answer{http.StatusAccepted, map[string]any{"status": string(res.Status), "call_id": res.CallID}}
	case acts:
		body := map[string]any{"status": "ok", "action_id": actionID(res), "result": orNull(res.Data)}
		beside(body, res, debug)
		return Answer{http.StatusOK, body}
	}
	body := map[string]any{"status": "success", "data": orNull(res.Data)}
	beside(body, res, debug)
	return Answer{http.StatusOK, body}
}

// failure spells why there is no result.
func failure(acts bool, res plugin.Result, e *plugin.Error, debug bool) Answer {
	said, known := spellings[e.Code]
	if !known {
		said = spellings[plugin.CodeInternal]
	}
	if e.Code == plugin.CodePluginError && e.PluginCode == string(plugin.CodeOutputTooLarge) {
		said = spellings[plugin.CodeOutputTooLarge] // its result did not come as far as the host
	}
	if said.word != executeError && e.Code != plugin.CodeTimeout {
		return refusal(res, e, said)
	}
	word := said.word
	if e.Code == plugin.CodePluginError && e.PluginCode != "" {
		word = e.PluginCode
	}
	status := "error"
	if e.Code == plugin.CodeTimeout && !acts {
		status = "timeout"
	}
	failed := map[string]any{"code": word, "message": e.Message}
	if len(e.Details) > 0 && string(e.Details) != "{}" {
		failed["details"] = jsontext.Value(e.Details)
	}
	body := map[string]any{"status": status, "error": failed}
	if acts {
		body["action_id"] = res.CallID
	} else {
		body["data"] = orNull(res.Data)
	}
	beside(body, res, debug)
	return Answer{said.http, body}
}

// refusal spells what the host itself refuses: "the host returns HTTP 500 with
// an error envelope" (Error Surfaces: Output Validation).
func refusal(res plugin.Result, e *plugin.Error, said spelling) Answer {
	message := map[string]any{}
	if len(e.Details) > 0 {
		_ = json.Unmarshal(e.Details, &message) // an object, or nothing to show
	}
	message["error"], message["message"] = said.word, e.Message
	if wait := int64(math.Ceil(e.RetryAfter.Seconds())); e.RetryAfter > 0 {
		switch e.Code {
		case plugin.CodeBudgetExceeded:
			setDefault(message, "reset_in", wait)
			setDefault(message, "period", period(e.RetryAfter))
		default:
			setDefault(message, "retry_after", wait)
		}
	}
	return Answer{said.http, map[string]any{"error": map[string]any{
		"code": fmt.Sprintf("HTTP_%d", said.http), "message": message, "details": map[string]any{}, "error_id": "ERR-" + res.CallID,
	}}}
}

// period names the time after which a budget is filled again.
func period(left time.Duration) string {
	if left <= 24*time.Hour {
		return "daily"
	}
	return "monthly"
}

func setDefault(members map[string]any, key string, value any) {
	if _, there := members[key]; !there {
		members[key] = value
	}
}

// beside adds the members that stand beside the data.
func beside(body map[string]any, res plugin.Result, debug bool) {
	cost := map[string]any{}
	for _, name := range []string{"tokens", "api_calls"} {
		if figure, counted := res.Metrics[name]; counted {
			cost[name] = figure
		}
	}
	if len(cost) > 0 {
		body["cost"] = cost
	}
	for name, raw := range map[string]json.RawMessage{"skips": res.Skips, "citations": res.Citations, "next_cursor": res.NextCursor} {
		if len(raw) > 0 {
			body[name] = jsontext.Value(raw)
		}
	}
	if debug && len(res.Diagnostics) > 0 {
		body["diagnostics"] = jsontext.Value(res.Diagnostics)
	}
}

// actionID returns what the plugin calls the action, or else the call.
func actionID(res plugin.Result) string {
	var details struct {
		ActionID string `json:"action_id"`
	}
	if json.Unmarshal(res.Details, &details) == nil && details.ActionID != "" {
		return details.ActionID
	}
	return res.CallID
}

func orNull(raw json.RawMessage) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value("null")
	}
	return jsontext.Value(raw)
}
