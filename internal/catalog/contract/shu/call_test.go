package shu_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/plugin"
)

func TestTheHostsPartOfTheParameters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ input, params, overlay, err string }{
		{`{"op":"list","n":1.50,"x":null,"__host":{"auth":{"google":{"mode":"user"}}}}`, `{"op":"list","n":1.50}`, `{"auth":{"google":{"mode":"user"}}}`, ""},
		{`{"__schedule_id":"s","inner":{"__host":1,"a":null}}`, `{"__schedule_id":"s","inner":{"__host":1,"a":null}}`, "", ""},
		{`{"__host":null}`, `{}`, "", ""},
		{`{"__host":"x"}`, "", "", "invalid_input: __host is what the host decides about the call: an object belongs there"},
		{`[1]`, `[1]`, "", ""},
		{"", "", "", ""},
	} {
		params, overlay, err := shu.Split(json.RawMessage(c.input), false)
		if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && err != nil || string(params) != c.params || string(overlay) != c.overlay {
			t.Errorf("%s: got %s, %s, %v", c.input, params, overlay, err)
		}
	}
}

func TestDebugIsAskedForByTheCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, params, overlay, rest string
		debug                         bool
	}{
		{`{}`, `{"a":1,"debug":true}`, "", `{"a":1,"debug":true}`, true},
		{`{"additionalProperties":false}`, `{"a":1,"debug":true}`, "", `{"a":1}`, true},
		{`{"additionalProperties":false}`, `{"debug":false}`, `{"debug":true}`, `{}`, true},
		{`{"additionalProperties":false,"properties":{"debug":{}}}`, `{"debug":true}`, "", `{"debug":true}`, true},
		{`{"additionalProperties":false}`, `{"debug":"yes"}`, "", `{"debug":"yes"}`, false},
		{`{}`, `{"debug":false}`, `{"debug":"yes"}`, `{"debug":false}`, false},
		{"", `[]`, `{"debug":true}`, `[]`, true},
		{"", "", "", "", false},
	} {
		rest, debug := shu.Debug(&plugin.Operation{Input: json.RawMessage(c.schema)}, json.RawMessage(c.params), json.RawMessage(c.overlay))
		if string(rest) != c.rest || debug != c.debug {
			t.Errorf("%s %s %s: got %s, %v", c.schema, c.params, c.overlay, rest, debug)
		}
	}
}

func manifest() *plugin.Manifest {
	op := json.RawMessage(`{"properties":{"op":{"enum":["list","get"],"default":"list"}}}`)
	return &plugin.Manifest{Operations: []*plugin.Operation{
		{Name: "execute", Input: op}, {Name: "get", Input: op}, {Name: "list", Input: op}, {Name: "send", PolicyTags: []string{"action"}, Input: json.RawMessage(`{"additionalProperties":false}`)},
	}}
}

func TestTheParametersNameTheOperation(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{`{"op":"get"}`: "get", `{}`: "", "": "", `{"op":"purge"}`: "", `{"op":7}`: "", `[]`: ""} {
		if got := (shu.Contract{}).Operation(manifest(), json.RawMessage(params)); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
	for _, c := range []struct{ op, params, want string }{
		{"get", `{"a":1}`, `{"a":1,"op":"get"}`},
		{"get", "", `{"op":"get"}`},
		{"get", `{"op":"get"}`, `{"op":"get"}`},
		{"get", `{"op":"list"}`, `invalid_input: the parameters say op: "list", and get is called: leave op out, or name that one`},
		{"send", `{"op":"send","to":"a"}`, `{"to":"a"}`},
		{"send", `{"op":"draft"}`, `{"op":"draft"}`}, // an action may have a parameter of that name
		{"send", `7`, `7`},
		{"execute", `{"op":"whatever"}`, `{"op":"whatever"}`},
	} {
		got, err := shu.Named(manifest().Operation(c.op), json.RawMessage(c.params))
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%s %s: got %s, want %s", c.op, c.params, got, c.want)
		}
	}
}

func spell(t *testing.T, a shu.Answer) string {
	t.Helper()
	raw, err := json.Marshal(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return http.StatusText(a.HTTP) + " " + string(raw)
}

func TestTheEnvelope(t *testing.T) {
	t.Parallel()
	send := manifest().Operation("send")
	done := plugin.Result{
		Status: plugin.Succeeded, CallID: "c1", Data: json.RawMessage(`{"a":1}`), Metrics: plugin.Metrics{"tokens": 7, "latency_ms": 3},
		Diagnostics: json.RawMessage(`["d"]`), Skips: json.RawMessage(`[{"id":"1","reason":"too_large"}]`), NextCursor: json.RawMessage(`"n"`),
		Citations: json.RawMessage(`[{"type":"web","ref":"r","label":"l"}]`),
	}
	beside := `"citations":[{"type":"web","ref":"r","label":"l"}],"cost":{"tokens":7},`
	for _, c := range []struct {
		name  string
		op    *plugin.Operation
		res   plugin.Result
		err   error
		debug bool
		want  string
	}{
		{"a success", nil, done, nil, false, `OK {"data":{` + beside + `"data":{"a":1},"error":null,"next_cursor":"n","skips":[{"id":"1","reason":"too_large"}],"status":"success"}}`},
		{"diagnostics on request", nil, plugin.Result{Status: plugin.Succeeded, Diagnostics: json.RawMessage(`["d"]`)}, nil, true, `OK {"data":{"data":null,"diagnostics":["d"],"error":null,"status":"success"}}`},
		{"an action", send, plugin.Result{Status: plugin.Succeeded, CallID: "c1", Data: json.RawMessage(`1`)}, nil, false, `OK {"data":{"action_id":"c1","result":1,"status":"ok"}}`},
		{"its own id", send, plugin.Result{Status: plugin.Succeeded, CallID: "c1", Details: json.RawMessage(`{"action_id":"m7"}`)}, nil, false, `OK {"data":{"action_id":"m7","result":null,"status":"ok"}}`},
		{"an approval", send, plugin.Result{Status: plugin.PendingApproval, CallID: "c1", Approval: &plugin.Pending{ID: "a1", Preview: json.RawMessage(`{"to":"x"}`)}}, nil, false,
			`Accepted {"data":{"action_id":"c1","approval_id":"a1","preview":{"to":"x"},"status":"pending_approval"}}`},
		{"an error of the plugin's own with members of its own", nil, plugin.Result{CallID: "c1", Data: json.RawMessage(`{"n":1}`), Members: json.RawMessage(`{"error":{"code":"c","message":"m","label":[1]}}`)},
			&plugin.Error{Code: plugin.CodePluginError, PluginCode: "c", Message: "m", Details: json.RawMessage(`{"label":[1]}`)}, false,
			`OK {"data":{"data":{"n":1},"error":{"code":"c","message":"m","label":[1]},"status":"error"}}`},
		{"the plugin's own error", nil, plugin.Result{CallID: "c1"}, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "rate_limited", Message: "Provider HTTP error (429): slow down"}, false,
			`OK {"data":{"data":null,"error":{"code":"rate_limited","message":"Provider HTTP error (429): slow down"},"status":"error"}}`},
		{"an exception", nil, plugin.Result{CallID: "c1"}, plugin.Errorf(plugin.CodePluginError, "boom"), false, `OK {"data":{"data":null,"error":{"code":"plugin_execute_error","message":"boom"},"status":"error"}}`},
		{"a timeout", nil, plugin.Result{CallID: "c1"}, plugin.Errorf(plugin.CodeTimeout, "late"), false, `Gateway Timeout {"error":{"code":"HTTP_504","details":{},"error_id":"ERR-c1","message":{"error":"timeout","message":"late"}}}`},
		{"output that breaks its schema", nil, plugin.Result{CallID: "c1"}, plugin.Errorf(plugin.CodeInvalidOutput, "at /a: no"), false,
			`Internal Server Error {"error":{"code":"HTTP_500","details":{},"error_id":"ERR-c1","message":{"error":"output_validation_error","message":"at /a: no"}}}`},
		{"a rate", nil, plugin.Result{CallID: "c1"}, &plugin.Error{Code: plugin.CodeRateLimited, Message: "slow", RetryAfter: 1500 * time.Millisecond}, false,
			`Too Many Requests {"error":{"code":"HTTP_429","details":{},"message":{"error":"rate_limited","message":"slow","retry_after":2}}}`},
		{"a quota", nil, plugin.Result{CallID: "c1"}, &plugin.Error{Code: plugin.CodeBudgetExceeded, Message: "enough", RetryAfter: time.Hour, Details: json.RawMessage(`{"period":"hourly"}`)}, false,
			`Too Many Requests {"error":{"code":"HTTP_429","details":{},"message":{"error":"quota_exceeded","message":"enough","period":"hourly","reset_in":3600}}}`},
		{"no secret", nil, plugin.Result{CallID: "c1", Operation: "p/o"}, &plugin.Error{Code: plugin.CodeMissingSecrets, Message: "set key", Details: json.RawMessage(`{"missing":["key"]}`)}, false,
			`Forbidden {"error":{"code":"missing_secrets","details":{"missing_secrets":["key"],"plugin":"p"},"message":"set key"}}`},
		{"its own timeout, and what it had by then", nil, plugin.Result{CallID: "c1", Data: json.RawMessage(`{"n":1}`)}, &plugin.Error{Code: plugin.CodeTimeout, PluginCode: "timeout", Message: "slept"}, false,
			`OK {"data":{"data":{"n":1},"error":{"code":"timeout","message":"slept"},"status":"timeout"}}`},
		{"a crash", nil, plugin.Result{CallID: "c1"}, plugin.Errorf(plugin.CodeCrashed, "gone"), false,
			`Bad Gateway {"error":{"code":"HTTP_502","details":{},"error_id":"ERR-c1","message":{"error":"plugin_execute_error","message":"gone"}}}`},
	} {
		if got := spell(t, shu.Envelope(c.op, c.res, c.err, c.debug)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Every code of the host has a spelling, and the statuses are those of the table
// that all contracts share.
func TestEveryCodeIsSpelled(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../protocol/codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var codes []struct {
		Code plugin.Code `json:"code"`
	}
	if err := json.Unmarshal(raw, &codes); err != nil || len(codes) < 40 {
		t.Fatalf("%d codes, %v", len(codes), err)
	}
	want := map[plugin.Code]string{
		"invalid_input": "422 validation_error", "invalid_output": "500 output_validation_error", "policy_denied": "404 not_found", "disabled": "404 not_found", "quarantined": "404 not_found", "missing_identity": "403 insufficient_scopes",
		"scope_denied": "403 insufficient_scopes", "not_found": "404 not_found", "needs_context": "409 needs_context", "missing_secrets": "403 missing_secrets",
		"timeout": "504 timeout", "dependency_missing": "502 plugin_execute_error", "input_too_large": "413 input_too_large",
		"output_too_large": "413 output_too_large", "rate_limited": "429 rate_limited", "budget_exceeded": "429 quota_exceeded",
		"key_conflict": "409 key_conflict", "internal": "500 plugin_execute_error", "plugin_error": "502 plugin_execute_error",
	}
	for _, c := range codes {
		status, word, spelled := shu.Spelled(c.Code)
		if !spelled || word == "" || http.StatusText(status) == "" && status != 499 || status < 400 {
			t.Errorf("%s has no spelling: %d %q", c.Code, status, word)
		}
		if w := want[c.Code]; w != "" && w != strconv.Itoa(status)+" "+word {
			t.Errorf("%s: got %d %s, want %s", c.Code, status, word, w)
		}
		delete(want, c.Code)
	}
	if len(want) != 0 {
		t.Errorf("no such codes: %v", want)
	}
}

// TestTextIsWhatItSpells: what a model writes as text where the schema has another
// type is that value, and what does not spell one is left for the schema.
func TestTextIsWhatItSpells(t *testing.T) {
	t.Parallel()
	schema := `{"properties":{"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":["boolean","null"]},"a":{"type":"array"},"o":{"type":"object"},
		"s":{"type":"string"},"e":{"type":["string","integer"]},"any":{}}}`
	for in, want := range map[string]string{
		`{"i":"12","n":"1.5","b":"TRUE","a":"[1]","o":"{\"k\":1}"}`: `{"i":12,"n":1.5,"b":true,"a":[1],"o":{"k":1}}`,
		`{"i":" -3 ","n":"1e3","b":"false"}`:                        `{"i":-3,"n":1e3,"b":false}`,
		`{"i":"1.5","n":"NaN","b":"yes","a":"1","o":"[]"}`:          `{"i":"1.5","n":"NaN","b":"yes","a":"1","o":"[]"}`,
		`{"i":"","n":"1 2","a":"[1","o":"{}x","b":""}`:              `{"i":"","n":"1 2","a":"[1","o":"{}x","b":""}`,
		`{"s":"12","e":"12","any":"12","other":"true"}`:             `{"s":"12","e":"12","any":"12","other":"true"}`,
		`{"i":1,"b":null,"a":["1"],"o":{"i":"1"}}`:                  `{"i":1,"b":null,"a":["1"],"o":{"i":"1"}}`,
		`"text"`: `"text"`,
	} {
		if got := string(shu.Coerced(json.RawMessage(schema), json.RawMessage(in))); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
