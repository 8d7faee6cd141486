package shu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryEndInTheContractsWords: whatever becomes of a call, `--envelope shu`
// gives the HTTP status and the words of the contract, in the order in which its
// executor looks.
func TestEveryEndInTheContractsWords(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	address := serve(t, map[string][]response{"/full": {{Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "900"}, JSON: map[string]any{"message": "slow down"}}}})
	h.configure(t, fmt.Sprintf(`policy:
  configure: ["local:owner"]
  files: [p.cedar]
  groups: {desk: [eve]}
approvals: {by: [bob], trust_as: true}
auth: {providers: {google: {client_id: a, issuer: "https://accounts.example.com", client_secret_name: s}}}
egress:
  loopback: [envelope_cases]
  map: {api.provider.example: %q}
`, address))
	rules := `permit (principal == User::"local:owner", action, resource in Plugin::"envelope_cases") unless { resource has operation && resource.operation == "guarded" };
@approval("look twice") permit (principal == User::"bob", action == Action::"execute", resource == Operation::"envelope_cases/fine");
`
	if err := os.WriteFile(filepath.Join(h.home, "p.cedar"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(t, "plugins", "register", "--dev", filepath.Join("plugins", "envelope-cases"))
	large := `{"op":"fine","text":"` + strings.Repeat("x", 300<<10) + `"}`
	largeFile := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(largeFile, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   string // what the body has, by the contract
	}{
		{"a success", []string{"envelope_cases/fine", "--set", "n=4"}, 200, `{"data":{"status":"success","data":{"n":4},"error":null,"cost":{"tokens":3},"next_cursor":"c2"}}`},
		{"with diagnostics", []string{"envelope_cases", "--input", `{"op":"fine","debug":true}`}, 200, `{"data":{"status":"success","diagnostics":["looked"]}}`},
		{"hidden from the caller", []string{"envelope_cases/own", "--as", "eve"}, 404, `{"error":{"code":"HTTP_404","message":{"error":"not_found"},"details":{}}}`},
		{"there is no such plugin", []string{"missing"}, 404, `{"error":{"code":"HTTP_404","message":{"error":"not_found"}}}`},
		{"nothing allows it", []string{"envelope_cases/guarded"}, 404, `{"error":{"code":"HTTP_404","message":{"error":"not_found"},"details":{}}}`},
		{"hidden from the caller, whatever the input", []string{"envelope_cases/own", "--as", "eve", "--input", `{"n":"x"}`}, 404, `{"error":{"message":{"error":"not_found"}}}`},
		{"nothing allows it, whatever its schema says", []string{"envelope_cases/guarded", "--input", `{"n":"x"}`}, 404, `{"error":{"code":"HTTP_404","message":{"error":"not_found"}}}`},
		{"secrets are missing, whatever its schema says", []string{"envelope_cases/keyed", "--input", `{"n":"x"}`}, 403, `{"error":{"code":"missing_secrets"}}`},
		{"an account is missing, whatever its schema says", []string{"envelope_cases/account", "--input", `{"n":"x"}`}, 403, `{"error":{"code":"insufficient_scopes"}}`},
		{"a person would be asked, and the schema refuses it", []string{"envelope_cases/fine", "--as", "bob", "--no-wait", "--input", `{"n":"x"}`}, 422, `{"error":{"message":{"error":"validation_error"}}}`},
		{"a mode that a person decides", []string{"envelope_cases/account", "--input", `{"__host":{"auth":{"google":{"mode":"service_account"}}}}`}, 200, `{"data":{"status":"success"}}`},
		{"a delegate that a person decides", []string{"envelope_cases/account", "--input", `{"__host":{"auth":{"google":{"mode":"domain_delegate","subject":"boss@example.com"}}}}`}, 200, `{"data":{"status":"success"}}`},
		{"a mode that there is not", []string{"envelope_cases/account", "--input", `{"__host":{"auth":{"google":{"mode":"root"}}}}`}, 403, `{"error":{"code":"insufficient_scopes"}}`},
		{"the schema refuses it", []string{"envelope_cases/fine", "--input", `{"n":"x"}`}, 422, `{"error":{"code":"HTTP_422","message":{"error":"validation_error"},"details":{}}}`},
		{"the host's part is no object", []string{"envelope_cases/fine", "--input", `{"__host":1}`}, 422, `{"error":{"code":"HTTP_422","message":{"error":"validation_error"}}}`},
		{"too much comes in", []string{"envelope_cases/fine", "--input", "@" + largeFile}, 413, `{"error":{"code":"HTTP_413","message":{"error":"input_too_large","limit":262144}}}`},
		{"secrets are missing", []string{"envelope_cases/keyed"}, 403, `{"error":{"code":"missing_secrets","details":{"plugin":"envelope_cases","missing_secrets":["api_key","shared_key"]}}}`},
		{"an account is missing", []string{"envelope_cases/account"}, 403, `{"error":{"code":"insufficient_scopes"}}`},
		{"an account that the call names", []string{"envelope_cases/fine", "--input", `{"__host":{"auth":{"google":{"mode":"user"}}}}`}, 403, `{"error":{"code":"insufficient_scopes"}}`},
		{"a person is asked", []string{"envelope_cases/fine", "--as", "bob", "--no-wait"}, 202, `{"data":{"status":"pending_approval"}}`},
		{"its own error", []string{"envelope_cases/own"}, 200, `{"data":{"status":"error","data":{"n":"partial"},"error":{"code":"label_missing","message":"no such label","details":{"label":"x"}}}}`},
		{"its exception", []string{"envelope_cases/raises"}, 200, `{"data":{"status":"error","error":{"code":"plugin_execute_error","message":"ValueError: not today"}}}`},
		{"a provider's refusal", []string{"envelope_cases/provider"}, 200, `{"data":{"status":"error","error":{"code":"rate_limited","message":"Provider HTTP error (429): slow down","details":{"retry_after_seconds":900,"is_retryable":true,"status_code":429}}}}`},
		{"no library", []string{"envelope_cases/lacks"}, 200, `{"data":{"status":"error","error":{"code":"plugin_execute_error"}}}`},
		{"no JSON", []string{"envelope_cases/status"}, 200, `{"data":{"status":"error","error":{"code":"plugin_execute_error"}}}`},
		{"too late", []string{"envelope_cases/slow", "--timeout", "1s"}, 504, `{"error":{"code":"HTTP_504","message":{"error":"timeout"}}}`},
		{"its own timeout", []string{"envelope_cases/gave_up"}, 200, `{"data":{"status":"timeout","error":{"code":"timeout","message":"the provider slept"}}}`},
		{"a dict is passed on", []string{"envelope_cases/lies"}, 200, `{"data":{"status":"success","data":{"n":"one"}}}`},
		{"a dict of its own", []string{"envelope_cases/bare"}, 200, `{"data":{"rows":[1]}}`},
		{"a dict with more members", []string{"envelope_cases/extra"}, 200, `{"data":{"status":"ok","data":{"n":1},"warnings":["w"],"page":{"next":2}}}`},
		{"a model with more members", []string{"envelope_cases/extra_model"}, 200, `{"data":{"status":"success","data":{"n":6},"warnings":["w"]}}`},
		{"None", []string{"envelope_cases/nothing"}, 200, `{"data":{"status":null,"data":null,"error":null}}`},
		{"what a model dumps", []string{"envelope_cases/dumps"}, 200, `{"data":{"status":"success","data":{"n":5}}}`},
		{"no message but a diagnostic", []string{"envelope_cases/diagnosed"}, 200, `{"data":{"status":"error","error":{"message":"the folder is gone"}}}`},
		{"a command line that is wrong", []string{"envelope_cases/fine", "--timeout", "-1s"}, 422, `{"error":{"code":"HTTP_422","message":{"error":"validation_error"}}}`},
		{"an input that is no JSON", []string{"envelope_cases/fine", "--input", "{"}, 422, `{"error":{"code":"HTTP_422","message":{"error":"validation_error"}}}`},
		{"the output lies", []string{"envelope_cases/lies_object"}, 500, `{"error":{"code":"HTTP_500","message":{"error":"output_validation_error"},"details":{}}}`},
		{"too much comes out", []string{"envelope_cases/large"}, 413, `{"error":{"code":"HTTP_413","message":{"error":"output_too_large"}}}`},
		{"far too much comes out", []string{"envelope_cases/huge"}, 413, `{"error":{"code":"HTTP_413","message":{"error":"output_too_large"}}}`},
		{"and it goes on", []string{"envelope_cases/fine"}, 200, `{"data":{"status":"success"}}`},
	} {
		out, errs, _ := h.command(t, append([]string{"run", "--json", "--envelope", "shu"}, c.args...)...)
		var got struct {
			HTTP int            `json:"http_status"`
			Body map[string]any `json:"body"`
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &got); err != nil || got.HTTP != c.status {
			t.Errorf("%s: the status is %d, not %d: %v: %.600s%s", c.name, got.HTTP, c.status, err, out, errs)
			continue
		}
		if missing := within(want, got.Body, ""); missing != "" {
			t.Errorf("%s: %s: %.600s", c.name, missing, out)
		}
		refusal, _ := got.Body["error"].(map[string]any)
		if id, _ := refusal["error_id"].(string); (c.status >= 500) != strings.HasPrefix(id, "ERR-") {
			t.Errorf("%s: the error has the id %q", c.name, id)
		}
		told, _ := got.Body["data"].(map[string]any)
		if _, null := told["error"]; null && strings.Contains(c.name, "more members") {
			t.Errorf("%s: an error is added: %s", c.name, out)
		}
		if _, shown := told["diagnostics"]; shown != strings.Contains(c.want, "diagnostics") {
			t.Errorf("%s: diagnostics are shown: %v", c.name, shown)
		}
	}
}

// TestADisabledPluginIsNotFound: as published hosts answer, in front of all else.
func TestADisabledPluginIsNotFound(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.must(t, "plugins", "register", "--dev", filepath.Join("plugins", "without-schemas"))
	h.must(t, "plugins", "disable", "without_schemas")
	for _, args := range [][]string{{"without_schemas/one"}, {"without_schemas", "--input", `{"op":"one","x":"text"}`}} {
		out, _, err := h.command(t, append([]string{"run", "--json", "--envelope", "shu"}, args...)...)
		if err == nil || !strings.Contains(string(out), `"http_status":404`) && !strings.Contains(string(out), `"http_status": 404`) || !strings.Contains(string(out), "disabled") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// within says what of want is not in got.
func within(want, got any, at string) string {
	members, isObject := want.(map[string]any)
	have, _ := got.(map[string]any)
	if !isObject {
		if a, b := fmt.Sprint(want), fmt.Sprint(got); a != b {
			return fmt.Sprintf("%s is %s, not %s", at, b, a)
		}
		return ""
	}
	for name, value := range members {
		if missing := within(value, have[name], at+"/"+name); missing != "" {
			return missing
		}
	}
	return ""
}
