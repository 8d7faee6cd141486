package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A failing is a request that fails, and what every language has to make of it.
type failing struct {
	method, url string
	status      int
	body        string // JSON
	after       string // Retry-After

	category  string // or a code of the host
	retryable bool
	afterMS   int64 // -1 for none; -2 for about an hour
	message   string
	code      string
}

var failings = []failing{
	{"POST", "", 400, `{"error":{"message":"no such field","code":"bad_field"}}`, "", "client_error", false, -1, "no such field", "bad_field"},
	{"POST", "", 401, `{"error":"invalid_grant","error_description":"expired"}`, "", "auth_error", false, -1, "expired", "invalid_grant"},
	{"POST", "", 403, `{"errors":[{"detail":"not yours","code":"denied"}]}`, "", "forbidden", false, -1, "not yours", "denied"},
	{"POST", "", 404, `{"message":"Not Found","status":"404"}`, "", "not_found", false, -1, "Not Found", "404"},
	{"POST", "", 409, `{"title":"conflict","type":"edit","error":{"code":409,"status":"ABORTED"}}`, "", "client_error", false, -1, "conflict", "ABORTED"},
	{"POST", "", 410, `{}`, "", "gone", false, -1, "", ""},
	{"POST", "", 422, `[1]`, "", "client_error", false, -1, "", ""},
	{"POST", "", 429, `{"error":{"message":"slow down","code":429}}`, "7", "rate_limited", true, 7000, "slow down", "429"},
	{"POST", "", 429, `{}`, "date", "rate_limited", true, -2, "", ""},
	{"POST", "", 429, `{}`, "Wed, 21 Oct 2015 07:28:00 GMT", "rate_limited", true, 0, "", ""},
	{"POST", "", 429, `{}`, "99999999999999999999", "rate_limited", true, 86400000, "", ""},
	{"POST", "", 429, `{}`, "soon", "rate_limited", true, -1, "", ""},
	{"POST", "", 429, `{}`, "-5", "rate_limited", true, -1, "", ""},
	{"POST", "", 500, `not JSON`, "", "server_error", true, -1, "", ""},
	{"POST", "", 502, `{"message":7,"code":""}`, "", "server_error", true, -1, "7", ""},
	{"POST", "", 503, `{"detail":"down"}`, "120", "server_error", true, 120000, "down", ""},
	{"POST", "", 504, `{"message":true,"reason":"late"}`, "", "server_error", true, -1, "", "late"},
	{"GET", "https://example.com/reset", 0, "", "", "unavailable", true, 0, "", ""},
	{"POST", "https://example.com/reset", 0, "", "", "unavailable", false, 0, "", ""},
	{"GET", "https://example.com/slow", 0, "", "", "timeout", true, 0, "", ""},
	{"POST", "https://example.com/slow", 0, "", "", "timeout", false, 0, "", ""},
	{"GET", "https://wrong.example.net/", 0, "", "", "unavailable", false, 0, "", ""},
	{"GET", "https://undeclared.example.net/", 0, "", "", "egress_denied", false, 0, "", ""},
}

// A failed is a failure as a plugin has it.
type failed struct {
	Category  string  `json:"category"`
	Retryable bool    `json:"retryable"`
	AfterMS   *int64  `json:"after"`
	Message   *string `json:"message"`
	Code      *string `json:"code"`
}

// patience is the timeout of a request in seconds: short where the answer never comes.
func patience(url string) float64 {
	if strings.HasSuffix(url, "/slow") {
		return 1
	}
	return 60
}

// fetcherPlugin is the one in Go.
func fetcherPlugin() {
	p := mortise.New("fetcher_go", "1.0.0")
	p.Capabilities = []string{"http"}
	mortise.Operator(p, "ask", "Ask.", func(c *mortise.Call, in struct {
		Cases [][]string `json:"cases"`
	}) ([]failed, error) {
		var all []failed
		for _, one := range in.Cases {
			res, err := c.HTTPFetch(mortise.HTTPRequest{Method: one[0], URL: one[1], TimeoutSeconds: patience(one[1])})
			var refused *mortise.ServiceError
			switch {
			case errors.As(err, &refused):
				all = append(all, failed{refused.Code, refused.Retryable, &refused.RetryAfterMS, nil, nil})
			case err != nil:
				return nil, err
			case res.Failure != nil:
				f := res.Failure
				all = append(all, failed{f.Category, f.Retryable, f.RetryAfterMS, f.Message, f.Code})
			default:
				all = append(all, failed{Category: "none: " + strconv.Itoa(res.StatusCode)})
			}
		}
		return all, nil
	}, mortise.Effects("http_write"), mortise.Timeout("5m"))
	p.Run()
}

const fetcherHead = `
version: 1.0.0
owner: test
description: Asks for what fails.
capabilities: [http]
http: {hosts: [example.com, wrong.example.net]}
`

// TestFailuresAreTheSameInEveryLanguage has one server fail in every way, and
// plugins in four languages say what they have of it.
func TestFailuresAreTheSameInEveryLanguage(t *testing.T) {
	t.Parallel()
	needPython(t)
	address, ca := vouching(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/reset":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			type wrapped interface{ NetConn() net.Conn }
			if inner, ok := conn.(wrapped); ok {
				_ = inner.NetConn().(*net.TCPConn).SetLinger(0)
			}
			conn.Close()
			return
		case "/slow":
			<-r.Context().Done() // until the client has given up
			return
		}
		f := failings[must(strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")))]
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		switch f.after {
		case "":
		case "date":
			w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		default:
			w.Header().Set("Retry-After", f.after)
		}
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, f.body)
	})
	home := t.TempDir()
	write(t, home, "mortise.yaml", fmt.Sprintf(`
policy: {allow: [{effects: ['*']}]}
egress: {map: {example.com: %q, wrong.example.net: %q}, ca_file: %q}
`, address, address, ca))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	python, shu, typescript, golang := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, golang, "manifest.yaml", "name: fetcher_go\nrunner: {kind: process, command: ["+strconv.Quote(self)+", fetcher]}"+fetcherHead)
	write(t, python, "manifest.yaml", "name: fetcher_python\nrunner: {kind: process, entry: plugin.py}"+fetcherHead, "plugin.py", `
from mortise import Context, Plugin, ServiceError

plugin = Plugin("fetcher_python", version="1.0.0", capabilities=["http"])

@plugin.operator(effects=["http_write"], timeout="5m")
def ask(cases: list[list[str]], ctx: Context) -> list[dict]:
    """Ask."""
    said = []
    for method, url in cases:
        try:
            f = ctx.http.fetch(url, method, timeout_seconds=1 if url.endswith("/slow") else 60)["failure"]
            said.append({"category": f["category"], "retryable": f["retryable"], "after": f["retry_after_ms"], "message": f["provider_message"], "code": f["provider_error_code"]})
        except ServiceError as e:
            said.append({"category": e.code, "retryable": e.retryable, "after": e.retry_after_ms, "message": None, "code": None})
    return said

plugin.run()
`)
	write(t, typescript, "manifest.yaml", "name: fetcher_typescript\nrunner: {kind: process, entry: plugin.ts}"+fetcherHead, "plugin.ts", `
import { Plugin, ServiceError, t } from "mortise";

const plugin = new Plugin("fetcher_typescript", { version: "1.0.0", capabilities: ["http"] });

plugin.operator("ask", {
  description: "Ask.",
  input: { cases: t.array(t.array(t.string())) },
  output: t.any(),
  effects: ["http_write"],
  timeout: "5m",
}, async ({ cases }, ctx) => {
  const said: unknown[] = [];
  for (const [method, url] of cases) {
    try {
      const f = (await ctx.http.fetch(url!, { method, timeout_seconds: url!.endsWith("/slow") ? 1 : 60 })).failure!;
      said.push({ category: f.category, retryable: f.retryable, after: f.retry_after_ms, message: f.provider_message, code: f.provider_error_code });
    } catch (e) {
      if (!(e instanceof ServiceError)) throw e;
      said.push({ category: e.code, retryable: e.retryable, after: e.retryAfterMs, message: null, code: null });
    }
  }
  return said;
});

plugin.run();
`)
	write(t, shu, "manifest.py", `
PLUGIN_MANIFEST = {"name": "fetcher_shu", "version": "1.0.0", "module": "plugins.fetcher_shu.plugin:Fetcher", "capabilities": ["http"], "chat_callable_ops": ["ask"]}
`, "plugin.py", `
from shu_plugin_sdk import HttpRequestFailed

HOSTS = ["https://example.com/", "https://wrong.example.net/"]

class Fetcher:
    name = "fetcher_shu"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["ask"]}, "cases": {"type": "array"}}}

    async def execute(self, params, context, host):
        said = []
        for method, url in params["cases"]:
            try:
                await host.http.fetch(method, url, timeout=1 if url.endswith("/slow") else 60)
            except HttpRequestFailed as e:
                after = e.retry_after_seconds
                said.append({"category": e.error_category, "retryable": e.is_retryable, "after": None if after is None else int(after * 1000),
                    "message": e.provider_message, "code": e.provider_error_code})
            except Exception as e:
                said.append({"category": e.code, "retryable": e.retryable, "after": e.retry_after_ms, "message": None, "code": None})
        return {"status": "success", "data": {"said": said}}
`)
	plugins := map[string]string{"fetcher_go": golang, "fetcher_python": python, "fetcher_shu": shu}
	if _, err := exec.LookPath("node"); err == nil {
		plugins["fetcher_typescript"] = typescript
	}
	a := open(t, home)
	cases := make([][]string, 0, len(failings))
	for i, f := range failings {
		url := f.url
		if url == "" {
			url = "https://example.com/" + strconv.Itoa(i)
		}
		cases = append(cases, []string{f.method, url})
	}
	input, err := json.Marshal(map[string]any{"cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range plugins {
		t.Run(name, func(t *testing.T) {
			register(t, a, dir, false)
			res, err := call(t, a, name+"/ask", string(input))
			if err != nil {
				t.Fatal(err)
			}
			said := res.Data
			var within struct {
				Data struct{ Said json.RawMessage }
				Said json.RawMessage
			}
			if name == "fetcher_shu" {
				if err := json.Unmarshal(said, &within); err != nil {
					t.Fatal(err)
				}
				if said = within.Data.Said; said == nil {
					said = within.Said
				}
			}
			var got []failed
			if err := json.Unmarshal(said, &got); err != nil || len(got) != len(failings) {
				t.Fatalf("%s: %v", res.Data, err)
			}
			for i, f := range failings {
				if published, differs := published[i]; name == "fetcher_shu" && differs {
					f.message, f.code, f.afterMS = published.message, published.code, -1
				}
				compareFailed(t, cases[i], f, got[i])
			}
		})
	}
}

// published are the cases that published Shu plugins know in words of their own
// (compatibility notes on HttpRequestFailed): the message is always text, at worst
// what Python shows of the body; the code is error.code, error.status or code; and
// a date in Retry-After is nothing.
var published = map[int]struct{ message, code string }{
	1:  {"expired", ""},
	2:  {"{'errors': [{'detail': 'not yours', 'code': 'denied'}]}", ""},
	3:  {"Not Found", ""},
	4:  {"{'title': 'conflict', 'type': 'edit', 'error': {'code': 409, 'status': 'ABORTED'}}", "409"},
	5:  {"{}", ""},
	6:  {"[1]", ""},
	8:  {"{}", ""},
	9:  {"{}", ""},
	10: {"{}", ""},
	11: {"{}", ""},
	12: {"{}", ""},
	13: {"not JSON", ""},
	14: {"{'message': 7, 'code': ''}", ""},
	16: {"{'message': True, 'reason': 'late'}", ""},
}

func compareFailed(t *testing.T, asked []string, f failing, got failed) {
	t.Helper()
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	after := int64(-1)
	if got.AfterMS != nil {
		after = *got.AfterMS
	}
	if f.afterMS == -2 && after > 3500_000 && after <= 3600_000 {
		after = -2
	}
	if got.Category != f.category || got.Retryable != f.retryable || after != f.afterMS || text(got.Message) != f.message || text(got.Code) != f.code {
		t.Errorf("%v %d %s: %s %t %d %q %q, want %s %t %d %q %q", asked, f.status, f.after, got.Category, got.Retryable, after, text(got.Message), text(got.Code),
			f.category, f.retryable, f.afterMS, f.message, f.code)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
