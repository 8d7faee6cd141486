package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// leaky writes a plugin that says its secret in every way in which a plugin can
// say anything, in 12 encodings.
func leaky(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir,
		"manifest.yaml", `
name: leaky
version: 1.0.0
owner: test
description: Tells its secret.
runner: {kind: process, entry: plugin.py}
capabilities: [secrets, audit]
operations:
  tell: {kind: operator, effects: [secret_write], preview: true, brokered: true, secrets: {api_key: {allowed_scope: system_or_user}}}
  fail: {secrets: {api_key: {allowed_scope: user}}}
  keep: {kind: operator, effects: [secret_write], brokered: true, secrets: {token: {allowed_scope: user}}}
`,
		"plugin.py", `
import base64, json, sys, urllib.parse
from mortise import Context, Plugin, PluginError

plugin = Plugin("leaky", version="1.0.0")

def forms(ctx: Context):
    s = ctx.service("secrets.get", {"name": "api_key"})["value"]
    b = s.encode()
    return s, [
        s, base64.b64encode(b).decode(), base64.b64encode(b"x" + b).decode(), base64.b64encode(b"xy" + b).decode(),
        base64.urlsafe_b64encode(b"key=" + b).decode(), b.hex(), b.hex().upper(), urllib.parse.quote(s), urllib.parse.quote_plus(s).lower(),
        json.dumps(s)[1:-1], s.encode("utf-16-le").decode("latin-1"), s.encode("utf-16-be").decode("latin-1"),
    ]

@plugin.operator(effects=["secret_write"])
def tell(ctx: Context) -> dict:
    s, all = forms(ctx)
    for form in all:
        ctx.log.info("it is " + form, form=form)
        ctx.progress("it is " + form)
        ctx.service("audit.log", {"event": "told", "details": {"form": form, form: 1}})
    ctx.emit({"forms": all})
    print("on standard error", *all, file=sys.stderr)
    return {"forms": all, s: {"nested": [s]}, "length": len(s)}

@tell.preview
def tell_preview(ctx: Context) -> dict:
    return {"forms": forms(ctx)[1]}

@plugin.tool
def fail(ctx: Context) -> dict:
    raise PluginError("it is " + " ".join(forms(ctx)[1]), code="TOLD", details={"forms": forms(ctx)[1]})

@plugin.operator(effects=["secret_write"])
def keep(value: str, ctx: Context) -> dict:
    ctx.service("secrets.set", {"name": "token", "value": value})
    return {"same": ctx.service("secrets.get", {"name": "token"})["value"] == value}

plugin.run()
`)
	return dir
}

const canary = `cänary "7/9"+<x&y>~tell no one`

// canaryForms are the encodings in which it is looked for; a part of it counts.
func canaryForms() (all []string) {
	b := []byte(canary)
	quoted, _ := json.Marshal(canary)
	lower := hex.EncodeToString(b)
	all = append(all, canary, string(quoted[1:len(quoted)-1]), lower, strings.ToUpper(lower), url.QueryEscape(canary), url.PathEscape(canary), strings.ToLower(url.QueryEscape(canary)))
	for offset := range 3 {
		text := base64.StdEncoding.EncodeToString(append([]byte("xyz")[:offset], b...))
		all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
	}
	for _, shift := range []int{0, 8} {
		var text []rune
		for _, unit := range utf16.Encode([]rune(canary)) {
			text = append(text, rune(byte(unit>>shift)), rune(byte(unit>>(8-shift))))
		}
		all = append(all, string(text))
	}
	return all
}

// told returns which forms of the canary a text has half of, once its own JSON is
// undone.
func told(text string) (found []string) {
	plain := text
	var unescaped any
	if json.Unmarshal([]byte(text), &unescaped) == nil {
		plain += fmt.Sprint(unescaped)
	}
	for _, form := range canaryForms() {
		n := len(form) / 2
		for i := 0; i+n <= len(form); i++ {
			if strings.Contains(plain, form[i:i+n]) {
				found = append(found, form)
				break
			}
		}
	}
	return found
}

// TestACanaryReachesNoSurface: results, errors, previews, events, the log, the
// ledger and the files of the host are searched for a secret that a plugin says
// everywhere in 12 encodings.
func TestACanaryReachesNoSurface(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}\nlog: {level: debug}\n")
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
	register(t, a, leaky(t), false)
	secrets := a.As(a.Principal).Secrets()
	if _, err := secrets.Set(t.Context(), host.SecretPlace{Name: "api_key", Plugin: "leaky"}, canary); err != nil {
		t.Fatal(err)
	}
	surfaces := map[string]string{}
	var events []string
	call := func(operation string) (plugin.Result, error) {
		return a.Kernel.Call(t.Context(), plugin.Call{
			Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation, Input: json.RawMessage(`{}`), Fresh: true,
			Observe: func(e plugin.Event) {
				raw, err := json.Marshal(e)
				if err != nil {
					t.Error(err)
				}
				events = append(events, string(raw))
			},
		})
	}
	res, err := call("leaky/tell")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	surfaces["result"] = string(raw)
	if !strings.Contains(string(res.Data), `"length":29`) && !strings.Contains(string(res.Data), fmt.Sprintf(`"length":%d`, len([]rune(canary)))) || strings.Count(string(res.Data), "[secret]") < 14 {
		t.Errorf("the result is %s", res.Data)
	}
	_, err = call("leaky/fail")
	var failed *plugin.Error
	if failed = plugin.AsError(err); failed == nil || failed.Code != plugin.CodePluginError || !strings.Contains(failed.Message, "it is [secret]") {
		t.Fatalf("%v", err)
	}
	surfaces["error"] = failed.Error() + string(failed.Details) + fmt.Sprint(failed.Err)
	if len(events) < 20 {
		t.Errorf("%d events", len(events))
	}
	for i, e := range events {
		surfaces[fmt.Sprintf("event %d", i)] = e
	}
	n := 0
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == plugin.EntryPluginAudit {
			n++
		}
		surfaces[fmt.Sprintf("entry %d", e.Seq)] = e.Subject + e.Principal + string(e.Body)
	}
	if n != 12 {
		t.Errorf("%d audits are on record", n)
	}
	closed = true
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	surfaces["log"] = log.String()
	mu.Unlock()
	err = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/runtime/") {
			return err
		}
		data, err := os.ReadFile(path)
		surfaces[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range surfaces {
		if found := told(text); found != nil {
			t.Errorf("%s has it as %q: %.300q", where, found, text)
		}
	}
	if len(told(strings.Join(canaryForms(), "\n"))) != len(canaryForms()) {
		t.Error("the test does not see what it looks for")
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// TestMissingSecretsAreNamedBeforeAnythingRuns walks the scopes of SH-29.
func TestMissingSecretsAreNamedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}\n")
	a := open(t, home)
	register(t, a, leaky(t), false)
	secrets := a.As(a.Principal).Secrets()
	missing := func(operation string, want bool) {
		t.Helper()
		_, err := callIn(t, a, "", operation, `{}`)
		if got := plugin.CodeOf(err) == plugin.CodeMissingSecrets; got != want || want && !strings.Contains(err.Error(), "api_key") {
			t.Errorf("%s: %v", operation, err)
		}
	}
	missing("leaky/tell", true)
	missing("leaky/fail", true)
	if _, err := secrets.Set(t.Context(), host.SecretPlace{Name: "api_key", System: true}, "of everybody"); err != nil {
		t.Fatal(err)
	}
	missing("leaky/tell", false)
	missing("leaky/fail", true) // of users only
	states, err := secrets.Check(t.Context(), "leaky")
	if err != nil || len(states) != 3 || states[0].Operation != "fail" || states[0].There != "" || states[2].There != "system" {
		t.Errorf("%+v, %v", states, err)
	}
	if _, err := secrets.Set(t.Context(), host.SecretPlace{Name: "api_key", Plugin: "leaky"}, "of the owner"); err != nil {
		t.Fatal(err)
	}
	missing("leaky/fail", false)

	// What a plugin sets is its user's, and for itself.
	if res, err := callIn(t, a, "", "leaky/keep", `{"value":"a token"}`); plugin.CodeOf(err) != plugin.CodeMissingSecrets {
		t.Errorf("%s, %v", res.Data, err)
	}
	if _, err := secrets.Set(t.Context(), host.SecretPlace{Name: "token"}, "an old token"); err != nil {
		t.Fatal(err)
	}
	res, err := callIn(t, a, "", "leaky/keep", `{"value":"a new token"}`)
	if err != nil || string(res.Data) != `{"same":true}` {
		t.Errorf("%s, %v", res.Data, err)
	}
	all, err := secrets.List(t.Context())
	if err != nil || len(all) != 4 || all[3].Name != "token" || all[3].Plugin != "leaky" || all[3].Subject != "local:owner" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestSecretsOfOthersTakeTheRightToConfigure: what is refused is on the record.
func TestSecretsOfOthersTakeTheRightToConfigure(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {roles: {reader: [bob]}}\n")
	a := open(t, home)
	bob, err := a.Host.Guard().Member("bob")
	if err != nil {
		t.Fatal(err)
	}
	owner, his := a.As(a.Principal).Secrets(), a.As(bob).Secrets()
	for _, p := range []host.SecretPlace{{Name: "k", System: true}, {Name: "k", User: "bob"}, {Name: "k"}} {
		if _, err := owner.Set(t.Context(), p, "a secret"); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []host.SecretPlace{{Name: "k", System: true}, {Name: "k", User: "local:owner"}} {
		_, setErr := his.Set(t.Context(), p, "another")
		_, deleteErr := his.Delete(t.Context(), p)
		for _, err := range []error{setErr, deleteErr} {
			if plugin.CodeOf(err) != plugin.CodePolicyDenied {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
	_, rotateErr := his.Rotate(t.Context())
	_, allErr := his.DeleteAll(t.Context())
	if plugin.CodeOf(rotateErr) != plugin.CodePolicyDenied || plugin.CodeOf(allErr) != plugin.CodePolicyDenied {
		t.Errorf("%v, %v", rotateErr, allErr)
	}
	if _, err := his.Set(t.Context(), host.SecretPlace{Name: "own"}, "a secret"); err != nil {
		t.Error(err)
	}
	var names []string
	mine, err := his.List(t.Context())
	for _, i := range mine {
		names = append(names, i.Name+" of "+i.Subject)
	}
	if err != nil || !slices.Equal(names, []string{"k of bob", "own of bob"}) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := owner.Set(t.Context(), host.SecretPlace{Name: "k", User: "unknown"}, "v"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Error(err)
	}
	n := 0
	for _, err := range a.Store.Entries(t.Context(), store.EntryFilter{Kind: string(plugin.EntrySecretRefused)}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d refusals are on record", n)
	}
}
