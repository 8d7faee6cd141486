package rest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// tellerPlugin says something while it works. A call waits for a file of the name that it
// is given, where it is given one, and leaves another at its end.
func tellerPlugin() {
	p := mortise.New("teller", "1.0.0")
	type story struct {
		Parts int    `json:"parts"`
		Wait  string `json:"wait,omitempty"`
		Pad   int    `json:"pad,omitempty"`
	}
	tell := func(c *mortise.Call, in story) (map[string]any, error) {
		c.Progress(mortise.Progress{Message: "it begins\nsoon"})
		for n := range in.Parts {
			c.Emit(map[string]any{"part": n, "pad": strings.Repeat("x", in.Pad)})
		}
		for in.Wait != "" {
			if _, err := os.Stat(in.Wait); err == nil {
				break
			}
			select {
			case <-c.Done():
				_ = os.WriteFile(in.Wait+".stopped", nil, 0o600)
				return nil, c.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
		if in.Wait != "" {
			_ = os.WriteFile(in.Wait+".done", nil, 0o600)
		}
		return map[string]any{"parts": in.Parts}, nil
	}
	mortise.Tool(p, "tell", "Tell.", tell)
	mortise.Operator(p, "write", "Tell, and leave something.", tell, mortise.Effects("db_write"))
	p.Run()
}

// withTeller registers it.
func (b *bench) withTeller() *bench {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "teller")
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf("name: teller\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, teller, x]}\n", self))
	report, err := b.app.Registry.Register(b.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || report.Registered[0].NotEnabled != nil {
		b.Fatal(err, report)
	}
	return b
}

const (
	tellPath  = "/api/v1/operations/teller/tell:execute"
	writePath = "/api/v1/operations/teller/write:execute"
)

// What a plugin says is told as it says it, and the answer at the end is the one that
// there is without a stream.
func TestACallIsStreamed(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{}).withTeller()
	for _, path := range []string{tellPath, writePath} {
		gate := filepath.Join(t.TempDir(), "gate")
		f := b.followed("mrt_ann", "POST", path, fmt.Sprintf(`{"input":{"parts":3,"wait":%q}}`, gate), "Idempotency-Key", path)
		e := f.event()
		if e.name != "progress" || e.body["message"] != "it begins\nsoon" {
			t.Errorf("%s begins with %s", path, e)
		}
		for n := range 3 {
			if e := f.event(); e.name != "content" || fmt.Sprint(e.body["part"]) != fmt.Sprint(n) {
				t.Errorf("part %d is %s", n, e)
			}
		}
		b.write(gate, "") // it was told before the call has ended
		result := f.event()
		if result.name != "result" || result.body["status"] != "succeeded" {
			t.Errorf("%s ends with %s", path, result)
		}
		if got := f.ends(); got != "" && strings.Contains(got, "interrupted") {
			t.Errorf("after that comes %q", got)
		}
		plain := b.is(b.ask("mrt_ann", "POST", path, fmt.Sprintf(`{"input":{"parts":3,"wait":%q}}`, gate), "Idempotency-Key", path), 200, "succeeded")
		if plain.header.Get("Idempotency-Replayed") != "true" || strings.TrimSpace(plain.text) != result.data {
			t.Errorf("without a stream it is %s, and with one %s", plain, result.data)
		}
	}
}

// What is refused before the call is answered as ever; what becomes of the call is in the stream.
func TestARefusalIsAnEventOnceACallBegan(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	stream := []string{"Accept", "text/event-stream"}
	b.is(b.execute("mrt_reader", "line", "x", stream...), 403, "scope_denied")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute", `{"inputs":1}`, stream...), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/calls/0192aaaa-0000-7000-8000-000000000001:cancel", "", stream...), 404, "not_found")
	for op, want := range map[string]string{"denied": "problem", "fail": "result", "nothing": "problem", "upper": "result"} {
		f := b.followed("mrt_ann", "POST", "/api/v1/operations/desk/"+op+":execute", `{"input":{"text":"x"}}`)
		plain := b.execute("mrt_ann", op, "x")
		e := f.event()
		if e.name != want || e.body["code"] != plain.at("code") || e.body["status"] == nil || fmt.Sprint(e.body["status"]) != fmt.Sprint(plain.at("status")) {
			t.Errorf("%s ends with %s, and without a stream with %s", op, e, plain)
		}
	}
	if a := b.ask("mrt_ann", "POST", "/api/v1/operations/desk/upper:execute", `{"input":{"text":"x"}}`, "Accept", "application/json, text/event-stream"); a.header.Get("Content-Type") != "application/json" {
		t.Errorf("who would rather have JSON is answered %v", a.header)
	}
}

// A reader that goes away stops a call that only its answer was wanted of, and no other.
func TestAReaderOfACallGoesAway(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{}).withTeller()
	home := t.TempDir()
	for path, end := range map[string]string{tellPath: ".stopped", writePath: ".done"} {
		gate := filepath.Join(home, strings.ReplaceAll(path, "/", "_"))
		f := b.followed("mrt_ann", "POST", path, fmt.Sprintf(`{"input":{"parts":1,"wait":%q}}`, gate))
		f.event()
		f.event() // it runs
		f.leave()
		if end == ".done" {
			b.write(gate, "")
		}
		testwait.Until(t, path+" leaves "+end, func() bool { _, err := os.Stat(gate + end); return err == nil })
	}
}

// A reader that stops reading is cut within the time for a write: the call with effects
// goes on, and is found.
func TestAReaderOfACallStalls(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{WriteTime: 300 * time.Millisecond}).withTeller()
	events, _, err := b.app.As(b.app.Principal).Events().Open(t.Context(), host.EventQuery{Types: []string{"call.succeeded", "call.failed"}})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	body := `{"input":{"parts":1500,"pad":20000}}`
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer mrt_ann\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", writePath, len(body), body)
	wait, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	e, err := events.Next(t.Context(), wait)
	if err != nil || e.Type != "call.succeeded" { // and nothing was said to be too much
		t.Errorf("the call ends with %+v, %v", e, err)
	}
}

const iterating = `
import asyncio
class P:
    def get_schema(self):
        return {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def execute(self, params, context, host):
        async def parts():
            yield {"type": "progress", "message": "it begins"}
            yield {"type": "content", "data": "one"}
            yield {"status": "success", "data": {"n": params.get("n", 0)}, "error": None}
        return parts()
`

// What an iterator of a Shu plugin yields becomes server-sent events (SH-13).
func TestAnIteratorOfShuIsStreamed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	b := begin(t, rest.Options{})
	dir := filepath.Join(t.TempDir(), "finder")
	b.write(filepath.Join(dir, "manifest.py"), `PLUGIN_MANIFEST = {"name": "finder", "version": "1.0.0", "module": "plugins.finder.plugin:P", "description": "Finds.", "capabilities": []}`+"\n")
	b.write(filepath.Join(dir, "plugin.py"), iterating)
	report, err := b.app.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, path := range []string{"/api/v1/plugins/finder/execute", "/api/v1/operations/finder/execute:execute"} {
		body := `{"parameters":{"n":7}}`
		if strings.Contains(path, "operations") {
			body = `{"input":{"n":7}}`
		}
		f := b.followed("mrt_ann", "POST", path, body)
		var all []string
		for {
			e := f.event()
			all = append(all, e.name+" "+e.data)
			if e.name == "result" || e.name == "problem" {
				break
			}
		}
		if len(all) != 3 || !strings.HasPrefix(all[0], "progress ") || !strings.HasPrefix(all[1], "content ") || !strings.Contains(all[1], "one") || !strings.Contains(all[2], `"n":7`) {
			t.Errorf("%s tells %q", path, all)
		}
	}
}
