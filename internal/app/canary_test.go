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
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestNoSurfaceHasTheCanary has a plugin say a secret that it was given in every
// encoding and everywhere: in its answer, its errors, its events, on standard
// error, in what it stores and sends and hands on, to a model and to an agent.
// Then all that commands print, every file of the data directory with each page
// of the database, what models, hooks and approvers are told, and a backup are
// searched for it.
//
// The same with a scrubber that does nothing shows that each of these would have
// it.
func TestNoSurfaceHasTheCanary(t *testing.T) {
	t.Parallel()
	needPython(t)
	t.Run("kept out", func(t *testing.T) {
		t.Parallel()
		surfaces := singing(t, false)
		for where, text := range surfaces {
			if found := heard(text, canary); len(found) > 0 {
				t.Errorf("%s has it in %v: %.300q", where, found, around(text, canary))
			}
		}
		reached(t, surfaces, func(string) bool { return true })
	})
	t.Run("sabotaged", func(t *testing.T) {
		t.Parallel()
		surfaces := singing(t, true)
		reached(t, surfaces, func(text string) bool { return len(heard(text, canary)) > 0 })
		for form := range spelled(canary) {
			if !slices.Contains(heard(surfaces["run --json"], canary), form) {
				t.Errorf("the plugin does not say it in %s", form)
			}
		}
	})
}

// reached fails unless there is each surface that the canary would be on, and ok
// holds for it.
func reached(t *testing.T, surfaces map[string]string, ok func(text string) bool) {
	t.Helper()
	for _, name := range []string{
		"run", "run --json", "run --debug, errors", "fail", "fail --json", "preview", "dry run", "dry run --json", "stored", "nested",
		"ledger list", "ledger show", "calls show canary/tell", "approvals show", "approvals show --json", "notified",
		"artifacts show", "kb show", "kb show --json", "kb search", "feeds show", "feeds list", "feeds run", "log",
		"observed progress", "observed content", "observed log", "observed in two parts", "observed in parts of objects",
		"sent to a model, by a plugin", "sent to a model, by an agent",
		"chat", "chat --json", "agents conversations", "agents memory", "hooks hear tool.before", "hooks hear tool.after",
		"hooks hear memory.upsert", "hooks hear model.before", "hooks hear model.after", "hooks hear plugin.error",
		"table [messages]", "table [memories]", "table [outbox]", "table [kb_documents]", "table [kb_chunks]", "table [artifacts]", "table [bodies]", "table [kv]",
		"mortise.db", "backup: mortise.db",
	} {
		found := false
		for where, text := range surfaces {
			found = found || strings.HasPrefix(where, name) && ok(text)
		}
		if !found {
			t.Errorf("%s would not have shown it: %.300q", name, surfaces[name])
		}
	}
}

// around returns what stands around the first part of a value in a text.
func around(text, value string) string {
	for _, form := range spelled(value) {
		for i := range 3 {
			part := form[i*len(form)/4:][:len(form)/2]
			if at := strings.Index(text, part); at >= 0 {
				return text[max(0, at-200):min(len(text), at+100)]
			}
		}
	}
	return text
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

// A confidant is a model that repeats what it was told. It has the agent that asks
// it use the canary, and says then what came of that.
type confidant struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]string // what it was sent, by who asked
}

func newConfidant(t *testing.T) *confidant {
	t.Helper()
	c := &confidant{asked: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		var body struct {
			Stream   bool
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || json.Unmarshal(raw, &body) != nil || len(body.Messages) == 0 {
			http.Error(w, `{"error":{"message":"no conversation"}}`, http.StatusBadRequest)
			return
		}
		who := "by a plugin"
		if body.Stream {
			who = "by an agent"
		}
		c.mu.Lock()
		c.asked[who] += string(raw) + "\n"
		c.mu.Unlock()
		last := body.Messages[len(body.Messages)-1]
		said, _ := json.Marshal(fmt.Sprint("I heard ", last.Content)) // a string
		const usage = `"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}`
		if !body.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],%s}`, said, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta, reason string) {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, reason)
		}
		if last.Role == "tool" {
			send(fmt.Sprintf(`{"role":"assistant","content":%s}`, said), "null")
			send(`{}`, `"stop"`)
		} else {
			send(`{"role":"assistant","tool_calls":[{"index":0,"id":"use_1","type":"function","function":{"name":"whisperer__whisper","arguments":"{}"}}]}`, "null")
			send(`{}`, `"tool_calls"`)
		}
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[],%s}\n\ndata: [DONE]\n\n", usage)
	}))
	t.Cleanup(c.Close)
	return c
}

// nosy is a plugin that hears all events, and writes them to the log so that no
// scrubber knows them again. Of some it complains.
const nosy = `
const letters = "ghijklmnopqrstuv";
function coded(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) for (let shift = 12; shift >= 0; shift -= 4) out += letters[(text.charCodeAt(i) >> shift) & 15];
  return out;
}
export function register(ctx) {
  for (const event of ["tool.before@v1", "tool.after@v1", "memory.upsert@v1", "model.before@v1", "model.after@v1", "prompt.assemble@v1", "session.message.received@v1", "plugin.error@v1"])
    ctx.bus.on(event, (payload) => {
      const text = coded(JSON.stringify(payload));
      for (let i = 0; i < text.length; i += 4000) ctx.logger.info("EARS " + event.replace("@v1", "") + " " + text.slice(i, i + 4000));
      if (event === "tool.before@v1") return { allow: true };
      return undefined;
    }, { deadlineMs: 1000 });
  ctx.bus.on("memory.upsert@v1", (payload) => { throw new Error("heard " + JSON.stringify(payload)); }, { deadlineMs: 1000 });
  ctx.tools.add({ name: "hear", description: "Hear.", schema: { type: "object" }, handler: () => ({ heard: true }) });
}`

// hostsLine is a line of the host's own log, as a command shows it.
var hostsLine = regexp.MustCompile(`^(debug|info|warning|error) +`)

// overheard adds what nosy heard, from the log.
func overheard(surfaces map[string]string, log string) {
	for _, m := range regexp.MustCompile(`EARS ([a-z.]+) ([g-v]+)`).FindAllStringSubmatch(log, -1) {
		var text []rune
		for i := 0; i+4 <= len(m[2]); i += 4 {
			var r rune
			for _, c := range m[2][i : i+4] {
				r = r<<4 | (c - 'g')
			}
			text = append(text, r)
		}
		surfaces["hooks hear "+m[1]] += string(text)
	}
}

// forms has a plugin in Python spell its secret.
const forms = `
def forms(ctx: Context):
    s = ctx.service("secrets.get", {"name": "api_key"})["value"]
    b = s.encode()
    percent = "".join("%%%02X" % c for c in b)
    std = [base64.b64encode(b"xyz"[:n] + b).decode() for n in range(3)]
    return s, [
        s, *std, *[base64.urlsafe_b64encode(b"xyz"[:n] + b).decode() for n in range(3)], b.hex(), b.hex().upper(),
        percent, percent.lower(), urllib.parse.quote_plus(s), "".join("\\u%04x" % ord(c) for c in s),
    ]
`

// singing has a plugin tell the canary and returns what there is to be read
// afterwards, by where. A blind host takes no secrets out.
func singing(t *testing.T, blind bool) (surfaces map[string]string) {
	t.Helper()
	const value = canary
	model := newConfidant(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body) // all of it before the answer begins
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(echo.Close)
	home, dir, other, low, ears := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, home, "key", modelKey+"\n", "mortise.yaml", fmt.Sprintf(`
policy: {allow: [{effects: ['*']}, {kinds: [tool]}]}
log: {level: debug}
egress: {loopback: [canary]}
processes: {handshake: 60s}
approvals: {notify: [sh, -c, "cat >>notified"]}
models:
  allow: [whisperer]
  keep: true
  light:
    - {name: small, provider: openai, model: m-1, base_url: "%s/v1", api_key_file: key}
`, model.URL))
	write(t, ears, "manifest.json", `{"id":"nosy"}`, "index.ts", nosy)
	write(t, dir, "manifest.yaml", fmt.Sprintf(`
name: canary
version: 1.0.0
owner: test
description: Sings.
runner: {kind: process, entry: plugin.py}
capabilities: [secrets, audit, storage, kb, http, artifacts]
feed: {allowed: [back], default: back}
http: {hosts: [%q]}
requires: {tools: ["noting@^1"]}
operations:
  tell: {kind: operator, effects: [kb_write, http_write, storage_write, noted], preview: true, brokered: true, secrets: {api_key: {}}}
  fail: {secrets: {api_key: {}}}
  back: {input: {type: object}}
  speak: {secrets: {api_key: {}}}
`, strings.TrimPrefix(echo.URL, "http://")), "plugin.py", fmt.Sprintf(`
import base64, json, os, sys, urllib.parse
from mortise import Context, Plugin, PluginError

plugin = Plugin("canary", version="1.0.0")
%s
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
    return {"forms": all, s: {"nested": [s]}, "exact": ((echoed["json"] if "json" in echoed else json.loads(echoed.get("body") or "{}")) or {}).get("all") == all and ctx.service("storage.get", {"key": "kept"})["value"] == all, "noted": noted}

def b64name(s):
    return s.encode().hex()

@tell.preview
def tell_preview(ctx: Context) -> dict:
    return {"forms": forms(ctx)[1]}

@plugin.tool
def fail(ctx: Context) -> dict:
    raise PluginError("it is " + " ".join(forms(ctx)[1]), code="TOLD", details={"forms": forms(ctx)[1]})

@plugin.tool
def speak(ctx: Context) -> int:
    s, all = forms(ctx)
    for form in all:
        ctx.log.info("it is " + form, form=form)
        ctx.progress("it is " + form)
        ctx.emit({"it is": form})
    for n in range(0, len(s), 9):
        ctx.emit(s[n : n + 9])
    for n in range(0, len(s), 9):
        ctx.emit({"kind": "piece", "delta": s[n : n + 9]})
    return len(all)

@plugin.tool
def back(ctx: Context) -> dict:
    return {"kept": ctx.service("storage.get", {"key": "kept"})}

plugin.run()
`, forms, echo.URL+"/"))
	write(t, low, "manifest.yaml", `
name: whisperer
version: 1.0.0
owner: test
description: Whispers.
runner: {kind: process, entry: plugin.py}
capabilities: [secrets, llm]
requires: {tools: [agent.memory, nosy]}
operations:
  whisper: {kind: operator, effects: [memory_write], description: Whisper., input: {type: object}, secrets: {api_key: {}}}
`, "plugin.py", `
import base64, urllib.parse
from mortise import Context, Plugin

plugin = Plugin("whisperer", version="1.0.0")
`+forms+`
@plugin.operator(effects=["memory_write"])
def whisper(ctx: Context) -> dict:
    all = forms(ctx)[1]
    ctx.call("agent.memory/upsert", {"key": "song", "content": "song " + " ".join(all)}, key="song")
    ctx.call("nosy/hear", {"all": all})
    ctx.service("llm.query_text", {"prompt": "song " + " ".join(all), "system_context": all[0], "grounding_data": all, "max_tokens": 64})
    return {"forms": all}

plugin.run()
`)
	write(t, other, "manifest.yaml", `
name: noting
version: 1.0.0
owner: test
description: Notes.
runner: {kind: process, entry: plugin.py}
operations:
  note: {kind: operator, effects: [noted], brokered: true}
`, "plugin.py", `
from mortise import Context, Plugin

plugin = Plugin("noting", version="1.0.0")

@plugin.operator(effects=["noted"])
def note(forms: list, ctx: Context) -> dict:
    return {"got": len(forms), "forms": forms}

plugin.run()
`)
	surfaces = map[string]string{}
	program := "mortise"
	if blind {
		program = "mortise-blind"
	}
	mortise := func(name string, stdin string, args ...string) (out string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], append([]string{program}, args...)...)
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
			if hostsLine.MatchString(line) {
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
	mortise("register nosy", "", "plugins", "register", ears)
	mortise("register whisperer", "", "plugins", "register", low)
	mortise("register canary", "", "plugins", "register", dir)
	mortise("secrets set", value+"\n", "secrets", "set", "api_key", "--plugin", "canary")
	mortise("secrets set, of another", value+"\n", "secrets", "set", "api_key", "--plugin", "whisperer")
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
	mortise("dry run", "", "run", "canary/tell", "--session", session, "--dry-run")
	mortise("dry run --json", "", "run", "canary/tell", "--session", session, "--dry-run", "--json")
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
	secretive := observed(t, home, blind, surfaces)
	feed := read(mortise("feeds create", "", "feeds", "create", "canary", "--json"), "id")
	mortise("feeds run", "", "feeds", "run", feed, "--wait", "--json")
	mortise("feeds list", "", "feeds", "list", "--json")
	mortise("feeds show", "", "feeds", "show", feed)
	mortise("feeds show --json", "", "feeds", "show", feed, "--json")
	if secretive != "" { // only without the guard there is one
		mortise("feeds show of one with a secret", "", "feeds", "show", secretive)
	}

	mortise("agents create", "", "agents", "create", "singer", "--prompt", "You sing.")
	mortise("plugins enable whisperer", "", "plugins", "enable", "whisperer", "--agent", "singer")
	mortise("plugins enable nosy", "", "plugins", "enable", "nosy", "--agent", "singer")
	mortise("chat", "", "chat", "singer", "--new", "--message", "whisper")
	mortise("chat --json", "", "chat", "singer", "--new", "--json", "--message", "whisper a song")
	mortise("agents memory", "", "agents", "memory", "singer")
	mortise("agents show", "", "agents", "show", "singer", "--json")
	var talks struct {
		Conversations []struct{ Session string } `json:"conversations"`
	}
	if text := mortise("agents conversations, all", "", "agents", "conversations", "singer", "--json"); json.Unmarshal([]byte(text), &talks) != nil || len(talks.Conversations) != 2 {
		t.Fatalf("%.500s", text)
	}
	for _, c := range talks.Conversations {
		mortise("agents conversations "+c.Session, "", "agents", "conversations", "singer", c.Session)
		mortise("agents conversations "+c.Session+" --json", "", "agents", "conversations", "singer", c.Session, "--json")
	}
	overheard(surfaces, surfaces["log"])
	model.mu.Lock()
	for who, text := range model.asked {
		surfaces["sent to a model, "+who] = text
	}
	model.mu.Unlock()

	file := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	maps.Copy(surfaces, membersOf(t, file))
	for name, text := range tables(t, home) {
		surfaces["table "+name] = numbers.ReplaceAllStringFunc(text, func(text string) string {
			var raw []byte
			for n := range strings.FieldsSeq(strings.Trim(text, "[]")) {
				c, _ := strconv.Atoi(n)
				raw = append(raw, byte(c))
			}
			return string(raw)
		})
	}
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

// observed has the canary write to a client that follows the call, and writes
// to the store what other parts of the host write there. It returns a feed
// whose input has a secret, which only a blind host accepts.
func observed(t *testing.T, home string, blind bool, surfaces map[string]string) (feed string) {
	t.Helper()
	s := secret.NewScrubber()
	if blind {
		s = secret.Blind()
	}
	var log bytes.Buffer
	a, err := app.Open(t.Context(), app.Options{Home: home, Scrubber: s, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	res, err := a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "canary/speak", Input: json.RawMessage(`{}`),
		Observe: func(e plugin.Event) {
			mu.Lock()
			defer mu.Unlock()
			surfaces["observed "+string(e.Kind)] += e.Message + " " + string(e.Data) + "\n"
			var text string
			var piece struct{ Kind, Delta string }
			if e.Kind == plugin.EventContent && json.Unmarshal(e.Data, &text) == nil {
				surfaces["observed in two parts"] += text
			} else if json.Unmarshal(e.Data, &piece) == nil && piece.Kind == "piece" {
				surfaces["observed in parts of objects"] += piece.Delta
			}
		},
	})
	if err != nil || string(res.Data) != "13" {
		t.Errorf("%s, %v", res.Data, err)
	}
	now := time.Now().UTC()
	body, _ := json.Marshal(map[string]string{"event": canary}) // a string
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		_, err := tx.InsertOutbox(store.OutboxRow{Tenant: "local", ID: "1", Agent: "singer", Plugin: "nosy", Event: "tool.after@v1", Body: body, CreatedAt: now, NextAt: now, Problem: canary}, 10)
		return err
	}); err != nil {
		t.Error(err)
	}
	for what, put := range map[string]func(tx store.Tx) error{
		"a key": func(tx store.Tx) error {
			return tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "local", Owner: "canary", Key: "k " + canary}, Value: []byte("1")})
		},
		"a memory": func(tx store.Tx) error {
			return tx.PutMemory(store.MemoryRow{Tenant: "local", Agent: "singer", Key: canary, Labels: []string{}, UpdatedAt: now})
		},
	} {
		if err := a.Store.Write(t.Context(), put); !blind && plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s with a secret in its name: %v", what, err)
		}
	}
	made, err := a.As(a.Principal).Feeds().Create(t.Context(), host.NewFeed{Plugin: "canary/back", Input: func(*plugin.Target) (json.RawMessage, error) {
		return json.Marshal(map[string]string{"text": canary})
	}})
	if blind && err != nil || !blind && plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a feed with a secret in its input: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	surfaces["log of a program"] = log.String()
	if !blind {
		return ""
	}
	return made.ID
}

// numbers are bytes as they are printed.
var numbers = regexp.MustCompile(`\[(?:\d{1,3} )+\d{1,3}\]`)

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
