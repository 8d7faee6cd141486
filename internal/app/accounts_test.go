package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// digest writes a Shu plugin that acts with an account, and tells of its token
// everything that it can.
func digest(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir,
		"manifest.py", `
PLUGIN_MANIFEST = {
    "name": "digest", "version": "1.0.0", "module": "plugins.digest.plugin:Digest", "capabilities": ["auth", "identity"],
    "op_auth": {
        "list": {"provider": "mail", "mode": "user", "allowed_modes": ["user", "service_account", "domain_delegate"], "scopes": ["mail.read"]},
        "more": {"provider": "mail", "mode": "user", "scopes": ["mail.read"]},
        "robot": {"provider": "mail", "mode": "service_account", "scopes": ["mail.read"]},
    },
}
`,
		"plugin.py", `
class Digest:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["list", "robot", "none", "who", "more"]}}}

    async def execute(self, params, context, host):
        if params["op"] == "who":
            who = await host.identity.get_current_user_identity()
            return {"status": "success", "data": [who["email"], {k: [a["primary_email"] for a in v] for k, v in host.identity.providers.items()}, await host.identity.get_primary_email("mail"), host.identity.mail_email]}
        scopes = ["mail.send"] if params["op"] == "more" else None
        pair = await host.auth.resolve_token_and_target("mail", scopes=scopes)
        assert isinstance(pair, tuple)
        token, target = pair
        host.log.info(f"it is {token}")
        return {"status": "success", "data": {"length": len(token or ""), "target": target, "leak": token}}
`)
	return dir
}

// TestAPluginActsWithAnAccount: a user connects an account, a plugin gets its
// token, and nothing that the host stores or prints contains it.
func TestAPluginActsWithAnAccount(t *testing.T) {
	t.Parallel()
	needPython(t)
	server := accounttest.New(t)
	home := t.TempDir()
	write(t, home, "robot.json", server.RobotKey(), "mortise.yaml", fmt.Sprintf(`
policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}
log: {level: debug}
auth:
  providers:
    mail: {client_id: %s, client_secret_name: mail_client, issuer: %q, service_account: {key_file: robot.json}}
`, accounttest.ClientID, server.URL))
	var mu sync.Mutex
	var log bytes.Buffer
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.NewJSONHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	register(t, a, digest(t), false)
	accounts := a.As(a.Principal).Accounts()

	if _, err := accounts.Begin(t.Context(), "mail", nil); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "mortise secrets set mail_client --system --plugin :providers") {
		t.Errorf("without the client's secret: %v", err)
	}
	if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: "mail_client", Plugin: ":providers", System: true}, accounttest.ClientSecret); err != nil {
		t.Fatal(err)
	}
	_, err = call(t, a, "digest/list", `{}`)
	var details struct {
		Provider, Mode string
		Scopes         []string
	}
	if plugin.CodeOf(err) != plugin.CodeMissingIdentity || !strings.Contains(err.Error(), "mortise connect mail --scopes 'mail.read'") ||
		json.Unmarshal(plugin.AsError(err).Details, &details) != nil || details.Provider != "mail" || details.Mode != "user" || !slices.Equal(details.Scopes, []string{"mail.read"}) {
		t.Errorf("before it is connected: %v, %+v", err, details)
	}

	c, err := accounts.Begin(t.Context(), "mail", []string{"mail.read"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	surfaces := map[string]string{}
	told := func(operation string, overlay string) (target any, length float64) {
		t.Helper()
		res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation,
			Input: json.RawMessage(`{}`), Overlay: json.RawMessage(overlay), Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		var data map[string]any
		if err := json.Unmarshal(res.Data, &data); err != nil {
			t.Fatal(err)
		}
		if leak := data["leak"]; leak != nil && leak != "[secret]" {
			t.Errorf("the result of %s has the token: %s", operation, res.Data)
		}
		length, _ = data["length"].(float64)
		return data["target"], length
	}
	if target, n := told("digest/list", ""); target != "me" || n == 0 { // as published hosts say it
		t.Errorf("a user's: %v, %v", target, n)
	}
	if target, n := told("digest/robot", ""); target != nil || n == 0 {
		t.Errorf("a service account's: %v, %v", target, n)
	}
	if target, n := told("digest/list", `{"auth":{"mail":{"mode":"domain_delegate"}}}`); target != "ada@example.com" || n == 0 {
		t.Errorf("a delegate's: %v, %v", target, n)
	}
	if target, n := told("digest/none", ""); target != nil || n != 0 {
		t.Errorf("where no mode is chosen: %v, %v", target, n)
	}
	if target, n := told("digest/more", ""); target != nil || n != 0 {
		t.Errorf("for a scope that is not declared: %v, %v", target, n)
	}
	known := func(want string) {
		t.Helper()
		if res, err := call(t, a, "digest/who", `{}`); err != nil || string(res.Data) != want {
			t.Errorf("who is known as %s, %v", res.Data, err)
		}
	}
	known(`["ada@example.com",{"mail":["ada@example.com"]},"ada@example.com","ada@example.com"]`)
	if _, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "digest/robot",
		Input: json.RawMessage(`{}`), Overlay: json.RawMessage(`{"auth":{"mail":{"mode":"domain_delegate","subject":"ceo@example.com"}}}`), Fresh: true}); plugin.CodeOf(err) != plugin.CodePluginError || !strings.Contains(err.Error(), "does not stand in for") {
		t.Errorf("a delegate of another user: %v", err)
	}

	secrets, err := a.As(a.Principal).Secrets().List(t.Context())
	if err != nil || len(secrets) != 1 {
		t.Errorf("the secrets are %+v, %v", secrets, err)
	}
	if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SecretPlace{Name: "mail", Plugin: ":accounts"}, "{}"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an account is set as a secret: %v", err)
	}
	if gone, err := accounts.Remove(t.Context(), "mail"); err != nil || !gone.Revoked {
		t.Errorf("removed: %+v, %v", gone, err)
	}
	if _, err := call(t, a, "digest/list", `{}`); plugin.CodeOf(err) != plugin.CodeMissingIdentity {
		t.Errorf("after it is removed: %v", err)
	}
	known(`[null,{},null,null]`)

	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		surfaces[fmt.Sprintf("entry %d", e.Seq)] = e.Subject + e.Principal + string(e.Body)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	surfaces["log"] = log.String()
	mu.Unlock()
	err = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/runtime/") || strings.HasSuffix(path, "robot.json") {
			return err
		}
		data, err := os.ReadFile(path)
		surfaces[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(surfaces) < 8 || !strings.Contains(surfaces["log"], "it is [secret]") {
		t.Errorf("%d surfaces were looked at, and the plugin's own log is not among them", len(surfaces))
	}
	given := server.Given()
	if len(given) < 4 {
		t.Fatalf("%d tokens were given out", len(given))
	}
	for where, text := range surfaces {
		for _, token := range append(given, accounttest.ClientSecret) {
			if strings.Contains(text, token) {
				t.Errorf("%s has %.12q…", where, token)
			}
		}
	}
}
