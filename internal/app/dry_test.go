package app_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// dryPlugin has every effect that the host's services have, and tries the
// network by itself.
const dryPlugin = `
import socket
from mortise import Context, Plugin

plugin = Plugin("busy", version="1.0.0")
runs = 0

@plugin.operator(effects=["http_write", "storage_write", "cursor_write", "secret_write", "kb_write", "schedule_write"], brokered=True)
def work(url: str, host: str, port: int, ctx: Context) -> dict:
    """Do everything."""
    global runs
    runs += 1
    try:
        socket.create_connection((host, port), 2).close()
        alone = "connected"
    except OSError as error:
        alone = type(error).__name__
    read = ctx.service("http.fetch", {"url": url})
    sent = ctx.service("http.fetch", {"url": url, "method": "POST", "json": {"n": 1}})
    ctx.service("storage.put", {"key": "n", "value": 1})
    ctx.service("cursor.set", {"kb_id": "notes", "value": "now"})
    ctx.service("secrets.set", {"name": "token", "value": "a value that is secret"})
    ctx.service("kb.ingest_text", {"kb_id": "notes", "title": "News", "content": "One two three.", "source_id": "n1"})
    ctx.service("scheduler.enqueue", {"operation": "later", "params": {}, "run_at": "2026-12-24T00:00:00Z"})
    ctx.service("cache.set", {"key": "n", "value": 1})
    ctx.service("audit.log", {"event": "worked"})
    below = ctx.call("busy/note", {}, key="below")
    return {"alone": alone, "read": read["status_code"], "sent": sent["status_code"], "runs": runs,
            "kept": ctx.service("storage.get", {"key": "n"})["value"], "below": below["data"]}

@plugin.operator(effects=["storage_write"], brokered=True)
def note(ctx: Context) -> int:
    """Keep something, and say what its caller kept."""
    ctx.service("storage.put", {"key": "note", "value": 2})
    return ctx.service("storage.get", {"key": "n"})["value"]

@plugin.operator(effects=["storage_write"], brokered=True)
def later() -> str:
    """Nothing."""
    return "later"

plugin.run()
`

// tables are the rows of all tables of a host's database, but for those of the
// ledger and of the hosts themselves.
func tables(t *testing.T, home string) map[string]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "mortise.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	for _, name := range rowsOf(t, db, `SELECT name FROM sqlite_master WHERE type = 'table'`) {
		if !slices.Contains([]string{"[entries]", "[chains]", "[nodes]"}, name) {
			all[name] = strings.Join(rowsOf(t, db, `SELECT * FROM "`+strings.Trim(name, "[]")+`"`), "\n")
		}
	}
	return all
}

// rowsOf are the rows of a query as text, in an order of their own.
func rowsOf(t *testing.T, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(values))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// runDry calls an operation, dry where there is something to note that in.
func runDry(t *testing.T, a *app.App, operation, input string, dry *plugin.DryRecorder) (plugin.Result, error) {
	t.Helper()
	return a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: operation, Input: json.RawMessage(input), Key: "one", Dry: dry,
	})
}

// A plugin does in a dry run all that it can do: a listener on the same machine
// hears of nothing, every table is as it was but for the ledger's, and the call
// that counts afterwards does it all for the first time.
func TestADryRunLeavesNoTrace(t *testing.T) {
	t.Parallel()
	var connections, posts atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		_, _ = w.Write([]byte("hello"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	a := caged(t, "egress: {loopback: [busy]}\npolicy: {allow: [{operations: [busy], untrusted: allow, effects: [http_write, storage_write, cursor_write, secret_write, kb_write, schedule_write]}]}\n", fmt.Sprintf(`
name: busy
version: 1.0.0
owner: test
description: Does everything.
isolation: tenant
runner: {kind: process, entry: plugin.py}
capabilities: [http, storage, cursor, secrets, kb, scheduler, cache, audit]
http: {hosts: [%q]}
requires: {tools: [busy]}
operations:
  work:
    kind: operator
    effects: [http_write, storage_write, cursor_write, secret_write, kb_write, schedule_write]
    brokered: true
  note: {kind: operator, effects: [storage_write], brokered: true}
  later: {kind: operator, effects: [storage_write], brokered: true, secrets: {token: {allowed_scope: user}}}
`, address), dryPlugin)
	if _, err := a.Knowledge.Create(t.Context(), "local", kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(address, ":")
	input := fmt.Sprintf(`{"url":"http://%s/","host":%q,"port":%s}`, address, host, port)
	before, had := tables(t, a.Home), len(entries(t, a))

	for range 2 { // the key is not used up, nor does anything stay in memory
		res, err := runDry(t, a, "busy/work", input, &plugin.DryRecorder{})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"alone":"PermissionError","read":200,"sent":200,"runs":1,"kept":1,"below":1}`; string(res.Data) != want {
			t.Errorf("it answered %s, want %s", res.Data, want)
		}
		var done []string
		for _, c := range res.DryRun.Changes {
			done = append(done, c.Operation+" "+c.Service+"."+c.Method+" "+c.Effect)
		}
		want := []string{
			"busy/work http.fetch ", "busy/work http.fetch http_write", "busy/work storage.put storage_write", "busy/work cursor.set cursor_write",
			"busy/work secrets.set secret_write", "busy/work kb.ingest_text kb_write", "busy/work scheduler.enqueue schedule_write",
			"busy/work cache.set ", "busy/work audit.log ", "busy/note storage.put storage_write",
		}
		if !slices.Equal(done, want) {
			t.Errorf("changes:\n%s", strings.Join(done, "\n"))
		}
		if raw, _ := json.Marshal(res); strings.Contains(string(raw), "a value that is secret") {
			t.Errorf("it tells the secret: %s", raw)
		}
	}
	for name, rows := range tables(t, a.Home) {
		if rows != before[name] {
			t.Errorf("table %s was\n%s\nand is\n%s", name, before[name], rows)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if _, err := os.Stat(filepath.Join(a.Home, "secrets.key")); err == nil {
		t.Error("a key was made")
	}
	all, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all[:len(all)-had] {
		var rec plugin.CallRecord
		if err := json.Unmarshal(e.Body, &rec); err != nil || e.Kind != plugin.EntryCallSucceeded || !rec.Dry {
			t.Errorf("entry %s dry %v: %v", e.Kind, rec.Dry, err)
		}
	}
	if n := len(all) - had; n != 4 { // two calls, and the one below each
		t.Errorf("%d entries", n)
	}

	res, err := runDry(t, a, "busy/work", input, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"alone":"PermissionError","read":200,"sent":200,"runs":1,"kept":1,"below":1}`; string(res.Data) != want || res.DryRun != nil || res.Replayed {
		t.Errorf("for real it answered %s", res.Data)
	}
	if connections.Load() == 0 || posts.Load() != 1 {
		t.Errorf("%d connections and %d posts", connections.Load(), posts.Load())
	}
	changed := 0
	for name, rows := range tables(t, a.Home) {
		if rows != before[name] {
			changed++
		}
	}
	if changed < 4 { // calls, effects, what is kept, documents, secrets
		t.Errorf("only %d tables changed", changed)
	}
}

// Where it asked for that, a dry run reads outside, and does nothing else there.
func TestADryRunThatReadsSendsNothing(t *testing.T) {
	t.Parallel()
	var got, sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			got.Add(1)
		} else {
			sent.Add(1)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	a := caged(t, "egress: {loopback: [fetcher]}\npolicy: {allow: [{operations: [fetcher], effects: [http_write]}]}\n", fmt.Sprintf(`
name: fetcher
version: 1.0.0
owner: test
description: Fetches.
runner: {kind: process, entry: plugin.py}
capabilities: [http]
http: {hosts: [%q]}
operations:
  go: {kind: operator, effects: [http_write], brokered: true}
`, address), `
from mortise import Context, Plugin

plugin = Plugin("fetcher", version="1.0.0")

@plugin.operator(effects=["http_write"], brokered=True)
def go(url: str, ctx: Context) -> list[int]:
    """Get and put."""
    return [ctx.service("http.fetch", {"url": url, "method": method})["status_code"] for method in ("GET", "PUT")]

plugin.run()
`)
	res, err := runDry(t, a, "fetcher/go", `{"url":"`+server.URL+`"}`, &plugin.DryRecorder{Reads: true})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Data) != "[418,200]" || got.Load() != 1 || sent.Load() != 0 || len(res.DryRun.Changes) != 1 {
		t.Errorf("%s, %d read, %d sent, %+v", res.Data, got.Load(), sent.Load(), res.DryRun.Changes)
	}
}
