package check_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/surface/check"
)

// hooked is a plugin of hooks with this code, and with these files beside it.
func hooked(t *testing.T, code string, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"manifest.json": `{"id":"careful","version":"1.0.0"}`, "index.ts": code})
	write(t, dir, more)
	return dir
}

// TestAGoodHookPasses: every handler hears the example of its event, and the
// report says what each made of it.
func TestAGoodHookPasses(t *testing.T) {
	t.Parallel()
	dir := hooked(t, `import { brief } from "./brief.json";
export function register(ctx) {
  ctx.bus.on("tool.before@v1", (e) => e.toolName === "shell/run" ? { allow: false, reason: "no shell" } : { allow: true });
  ctx.bus.on("tool.before@v1", (e) => ({ allow: true, payload: { ...e, args: { ...e.args, checked: true } } }));
  ctx.bus.on("prompt.assemble@v1", async (e) => ({ ...e, sections: [...e.sections, { key: "brief", content: await ctx.memory.get("brief") ?? brief }] }));
  ctx.bus.on("tool.after@v1", (e) => { ctx.logger.info("used", { tool: e.toolName, session: ctx.session.id }); });
  ctx.tools.add({ name: "twice", description: "Doubles.", schema: { type: "object", properties: { n: { type: "number" } } }, handler: ({ n = 1 }) => ({ n: 2 * n }) });
}`, map[string]string{
		"brief.json":                                 `{"brief": "Be brief."}`,
		"examples/twice.request.json":                `{"n": 21}`,
		"examples/tool.before@v1.input.json":         `{"agentId":"a","sessionId":"s","at":"2026-03-02T09:00:06Z","toolName":"shell/run","toolCallId":"c","args":{}}`,
		"examples/tool.before@v1.output.json":        `{"reason":"no shell","allow":false}`,
		"examples/tool.before@v1.other.input.json":   `{"agentId":"a","sessionId":"s","at":"2026-03-02T09:00:06Z","toolName":"x/y","toolCallId":"c","args":{"n":1}}`,
		"examples/tool.before@v1.other.output.json":  `{"allow":true,"payload":{"agentId":"a","sessionId":"s","at":"2026-03-02T09:00:06Z","toolName":"x/y","toolCallId":"c","args":{"n":1,"checked":true}}}`,
		"examples/prompt.assemble@v1.own.input.json": `{"agentId":"a","sessionId":"s","at":"2026-03-02T09:00:03Z","sections":[]}`,
	})
	got := outcomes(t, dir, check.Options{})
	for _, want := range []string{
		"pass careful: manifest",
		"pass careful: its code is what the manifest says",
		"pass careful: tool.before@v1#1: answers its event: it allowed it",
		"pass careful: tool.before@v1#2: answers its event: it changed args",
		"pass careful: prompt.assemble@v1#3: answers its event: it changed sections",
		"pass careful: tool.after@v1#4: answers its event: it heard it",
		`  log: info: used {"tool":"orders/find","session":"sess_2f6c19d0a4be"}`,
		"pass careful: examples/tool.before@v1.input.json: gives the answer that its example expects: it refused: no shell",
		"pass careful: examples/tool.before@v1.other.input.json: gives the answer that its example expects: it changed args",
		"pass careful: examples/prompt.assemble@v1.own.input.json: answers its event: it changed sections",
		"pass careful/twice: has schemas",
		"pass careful/twice: runs its example",
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("there is no %q", want)
		}
	}
	if n := slices.IndexFunc(got, func(line string) bool {
		return strings.HasPrefix(line, "fail ") || strings.HasPrefix(line, "warn ")
	}); n >= 0 || t.Failed() {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestAHandlerThatAnswersWhatItsEventHasNoUseForFails: a transform that leaves members out or gives them another type, and an
// option that there is not.
func TestAHandlerThatAnswersWhatItsEventHasNoUseForFails(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		`ctx.bus.on("prompt.assemble@v1", () => ({}));`:                                        "prompt.assemble@v1 carries",
		`ctx.bus.on("model.before@v1", (e) => ({ ...e, messages: "none" }));`:                  "model.before@v1 carries",
		`ctx.bus.on("tool.before@v1", (e) => ({ allow: true, payload: { ...e, args: [] } }));`: "tool.before@v1 carries",
		`ctx.bus.on("tool.after@v1", () => {}, { prioritiy: 1 });`:                             "did you mean priority?",
		`ctx.bus.on("tool.after@v1", () => {}, { deadline_ms: 1 });`:                           "did you mean deadlineMs?",
	} {
		got := strings.Join(outcomes(t, hooked(t, "export function register(ctx) {"+code+"}", nil), check.Options{}), "\n")
		if !strings.Contains(got, "fail ") || !strings.Contains(got, want) {
			t.Errorf("%s: there is no %q in\n%s", code, want, got)
		}
	}
}

// TestEveryExampleOfAnEventIsHeard: a handler of each event there is, which
// reads each of its fields.
func TestEveryExampleOfAnEventIsHeard(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	code.WriteString("export function register(ctx) {\n")
	for _, e := range event.Catalogue {
		answer := map[event.Shape]string{event.Transform: "return { ...e };", event.Veto: "return { allow: true };"}[e.Shape]
		code.WriteString(`ctx.bus.on("` + e.Name + `", (e) => {`)
		for _, f := range e.Fields {
			if !f.Optional {
				code.WriteString(` if (e.` + f.Name + ` === undefined) throw new Error("` + f.Name + `");`)
			}
		}
		code.WriteString(answer + " });\n")
	}
	code.WriteString("}\n")
	got := outcomes(t, hooked(t, code.String(), nil), check.Options{})
	for _, e := range event.Catalogue {
		if !slices.ContainsFunc(got, func(line string) bool {
			return strings.HasPrefix(line, "pass careful: "+e.Name+"#") && strings.Contains(line, "answers its event")
		}) {
			t.Errorf("%s is not among\n%s", e.Name, strings.Join(got, "\n"))
		}
	}
}

// TestABrokenHookIsShownItsPlace: what is wrong turns red with the file, the line
// and the column of the author's own code.
func TestABrokenHookIsShownItsPlace(t *testing.T) {
	t.Parallel()
	on := func(event, body string) string {
		return "export function register(ctx) {\n  ctx.bus.on(\"" + event + "\", (e) => {\n    " + body + "\n  });\n}\n"
	}
	cases := map[string]struct {
		code string
		more map[string]string
		want []string
	}{
		"syntax": {"export function register(ctx) {\n  const a == 1;\n}\n", nil, []string{
			"starts and describes itself: plugin_error:", "\nindex.ts:2:11: Expected \";\" but found \"==\"\n", "  const a == 1;\n            ^",
		}},
		"syntax in another file": {`import { a } from "./lib"; export function register(ctx) { a(ctx) }`, map[string]string{"lib.ts": "export const a = (ctx) => {\n  if (\n}\n"}, []string{
			"\nlib.ts:3:1: Unexpected \"}\"\n  }\n  ^",
		}},
		"a module of Node": {"import { readFileSync } from \"node:fs\";\nimport path from \"path\";\nexport function register() { readFileSync(path) }", nil, []string{
			`index.ts:1:30: "node:fs" is a module of Node`, `index.ts:2:18: "path" is a module of Node`, "\n  import path from \"path\";\n                   ^",
		}},
		"a package":  {`import { z } from "zod"; export function register() { z() }`, nil, []string{`"zod" is a package, and packages are not installed`}},
		"an address": {`import x from "https://example.com/x.js"; export function register() { x() }`, nil, []string{`is an address: nothing is downloaded`}},
		"register throws": {"export function register(ctx) {\n  const rules = undefined;\n  rules.first();\n}\n", nil, []string{
			"starts and describes itself: plugin_error:", "TypeError: ", "(index.ts:3:3)", "\n  rules.first();\n  ^", "\n  at register (index.ts:3:3)",
		}},
		"nothing is exported": {"const register = 1;", nil, []string{"exports no function named register"}},
		"nothing is heard":    {"export function register() {}", nil, []string{"register neither hears an event nor adds a tool"}},
		"no such event":       {on("tool.befor@v1", ""), nil, []string{`there is no event "tool.befor@v1"`}},
		"a handler throws": {on("tool.after@v1", "check(e);") + "function check(e) {\n  return e.result.items.length;\n}\n", nil, []string{
			"tool.after@v1#1: answers its event: plugin_error:", "(index.ts:7:", "\n  return e.result.items.length;\n", "\n  at check (index.ts:7:", "(index.ts:3:",
		}},
		"too slow":               {on("tool.before@v1", "for (;;) {}"), nil, []string{"tool.before@v1#1: answers its event: timeout: ", "50ms"}},
		"never settles":          {on("tool.before@v1", "return new Promise(() => {});"), nil, []string{"tool.before@v1#1: answers its event: timeout: "}},
		"no verdict":             {on("tool.before@v1", "return true;"), nil, []string{"tool.before@v1#1: answers its event: invalid_output: "}},
		"no payload":             {on("prompt.assemble@v1", "return 7;"), nil, []string{"prompt.assemble@v1#1: answers its event: invalid_output: "}},
		"another payload":        {on("prompt.assemble@v1", "return { ...e, sections: \"all\" };"), nil, []string{"prompt.assemble@v1#1: answers its event: invalid_output: what it returns is not what prompt.assemble@v1 carries", "/sections"}},
		"the payload is frozen":  {on("tool.before@v1", "e.toolName = 'other'; return { allow: true };"), nil, []string{"tool.before@v1#1: answers its event: plugin_error:", "TypeError", "(index.ts:3:"}},
		"another answer":         {on("tool.before@v1", "return { allow: true };"), map[string]string{"examples/tool.before@v1.a.input.json": "{}", "examples/tool.before@v1.a.output.json": `{"allow":false}`}, []string{`examples/tool.before@v1.a.input.json: gives the answer that its example expects: what came of it is {"allow":true}`}},
		"an example that throws": {on("tool.before@v1", "return { allow: e.args.customer.length > 0 };"), map[string]string{"examples/tool.before@v1.a.input.json": `{"args":{}}`}, []string{"examples/tool.before@v1.a.input.json: answers its event: hook_failed:", "(index.ts:3:", "\n  return { allow: "}},
		"an example of no JSON":  {on("tool.before@v1", "return { allow: true };"), map[string]string{"examples/tool.before@v1.a.input.json": `{`}, []string{"examples/tool.before@v1.a.input.json: answers its event: invalid_input:"}},
		"a tool throws": {"export function register(ctx) {\n  ctx.tools.add({ name: \"boom\", description: \"Fails.\", schema: {}, handler: () => {\n    throw new Error(\"boom\");\n  } });\n}\n", nil, []string{
			"/boom: runs its example: plugin_error: tool boom of plugin x-a-tool-throws-x: Error: boom (index.ts:3:", "\n  throw new Error(\"boom\");\n",
		}},
		"each time another": {"export function register(ctx) {\n  ctx.bus.on(\"tool.after@v1\", () => {});\n  for (let i = Math.floor(Math.random() * 200); i > 0; i--) ctx.bus.on(\"tool.after@v1\", () => {});\n}\n", nil, []string{
			"its code is what the manifest says: plugin_error: register did not do twice the same",
		}},
	}
	tree := t.TempDir()
	idOf := func(name string) string { return "x-" + strings.ReplaceAll(name, " ", "-") + "-x" }
	for name, c := range cases {
		dir := filepath.Join(tree, idOf(name))
		write(t, dir, map[string]string{"manifest.json": `{"id":"` + idOf(name) + `"}`, "index.ts": c.code})
		write(t, dir, c.more)
	}
	failed := map[string]string{} // by the id, which is in its name as in its path
	for _, line := range outcomes(t, tree, check.Options{}) {
		for name := range cases {
			if first, _, _ := strings.Cut(line, "\n"); strings.HasPrefix(line, "fail ") && strings.Contains(first, idOf(name)) {
				failed[name] += line + "\n"
			}
		}
	}
	for name, c := range cases {
		for _, want := range c.want {
			if !strings.Contains(failed[name], want) {
				t.Errorf("%s: there is no %q in\n%s", name, want, failed[name])
			}
		}
	}
}

// TestHooksHaveTheirRows: a failure names the requirement that it is about.
func TestHooksHaveTheirRows(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	write(t, tree, map[string]string{
		"a/manifest.json": "{}", "a/index.ts": "export function register(ctx) {",
		"b/manifest.json": "{}", "b/index.ts": `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { throw 1 }) }`,
	})
	report, err := check.Run(t.Context(), tree, check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"HK-07", "HK-03"} {
		if !slices.ContainsFunc(report.Results, func(r check.Result) bool { return r.Outcome == check.Fail && r.Row == row }) {
			t.Errorf("no failure of %s in %+v", row, report.Results)
		}
	}
}

// TestAPayloadWithoutAListenerIsPointedOut rather than passed.
func TestAPayloadWithoutAListenerIsPointedOut(t *testing.T) {
	t.Parallel()
	dir := hooked(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => {}) }`, map[string]string{"examples/tool.before@v1.a.input.json": "{}"})
	want := "warn careful: examples/tool.before@v1.a.input.json: answers its event: the plugin does not hear tool.before@v1"
	if got := outcomes(t, dir, check.Options{}); !slices.Contains(got, want) {
		t.Errorf("there is no %q in\n%s", want, strings.Join(got, "\n"))
	}
}

// TestAListenerThatReturnsAValueIsWarnedAbout: the value is ignored, which an author who meant to
// change something has to read.
func TestAListenerThatReturnsAValueIsWarnedAbout(t *testing.T) {
	t.Parallel()
	for _, e := range event.Catalogue {
		if e.Shape != event.Listener {
			continue
		}
		for body, kind := range map[string]string{`seen.push(e)`: "a number", `({ ...e, result: "[removed]" })`: "an object", `Promise.resolve(true)`: "a boolean"} {
			got := strings.Join(outcomes(t, hooked(t, `export function register(ctx) { const seen = []; ctx.bus.on("`+e.Name+`", (e) => `+body+`); }`, nil), check.Options{}), "\n")
			if !strings.Contains(got, "warn careful: "+e.Name+"#1: answers its event: ") || !strings.Contains(got, "returned "+kind+", which is ignored") || strings.Contains(got, "fail ") {
				t.Errorf("%s, %s: there is no warning in\n%s", e.Name, body, got)
			}
		}
	}
}
