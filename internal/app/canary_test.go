package app_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
)

// TestNoSurfaceHasTheCanary has a plugin say a secret that it was given in every
// encoding and everywhere: in its answer, its errors, its events, on standard
// error, in what it stores and sends and hands on. Then all that commands print,
// every file of the data directory with each page of the database, and a backup
// are searched for it.
//
// A value of fewer than 8 bytes is not taken out. The same with such a one shows
// that each of these would have it.
func TestNoSurfaceHasTheCanary(t *testing.T) {
	t.Parallel()
	needPython(t)
	t.Run("kept out", func(t *testing.T) {
		t.Parallel()
		for where, text := range singing(t, canary) {
			if found := heard(text, canary); len(found) > 0 {
				t.Errorf("%s has it in %v: %.300q", where, found, text)
			}
		}
	})
	t.Run("sabotaged", func(t *testing.T) {
		t.Parallel()
		const short = "k7+q/9Z"
		surfaces := singing(t, short)
		for _, name := range []string{
			"run", "run --json", "run --debug, errors", "fail", "fail --json", "preview", "nested", "ledger list", "ledger show", "calls show",
			"approvals show", "artifacts", "kb show", "kb search", "log", "mortise.db", "backup: mortise.db",
		} {
			found := false
			for where, text := range surfaces {
				found = found || strings.HasPrefix(where, name) && len(heard(text, short)) > 0
			}
			if !found {
				t.Errorf("%s would not have shown it: %v", name, slices.Sorted(maps.Keys(surfaces)))
			}
		}
		for form := range spelled(short) {
			if !slices.Contains(heard(surfaces["run --json"], short), form) {
				t.Errorf("the plugin does not say it in %s", form)
			}
		}
	})
}

// spelled are the encodings of a value that are searched for, by name.
func spelled(value string) map[string]string {
	raw := []byte(value)
	lower := hex.EncodeToString(raw)
	var percent, escaped strings.Builder
	for _, c := range raw {
		fmt.Fprintf(&percent, "%%%02X", c)
	}
	for _, r := range value {
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	all := map[string]string{
		"raw": value, "hex": lower, "hex, upper case": strings.ToUpper(lower),
		"percent": percent.String(), "percent, lower case": strings.ToLower(percent.String()), "percent, of a query": url.QueryEscape(value),
		"JSON escapes": escaped.String(),
	}
	for offset := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append([]byte("xyz")[:offset], raw...))
		text = text[(offset*8+5)/6 : (offset+len(raw))*8/6]
		all[fmt.Sprintf("base64 at %d", offset)] = text
		all[fmt.Sprintf("base64 of addresses at %d", offset)] = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	}
	return all
}

// heard returns the encodings of which a text has three quarters on end, also
// within JSON; of a short one, all of it.
func heard(text, value string) (found []string) {
	for name, form := range spelled(value) {
		parts := []string{form}
		if n := len(form); len(value) >= 16 {
			parts = []string{form[:n/2], form[n/4 : n*3/4], form[n/2:]}
		}
		for _, part := range parts {
			quoted, err := json.Marshal(part)
			if err != nil {
				panic(err) // a string
			}
			inner := string(quoted[1 : len(quoted)-1])
			plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner)
			if strings.Contains(text, part) || strings.Contains(text, inner) || strings.Contains(text, plain) {
				found = append(found, name)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// singing has a plugin tell value and returns what there is to be read
// afterwards, by where.
func singing(t *testing.T, value string) (surfaces map[string]string) {
	t.Helper()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body) // all of it before the answer begins
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(echo.Close)
	home, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}\nlog: {level: debug}\negress: {loopback: [canary]}\n")
	write(t, dir, "manifest.yaml", fmt.Sprintf(`
name: canary
version: 1.0.0
owner: test
description: Sings.
runner: {kind: process, entry: plugin.py}
capabilities: [secrets, audit, storage, kb, http, artifacts]
http: {hosts: [%q]}
requires: {tools: ["noting@^1"]}
operations:
  tell: {kind: operator, effects: [kb_write, http_write, storage_write, noted], preview: true, brokered: true, secrets: {api_key: {}}}
  fail: {secrets: {api_key: {}}}
  back: {}
`, strings.TrimPrefix(echo.URL, "http://")), "plugin.py", fmt.Sprintf(`
import base64, json, os, sys, urllib.parse
from mortise import Context, Plugin, PluginError

plugin = Plugin("canary", version="1.0.0")

def forms(ctx: Context):
    s = ctx.service("secrets.get", {"name": "api_key"})["value"]
    b = s.encode()
    percent = "".join("%%%%%%02X" %% c for c in b)
    std = [base64.b64encode(b"xyz"[:n] + b).decode() for n in range(3)]
    return s, [
        s, *std, *[base64.urlsafe_b64encode(b"xyz"[:n] + b).decode() for n in range(3)], b.hex(), b.hex().upper(),
        percent, percent.lower(), urllib.parse.quote_plus(s), "".join("\\u%%04x" %% ord(c) for c in s),
    ]

@plugin.operator(effects=["kb_write", "http_write", "storage_write", "noted"])
def tell(ctx: Context) -> dict:
    s, all = forms(ctx)
    for form in all:
        ctx.log.info("it is " + form, form=form)
        ctx.progress("it is " + form)
        ctx.service("audit.log", {"event": "told", "details": {"form": form}})
    ctx.emit({"forms": all})
    print("on standard error", *all, file=sys.stderr, flush=True)
    sys.stderr.write("in two parts " + s[: len(s) // 2])
    sys.stderr.flush()
    sys.stderr.write(s[len(s) // 2 :] + "\n")
    ctx.service("storage.put", {"key": "kept", "value": all})
    ctx.service("kb.ingest_text", {"kb_id": "box", "title": "song " + s, "content": "song\n" + "\n".join(all), "source_id": "one", "attributes": {"all": all}})
    # Before anything comes back from outside, which would have a person asked.
    noted = ctx.call("noting/note", {"forms": all}, key="once")
    echoed = ctx.service("http.fetch", {"method": "POST", "url": %q, "json": {"all": all}})
    path = os.path.join(ctx.scratch, "song-" + b64name(s) + ".json")
    with open(path, "w") as f:
        json.dump(all, f)
    ctx.service("artifacts.register", {"file_path": path, "artifact_type": "json_events", "metadata": {"all": all}})
    return {"forms": all, s: {"nested": [s]}, "exact": (echoed["json"] if "json" in echoed else json.loads(echoed.get("body", "[]")))["all"] == all and ctx.service("storage.get", {"key": "kept"})["value"] == all, "noted": noted}

def b64name(s):
    return s.encode().hex()

@tell.preview
def tell_preview(ctx: Context) -> dict:
    return {"forms": forms(ctx)[1]}

@plugin.tool
def fail(ctx: Context) -> dict:
    raise PluginError("it is " + " ".join(forms(ctx)[1]), code="TOLD", details={"forms": forms(ctx)[1]})

@plugin.tool
def back(ctx: Context) -> dict:
    return {"kept": ctx.service("storage.get", {"key": "kept"})}

plugin.run()
`, echo.URL+"/"))
	write(t, other, "manifest.yaml", `
name: noting
version: 1.0.0
owner: test
description: Notes.
runner: {kind: process, entry: plugin.py}
operations:
  note: {kind: operator, effects: [noted]}
`, "plugin.py", `
from mortise import Context, Plugin

plugin = Plugin("noting", version="1.0.0")

@plugin.operator(effects=["noted"])
def note(forms: list, ctx: Context) -> dict:
    return {"got": len(forms), "forms": forms}

plugin.run()
`)
	surfaces = map[string]string{}
	mortise := func(name string, stdin string, args ...string) (out string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"mortise"}, args...)...)
		cmd.Env = append(os.Environ(), "MORTISE_HOME="+home)
		cmd.Stdin = strings.NewReader(stdin)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if failed := err != nil; failed != strings.HasPrefix(name, "fail") && !strings.HasPrefix(name, "preview") {
			t.Errorf("%s: %v\n%s", name, err, stderr.String()[max(0, stderr.Len()-400):])
		}
		surfaces[name] = stdout.String()
		surfaces[name+", errors"] = stderr.String()
		for line := range strings.SplitSeq(stderr.String(), "\n") {
			if strings.HasPrefix(line, "time=") {
				surfaces["log"] += line + "\n"
			}
		}
		return stdout.String()
	}
	read := func(text string, path ...string) string {
		t.Helper()
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
		for _, name := range path {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		return fmt.Sprint(value)
	}
	mortise("register", "", "plugins", "register", other)
	mortise("register canary", "", "plugins", "register", dir)
	mortise("secrets set", value+"\n", "secrets", "set", "api_key", "--plugin", "canary")
	mortise("kb create", "", "kb", "create", "box")
	session := read(mortise("sessions create", "", "sessions", "create", "--json"), "id")

	told := mortise("run --json", "", "run", "canary/tell", "--session", session, "--json")
	var made struct {
		Artifacts []struct{ ID string } `json:"artifacts"`
	}
	if err := json.Unmarshal([]byte(told), &made); err != nil || len(made.Artifacts) != 1 {
		t.Fatalf("%v: %.300s", err, told)
	}
	artifact := made.Artifacts[0].ID
	if read(told, "data", "exact") != "true" {
		t.Errorf("what the plugin got back is not what it sent: %.500s", told)
	}
	mortise("run", "", "run", "canary/tell", "--session", session)
	mortise("run --debug", "", "run", "canary/tell", "--session", session, "--debug")
	mortise("fail", "", "run", "canary/fail")
	mortise("fail --json", "", "run", "canary/fail", "--json")
	mortise("stored", "", "run", "canary/back", "--json")
	waits := mortise("preview", "", "run", "canary/tell", "--session", session, "--label", "untrusted", "--no-wait", "--json")

	mortise("secrets list", "", "secrets", "list", "--json")
	mortise("ledger list", "", "ledger", "list", "--json", "--last", "1000")
	mortise("ledger list, text", "", "ledger", "list", "--last", "1000")
	mortise("ledger verify", "", "ledger", "verify")
	calls := mortise("calls list", "", "calls", "list", "--json", "-n", "100")
	var listed struct {
		Calls []struct {
			ID        string `json:"call_id"`
			Operation string `json:"operation"`
		} `json:"calls"`
	}
	if err := json.Unmarshal([]byte(calls), &listed); err != nil || len(listed.Calls) < 5 {
		t.Fatalf("%v: %.500s", err, calls)
	}
	for _, c := range listed.Calls {
		name := "calls show " + c.Operation
		if c.Operation == "noting/note" {
			mortise("nested "+c.ID, "", "calls", "wait", c.ID, "--json")
		}
		mortise(name+" "+c.ID, "", "calls", "show", c.ID, "--json")
		mortise(name+" "+c.ID+", text", "", "calls", "show", c.ID)
		mortise("ledger show "+c.ID, "", "ledger", "show", c.ID, "--json")
		mortise("ledger show "+c.ID+", text", "", "ledger", "show", c.ID)
	}
	mortise("approvals list", "", "approvals", "list", "--json")
	approval := read(waits, "approval", "id")
	mortise("approvals show", "", "approvals", "show", approval)
	mortise("approvals show --json", "", "approvals", "show", approval, "--json")
	mortise("artifacts list", "", "artifacts", "list", "--session", session, "--json")
	mortise("artifacts show", "", "artifacts", "show", artifact, "--session", session, "--json")
	mortise("sessions show", "", "sessions", "show", session, "--json")
	mortise("kb search", "", "kb", "search", "song", "--json")
	mortise("kb show", "", "kb", "show", "box", "one")
	mortise("kb show --json", "", "kb", "show", "box", "one", "--json")
	mortise("feeds list", "", "feeds", "list", "--json")

	file := filepath.Join(t.TempDir(), "backup")
	if _, err := app.Backup(t.Context(), app.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	maps.Copy(surfaces, membersOf(t, file))
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(home, "runtime")) {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(home, path)
		if strings.HasPrefix(name, "sessions"+string(filepath.Separator)) && err == nil {
			return nil // the files themselves, as plugins of the session see them: see docs/services.md
		}
		surfaces[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return surfaces
}

// membersOf returns what is in a backup.
func membersOf(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]string{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		members["backup: "+h.Name] = string(data)
	}
}
