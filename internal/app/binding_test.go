package app_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// tracker is a plugin that is given a key in its input, and sends another one
// that it never sees.
func tracker(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: tracker
version: 1.0.0
owner: test
description: Files tickets.
runner: {kind: process, entry: plugin.py}
capabilities: [http]
http:
  hosts: [example.com, wrong.example.net]
  inject:
    - {host: example.com, header: Authorization, format: "Bearer {}", secret: token}
operations:
  file: {kind: operator, effects: [http_write], brokered: true, preview: true, secrets: {api_key: {allowed_scope: user}, spare: {allowed_scope: user}}}
  plain: {}
`, "plugin.py", `
import json
from mortise import Context, Plugin

plugin = Plugin("tracker", version="1.0.0", capabilities=["http"])

@plugin.operator(effects=["http_write"])
def file(to: str, key: str, ctx: Context) -> dict:
    """File a ticket."""
    answer = ctx.http.post("https://example.com/" + to, {"key": len(key)})
    seen = json.dumps(answer)
    try:
        ctx.service("secrets.get", {"name": "token"})
        denied = ""
    except Exception as error:
        denied = error.code
    return {"length": len(key), "leak": key, "status": answer["status_code"], "told": answer["body"], "denied": denied}

@file.preview
def show(to: str, key: str, ctx: Context) -> dict:
    return {"to": to, "key": key}

@plugin.tool
def plain(text: str, ctx: Context) -> str:
    """Say it."""
    return text

plugin.run()
`)
	return dir
}

// vouching starts a server of TLS for example.com, and returns its address and a
// file with the authority that vouches for it.
func vouching(t *testing.T, handler http.HandlerFunc) (address, ca string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.Listener.Addr().String(), ca
}

// TestSecretsAreBoundWhereThePluginRuns: what is hashed, stored, approved and
// shown is the reference; the plugin gets the value, and of a credential that the
// host inserts not even that.
func TestSecretsAreBoundWhereThePluginRuns(t *testing.T) {
	t.Parallel()
	needPython(t)
	var sent []string
	address, ca := vouching(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Header.Get("Authorization")+" "+string(body))
		_, _ = io.WriteString(w, "you said "+r.Header.Get("Authorization"))
	})
	const inserted = "inserted-token-0123456789"
	home := t.TempDir()
	write(t, home, "mortise.yaml", fmt.Sprintf(`
policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}
log: {level: debug}
egress: {map: {example.com: %q, wrong.example.net: %q}, ca_file: %q}
`, address, address, ca))
	var mu sync.Mutex
	var log bytes.Buffer
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.NewJSONHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = a.Close()
		}
	})
	register(t, a, tracker(t), false)
	ask := func(operation, input string) (plugin.Result, error) {
		return a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation, Input: json.RawMessage(input), Fresh: true})
	}
	set := func(name, value string) {
		t.Helper()
		if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: name, Plugin: "tracker"}, value); err != nil {
			t.Fatal(err)
		}
	}
	const good = `{"to":"a","key":{"$secret":"api_key"}}`
	refused := func(what, operation, input string, code plugin.Code, says string) {
		t.Helper()
		if _, err := ask(operation, input); plugin.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	set("api_key", canary)
	set("spare", "a-spare-secret-of-its-own")
	refused("a credential that is not set", "tracker/file", good, plugin.CodeMissingSecrets, "token")
	set("token", inserted)
	refused("a secret that the operation does not declare", "tracker/file", `{"to":"a","key":{"$secret":"token"}}`, plugin.CodeServiceDenied, "token")
	refused("one of another operation", "tracker/plain", `{"text":{"$secret":"api_key"}}`, plugin.CodeServiceDenied, "api_key")
	refused("a reference that is none", "tracker/file", `{"to":"a","key":{"$secret":"api_key","x":1}}`, plugin.CodeInvalidInput, "$secret")
	refused("what does not fit beside it", "tracker/file", `{"to":7,"key":{"$secret":"api_key"}}`, plugin.CodeInvalidInput, "schema")
	if len(sent) != 0 {
		t.Errorf("sent: %q", sent)
	}
	res, err := ask("tracker/file", good)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"denied":"service_denied","leak":"[secret]","length":%d,"status":200,"told":"you said Bearer [secret]"}`, utf8.RuneCountInString(canary))
	var got map[string]any
	_ = json.Unmarshal(res.Data, &got)
	if spelled, _ := json.Marshal(got); string(spelled) != want {
		t.Errorf("got  %s\nwant %s", spelled, want)
	}
	if len(sent) != 1 || sent[0] != fmt.Sprintf(`Bearer %s {"key":%d}`, inserted, utf8.RuneCountInString(canary)) {
		t.Errorf("the server got %q", sent)
	}
	entries, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	records, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(records), `"http_mapped":"example.com"`) {
		t.Error("the ledger does not say that the host was mapped")
	}
	closed = true
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	everything := string(records)
	mu.Lock()
	everything += log.String()
	mu.Unlock()
	err = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		everything += string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := told(everything); found != nil || strings.Contains(everything, inserted) {
		t.Errorf("a secret is somewhere that the host keeps or says: %q", found)
	}
	if !strings.Contains(everything, `{"$secret":"api_key"}`) || !strings.Contains(log.String(), `"mapped":["example.com"]`) {
		t.Error("what is kept has no reference, or the log no mapping: the test does not see what it looks for")
	}
}

// TestWhatIsApprovedIsTheReference changes the secret between the question and
// the run: the approval is for the call, whatever the secret is by then.
func TestWhatIsApprovedIsTheReference(t *testing.T) {
	t.Parallel()
	needPython(t)
	said := ""
	address, ca := vouching(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said = r.Header.Get("Authorization") + " " + string(body)
	})
	home := t.TempDir()
	write(t, home, "mortise.yaml", fmt.Sprintf(`
policy: {allow: [{effects: ['*']}]}
approvals: {self: true}
egress: {map: {example.com: %q}, ca_file: %q}
`, address, ca))
	a := open(t, home)
	register(t, a, tracker(t), false)
	for name, value := range map[string]string{"api_key": canary, "token": "inserted-token-0123456789", "spare": "a-spare-secret"} {
		if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: name, Plugin: "tracker"}, value); err != nil {
			t.Fatal(err)
		}
	}
	res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "tracker/file", Labels: []string{plugin.Untrusted},
		Input: json.RawMessage(`{"to":"a","key":{"$secret":"api_key"}}`)})
	if err != nil || res.Status != plugin.PendingApproval {
		t.Fatalf("%+v, %v", res, err)
	}
	rows, err := a.Store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", Limit: 10})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d questions, %v", len(rows), err)
	}
	q, err := a.Host.Approvers().Question(t.Context(), &rows[0])
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if found := told(string(shown)); found != nil || !strings.Contains(string(shown), `{"$secret":"api_key"}`) {
		t.Errorf("a person is shown %s", shown)
	}
	for name, value := range map[string]string{"api_key": "seven77", "token": "renewed-in-between-456"} {
		if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: name, Plugin: "tracker"}, value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: rows[0].ID, Approve: true, By: a.Principal, Own: true}); err != nil {
		t.Fatal(err)
	}
	if res, err = a.Kernel.Resume(t.Context(), "local", res.CallID); err != nil || res.Status != plugin.Succeeded || said != `Bearer renewed-in-between-456 {"key":7}` {
		t.Errorf("%+v, %v, %q", res, err, said)
	}
}

// TestWhatASchemaBinds fills in what the caller leaves out, and nothing that the
// caller gives.
func TestWhatASchemaBinds(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, dir := t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{effects: ['*']}]}\nenv: {bound: {REGION: eu-central-7}}\n")
	write(t, dir, "manifest.py", `
PLUGIN_MANIFEST = {"name": "bound", "version": "1.0.0", "module": "plugins.bound.plugin:Bound", "capabilities": [],
    "chat_callable_ops": ["show", "bare"], "op_auth": {"show": {"secrets": {"api_key": {"allowed_scope": "user"}}}}}
`, "plugin.py", `
class Bound:
    name = "bound"
    version = "1.0.0"

    def get_schema_for_op(self, op):
        bound = {
            "who": {"type": "string", "x-binding": "identity:google_email"}, "id": {"type": "string", "x-binding": "identity:user_id"},
            "key": {"type": "string", "x_binding": "secret:api_key", "x-ui": {"hidden": True}}, "region": {"type": "string", "x-binding": "env:REGION"},
            "home": {"type": "string", "x-binding": "env:HOME"}}
        if op == "bare":
            bound["key"] = {"type": "string", "x-binding": "secret:other"}
        return {"type": "object", "title": op, "description": op, "properties": {"op": {"type": "string", "enum": [op]}, **bound}, "required": ["region", "who"]}

    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["show", "bare"]}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": {**{k: v for k, v in params.items() if k != "key"}, "length": len(params.get("key", "")), "leak": params.get("key", "")}}
`)
	a := open(t, home)
	register(t, a, dir, false)
	if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: "api_key", Plugin: "bound"}, canary); err != nil {
		t.Fatal(err)
	}
	ask := func(operation, input string) (string, error) {
		res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation, Input: json.RawMessage(input), Fresh: true})
		return string(res.Data), err
	}
	if data, err := ask("bound/show", `{}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an address that is not known: %s, %v", data, err)
	}
	err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		return tx.PutIdentity(store.IdentityRow{Tenant: "local", Provider: "google", ExternalID: "ada@example.com", PrincipalType: "user", PrincipalID: a.Principal.ID})
	})
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		`{}`: `"who":"ada@example.com","id":"` + a.Principal.ID + `","region":"eu-central-7"`,
		`{"region":"mine","who":"me","key":"own"}`: `"id":"` + a.Principal.ID + `","leak":"own"`,
	} {
		data, err := ask("bound/show", input)
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		var got, wanted map[string]any
		_ = json.Unmarshal([]byte(data), &got)
		_ = json.Unmarshal([]byte("{"+want+"}"), &wanted)
		if inner, ok := got["data"].(map[string]any); ok {
			got = inner
		}
		for key, value := range wanted {
			if got[key] != value {
				t.Errorf("%s: %s is %v, want %v (%s)", input, key, got[key], value, data)
			}
		}
		if _, there := got["home"]; there {
			t.Errorf("%s: a variable that no administrator named: %s", input, data)
		}
		if input == `{}` && (got["length"] != float64(utf8.RuneCountInString(canary)) || got["leak"] != "[secret]") {
			t.Errorf("the secret: %s", data)
		}
	}
	if data, err := ask("bound/bare", `{}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
		t.Errorf("a secret that the operation does not declare: %s, %v", data, err)
	}
}
