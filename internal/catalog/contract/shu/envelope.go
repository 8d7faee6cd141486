package shu

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// An Answer is how the contract answers a call.
type Answer struct {
	HTTP int            `json:"http_status"`
	Body map[string]any `json:"body"`
}

// Envelope implements [contract.Enveloper].
func (Contract) Envelope(op *plugin.Operation, res plugin.Result, err error, debug bool) any {
	return Envelope(op, res, err, debug)
}

// Envelope spells the answer of an operation: whatever the plugin returned or
// raised is {"data": {status, data, error}} with status 200, an ActionResult for
// an action; what the host refused before or after is {"error": ...} with the
// status of the refusal. op is nil where it is not known. Diagnostics are shown
// only where debug is asked for.
func Envelope(op *plugin.Operation, res plugin.Result, err error, debug bool) Answer {
	acts := op != nil && slices.Contains(op.PolicyTags, ActionTag)
	switch {
	case err != nil:
		return failure(acts, res, plugin.AsError(err), debug)
	case res.Status == plugin.PendingApproval:
		body := map[string]any{"status": "pending_approval", "action_id": res.CallID}
		if res.Approval != nil {
			body["preview"], body["approval_id"] = orNull(res.Approval.Preview), res.Approval.ID
		}
		return Answer{http.StatusAccepted, data(body)}
	case res.Status == plugin.InProgress || res.Status == plugin.Unknown:
		return Answer{http.StatusAccepted, data(map[string]any{"status": string(res.Status), "call_id": res.CallID})}
	case acts:
		body := map[string]any{"status": "ok", "action_id": actionID(res), "result": orNull(res.Data)}
		beside(body, res, debug)
		return Answer{http.StatusOK, data(body)}
	case res.Returned == plugin.ReturnedBare:
		return Answer{http.StatusOK, map[string]any{"data": orNull(res.Data)}}
	case res.Returned == plugin.ReturnedNone:
		return Answer{http.StatusOK, data(map[string]any{"status": nil, "data": nil, "error": nil})}
	}
	body := members(res, debug)
	if body == nil {
		body = map[string]any{"status": "success", "data": orNull(res.Data), "error": nil}
		beside(body, res, debug)
	}
	return Answer{http.StatusOK, data(body)}
}

// members is the dict that a plugin returned, with all its members and no others,
// nil where it returned none. Diagnostics are gated as those of any result.
func members(res plugin.Result, debug bool) map[string]any {
	given, order, isObject := object(res.Members)
	if !isObject {
		return nil
	}
	body := map[string]any{}
	for _, name := range order {
		body[name] = given[name]
	}
	if _, has := given["data"]; has {
		body["data"] = orNull(res.Data)
	}
	if !debug {
		delete(body, "diagnostics")
	}
	return body
}

func data(body map[string]any) map[string]any { return map[string]any{"data": body} }

// failure spells why there is no result.
func failure(acts bool, res plugin.Result, e *plugin.Error, debug bool) Answer {
	said, known := spellings[e.Code]
	if !known {
		said = spellings[plugin.CodeInternal]
	}
	if !fromPlugin(e) {
		if e.Code == plugin.CodeDisabled && strings.Contains(string(e.Details), plugin.ReasonSubscription) {
			said = spelling{plugin.ReasonSubscription, http.StatusForbidden}
		}
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
	if returned := members(res, debug); !acts && e.Code != plugin.CodeDependencyMissing {
		maps.DeleteFunc(returned, func(name string, value any) bool { // a reason that the plugin left out is said
			raw, isRaw := value.(jsontext.Value)
			return name == "error" && isRaw && raw.Kind() == 'n'
		})
		maps.Copy(body, returned)
	}
	return Answer{http.StatusOK, data(body)}
}

// fromPlugin reports whether an error is what the plugin returned or raised, and
// not the host's refusal. What serves a plugin gives its errors a code of their own.
func fromPlugin(e *plugin.Error) bool {
	switch e.Code {
	case plugin.CodePluginError:
		return true
	case plugin.CodeTimeout, plugin.CodeDependencyMissing:
		return e.PluginCode != ""
	}
	return false
}

// refusal spells what the host itself refuses: "the host returns HTTP 500 with
// an error envelope" (Error Surfaces: Output Validation). One of 403 has its own
// code, and a text for a message.
func refusal(res plugin.Result, e *plugin.Error, said spelling) Answer {
	var given map[string]any
	if len(e.Details) > 0 {
		_ = json.Unmarshal(e.Details, &given) // an object, or nothing to show
	}
	failed := map[string]any{"code": fmt.Sprintf("HTTP_%d", said.http), "details": map[string]any{}}
	if said.http >= http.StatusInternalServerError {
		failed["error_id"] = "ERR-" + res.CallID
	}
	if said.http == http.StatusForbidden {
		failed["code"], failed["message"] = said.word, e.Message
		if e.Code == plugin.CodeMissingSecrets {
			name, _, _ := strings.Cut(res.Operation, "/")
			failed["details"] = map[string]any{"plugin": name, "missing_secrets": given["missing"]}
		}
		return Answer{said.http, map[string]any{"error": failed}}
	}
	message := map[string]any{}
	maps.Copy(message, given)
	message["error"], message["message"] = said.word, e.Message
	if e.Code == plugin.CodeRateLimited && given["provider"] != nil {
		message["error"] = "provider_concurrency_limited"
	}
	if wait := int64(math.Ceil(e.RetryAfter.Seconds())); e.RetryAfter > 0 {
		switch e.Code {
		case plugin.CodeBudgetExceeded:
			setDefault(message, "reset_in", wait)
			setDefault(message, "period", period(e.RetryAfter))
		default:
			setDefault(message, "retry_after", wait)
		}
	}
	failed["message"] = message
	return Answer{said.http, map[string]any{"error": failed}}
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
