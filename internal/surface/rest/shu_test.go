package rest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

const finder = `
class P:
    def get_schema(self):
        return {"type": "object", "required": ["op"], "additionalProperties": False, "properties": {
            "op": {"type": "string", "enum": ["find", "lie", "fail"]}, "n": {"type": "integer"}}}

    def get_output_schema(self):
        return {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def execute(self, params, context, host):
        if params["op"] == "fail":
            raise ValueError("no way")
        from shu_plugin_sdk import PluginResult
        if params["op"] == "lie":
            return PluginResult(status="success", data={"n": "none"})
        return PluginResult(status="success", data={"n": params.get("n", 0)}, diagnostics=["it was looked for"])
`

// The contract of Shu: POST plugins/{name}/execute with parameters and user_context, in
// its own envelope and with its own statuses (SH-05, SH-06, SH-07).
func TestShuExecutes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	b := begin(t, rest.Options{})
	dir := filepath.Join(t.TempDir(), "finder")
	b.write(filepath.Join(dir, "manifest.py"), `PLUGIN_MANIFEST = {"name": "finder", "version": "1.0.0", "module": "plugins.finder.plugin:P", "description": "Finds.", "capabilities": []}`+"\n")
	b.write(filepath.Join(dir, "plugin.py"), finder)
	report, err := b.app.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	execute := func(body string, headers ...string) answer {
		t.Helper()
		return b.ask("mrt_ann", "POST", "/api/v1/plugins/finder/execute", body, headers...)
	}
	a := execute(`{"parameters":{"op":"find","n":9007199254740993},"user_context":{"user_id":"ann"}}`, "Idempotency-Key", "k")
	if a.status != 200 || a.at("data", "status") != "success" || !strings.Contains(a.text, `"n":9007199254740993`) || strings.Contains(a.text, "looked for") {
		t.Error(a)
	}
	if again := execute(`{"parameters":{"op":"find","n":9007199254740993},"user_context":{"user_id":"ann"}}`, "Idempotency-Key", "k"); again.text != a.text {
		t.Errorf("%s, then %s", a, again)
	}
	a = execute(`{"parameters":{"op":"fail"}}`) // whatever a plugin raises is 200
	if a.status != 200 || a.at("data", "status") != "error" || a.at("data", "error", "message") == nil {
		t.Error(a)
	}
	a = execute(`{"parameters":{"op":"lie"}}`)
	if a.status != 500 || a.at("error", "code") != "HTTP_500" || a.at("error", "message", "error") != "output_validation_error" || !strings.HasPrefix(a.at("error", "error_id").(string), "ERR-") {
		t.Error(a)
	}
	a = execute(`{"parameters":{"op":"find","n":"x"}}`)
	if a.status != 422 || a.at("error", "code") != "HTTP_422" || a.at("error", "message", "error") != "validation_error" {
		t.Error(a)
	}
	a = b.ask("mrt_ann", "POST", "/api/v1/plugins/nothing/execute", `{"parameters":{}}`)
	if a.status != 404 || a.at("error", "code") != "HTTP_404" {
		t.Error(a)
	}
	a = b.ask("mrt_ann", "POST", "/api/v1/plugins/desk/execute", `{"parameters":{}}`)
	if a.status != 422 {
		t.Error(a)
	}
}

// Clients of the published host send the arguments as params, and name an agent: both are taken,
// and neither says who asks.
func TestShuTakesWhatPublishedClientsSend(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	want := b.ask("mrt_ann", "POST", "/api/v1/plugins/solo/execute", `{"parameters":{"text":"x"},"user_context":{"permissions":["basic"]}}`)
	for body, status := range map[string]int{
		`{"params":{"text":"x"}}`: 200, `{"params":{"text":"x"},"agent_key":"helper"}`: 200, `{"params":{"text":"x"},"agent_key":null}`: 200,
		`{"parameters":{"text":"x"},"agent_key":"root"}`:                             200,
		`{"params":{"text":"x"},"parameters":{"text":"x"}}`:                          422,
		`{"params":{"text":"x"},"agent_key":"ann","user_context":{"user_id":"ben"}}`: 403,
		`{"params":{"text":"x"},"user_context":{"permissions":[]}}`:                  403,
		`{"params":{"text":"x"},"agent_key":1}`:                                      422, `{"params":{"text":"x"},"agent":"a"}`: 422, `{"params":{"words":"x"}}`: 422,
	} {
		a := b.ask("mrt_ann", "POST", "/api/v1/plugins/solo/execute", body)
		if a.status != status || status == 200 && a.text != want.text {
			t.Errorf("%s is answered %s, want %d", body, a, status)
		}
	}
}

// The user_context of a call narrows who asks, and never widens it.
func TestUserContextNarrows(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	execute := func(user string) answer {
		t.Helper()
		return b.ask("mrt_ann", "POST", "/api/v1/plugins/solo/execute", `{"parameters":{"text":"x"},"user_context":`+user+`}`)
	}
	for user, status := range map[string]int{
		`{}`: 200, `{"user_id":"ann"}`: 200, `{"permissions":["basic","other"]}`: 200,
		`{"permissions":[]}`: 403, `{"permissions":["other"]}`: 403, `{"user_id":"root"}`: 403, `{"user_id":"ben","permissions":["basic"]}`: 403,
		`{"roles":["admin"]}`: 422,
	} {
		if a := execute(user); a.status != status {
			t.Errorf("%s is answered %s, want %d", user, a, status)
		}
	}
}

// What a quota refuses has the shape that Shu gives its 429, and is counted for each user.
func TestQuotasOfShuAndOfTheAPI(t *testing.T) {
	t.Parallel()
	b := beginWith(t, rest.Options{}, "quotas: {default: {month: 40}, principals: {ann: {day: 3}}, plugins: {solo/say: {minute: 1}}}\n", app.Options{})
	n := 0
	execute := func(plugin string) answer {
		t.Helper()
		n++ // an answer of the cache does not count
		return b.ask("mrt_ann", "POST", "/api/v1/plugins/"+plugin+"/execute", fmt.Sprintf(`{"parameters":{"text":"%d"}}`, n))
	}
	if a := execute("solo"); a.status != 200 {
		t.Fatal(a)
	}
	a := execute("solo")
	if a.status != 429 || a.at("error", "code") != "HTTP_429" || a.at("error", "message", "error") != "rate_limited" || a.header.Get("RateLimit-Limit") != "" {
		t.Errorf("%s %v", a, a.header)
	}
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); after < 1 || after > 60 || fmt.Sprint(a.at("error", "message", "retry_after")) != a.header.Get("Retry-After") {
		t.Errorf("%s %v", a, a.header)
	}
	for _, text := range []string{"one", "two"} {
		b.is(b.execute("mrt_ann", "upper", text), 200, "")
	}
	a = execute("solo") // a minute is refused first, and then a day is what there is none of
	if a.status != 429 || a.at("error", "message", "error") != "rate_limited" {
		t.Error(a)
	}
	a = b.is(b.execute("mrt_ann", "line", "three", "Idempotency-Key", "k"), 429, "budget_exceeded")
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); after < 1 || after > 86400 {
		t.Errorf("%s %v", a, a.header)
	}
	if len(b.lines()) != 0 {
		t.Errorf("it ran: %q", b.lines())
	}
	b.is(b.execute("mrt_ben", "upper", "one"), 200, "")
	uses := b.is(b.ask("mrt_ann", "GET", "/api/v1/quotas", ""), 200, "")
	if !strings.Contains(uses.text, `{"of":"all operations","period":"daily","limit":3,"used":3,`) || !strings.Contains(uses.text, `"of":"solo/say"`) {
		t.Error(uses)
	}
}

// The headers of a day that is used up are those of Shu.
func TestADayOfShuThatIsUsedUp(t *testing.T) {
	t.Parallel()
	b := beginWith(t, rest.Options{}, "quotas: {plugins: {solo: {day: 1}}}\n", app.Options{})
	for i, status := range []int{200, 429} {
		a := b.ask("mrt_ann", "POST", "/api/v1/plugins/solo/execute", fmt.Sprintf(`{"parameters":{"text":"%d"}}`, i))
		if a.status != status {
			t.Fatal(a)
		}
		if status == 200 {
			continue
		}
		h := a.header
		reset, _ := strconv.Atoi(h.Get("RateLimit-Reset"))
		if a.at("error", "message", "error") != "quota_exceeded" || a.at("error", "message", "period") != "daily" ||
			h.Get("RateLimit-Limit") != "1;w=86400" || h.Get("RateLimit-Remaining") != "0" || reset < 1 || reset > 86400 || h.Get("Retry-After") != h.Get("RateLimit-Reset") {
			t.Errorf("%s %v", a, h)
		}
	}
}
