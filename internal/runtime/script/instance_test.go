package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

func TestWaysToRegister(t *testing.T) {
	const on = `(ctx: any) { ctx.bus.on("tool.after@v1", () => {}) }`
	for _, source := range []string{
		`export function register` + on, `export async function register` + on, `export const register = (ctx: any) => { ctx.bus.on("tool.after@v1", () => {}) }`,
		`export default { register` + on + ` }`, `export default function ` + on, `export default function register` + on,
		`export async function register(ctx: any) { await Promise.resolve(); ctx.bus.on("tool.after@v1", () => {}) }`,
	} {
		if n := len(opened(t, source, Environment{}).Subscriptions()); n != 1 {
			t.Errorf("%s: %d subscriptions", source, n)
		}
	}
	for source, says := range map[string]string{
		`export const other = 1`: "exports no function named register", `export default 7`: "exports no function", `export const register = 7`: "exports no function",
		`throw new Error("at once")`: "at once (index.ts:1:11)", `export async function register() { throw "late" }`: "thrown: late",
		`export function register(ctx) { ctx.bus.on("tool.befor@v1", () => {}) }`:                            `no event "tool.befor@v1"`,
		`export function register(ctx) { ctx.bus.on("tool.before@v1") }`:                                     "a handler is a function, not undefined",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { failureMode: "never" }) }`: `not "never"`,
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { deadlineMs: 1e9 }) }`:      "between 1 and 1000",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { priority: NaN }) }`:        "finite number",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { priority: -1/0 }) }`:       "finite number",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { priority: "50" }) }`:       "finite number",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { priority: null }) }`:       "finite number",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { prioritiy: 5 }) }`:         `no option "prioritiy"; did you mean priority?`,
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { failure_mode: "fail" }) }`: `no option "failure_mode"; did you mean failureMode?`,
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, { timeout: 5 }) }`:           "its options are priority, failureMode, before, after, deadlineMs",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, 50) }`:                       "are an object",
		`export function register(ctx) { ctx.bus.on("tool.before@v1", () => {}, null) }`:                     "are an object",
		`export function register(ctx) { ctx.bus.on("tool.befor@v1", () => {}, {}) }`:                        "did you mean tool.before@v1?",
		`export function register(ctx) { ctx.tools.add({ name: "a b", schema: {}, handler() {} }) }`:         "begins with a letter",
		`export function register(ctx) { ctx.tools.add({ name: "t", handler() {} }) }`:                       "no schema",
		`export function register(ctx) { ctx.bus = 1 }`:                                                      "TypeError",
		`export function register(ctx) { ctx.memory.get = 1 }`:                                               "TypeError",
		`export function register(ctx) { ctx.session.id = "x" }`:                                             "TypeError",
		`export function register() { return new Promise(() => {}) }`:                                        "nothing will settle",
		`export function register() { eval("1") }`:                                                           "eval",
		`export function register() { Function("return 1")() }`:                                              "eval",
		`export function register() { setTimeout(() => {}, 1) }`:                                             "setTimeout",
		`export function register() { return import(String("./x.ts")) }`:                                     "x.ts",
	} {
		instance, err := Open(context.Background(), compiled(t, source), Environment{Plugin: "p", Limits: patient})
		if err == nil {
			instance.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestWhatIsSaidOfASubscription(t *testing.T) {
	s := opened(t, `export function register(ctx) {
		ctx.bus.on("tool.before@v1", () => ({ allow: true }), { priority: 0, failureMode: "skip", before: "b", after: ["c", "d"], deadlineMs: 20 });
		const off = ctx.bus.on("tool.after@v1", () => { throw new Error("heard") });
		off();
	}`, Environment{Plugin: "p"}).Subscriptions()
	if *s[0].Priority != 0 || s[0].Mode != event.Skip || !s[0].ModeSaid || fmt.Sprint(s[0].Before, s[0].After) != "[b] [c d]" || s[0].Name == "" {
		t.Errorf("the subscription is %+v", s[0])
	}
	if err := s[1].Listen(context.Background(), payload(t, `{}`)); err != nil {
		t.Errorf("a handler that was taken off: %v", err)
	}
}

func TestABusCallsScripts(t *testing.T) {
	bus := event.NewBus("support", event.Options{})
	defer bus.Close()
	for n, word := range []string{"one", "two"} {
		i := opened(t, fmt.Sprintf(`export function register(ctx) { ctx.bus.on("channel.message.out@v1", (e) => ({ ...e, text: e.text + " %s" }), { priority: %d }) }`, word, 9-n), Environment{Plugin: word})
		for _, s := range i.Subscriptions() {
			if _, err := bus.On(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := bus.Transform(context.Background(), event.ChannelMessageOut, payload(t, `{"agentId":"support","text":"zero"}`))
	if err != nil || p.String("text") != "zero two one" {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestExceptionsHaveTheirPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "lib/rules.ts", "interface Rule { name: string }\n\nexport function check(rule: Rule | undefined): string {\n  return rule!.name.trim();\n}\n")
	write(t, dir, "index.ts", "import { check } from \"./lib/rules\";\n\nexport function register(ctx: any): void {\n  ctx.bus.on(\"tool.after@v1\", (e: { a: string }) => {\n    check(undefined);\n  });\n}\n")
	program, err := Compile(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := Open(context.Background(), program, Environment{Plugin: "p", Limits: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	err = instance.Subscriptions()[0].Listen(context.Background(), payload(t, `{}`))
	var e *Exception
	if !errors.As(err, &e) || plugin.CodeOf(err) != plugin.CodePluginError || !strings.Contains(err.Error(), "(lib/rules.ts:4:") {
		t.Fatalf("the error is %v", err)
	}
	lines := strings.Split(e.Stack(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "at check (lib/rules.ts:4:") || !strings.Contains(lines[1], "index.ts:5:5") {
		t.Errorf("the stack is\n%s", e.Stack())
	}
	if !strings.Contains(string(plugin.AsError(err).Details), "lib/rules.ts:4:") {
		t.Errorf("the details are %s", plugin.AsError(err).Details)
	}
}

func TestWhatIsThrown(t *testing.T) {
	for thrown, says := range map[string]string{
		`new TypeError("bad")`: "TypeError: bad", `"text"`: "thrown: text", `null`: "thrown: null", `undefined`: "thrown: undefined", `7`: "thrown: 7",
		`({ code: 7 })`: `thrown: {"code":7}`, `Symbol("s")`: "thrown: a symbol", `({ name: "Own", message: "m" })`: "Own: m", `Object.create(null)`: "thrown: {}",
		`Object.assign(new Error("x"), { message: { toString() { throw 1 } } })`: "Error: ",
	} {
		s := opened(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { throw `+thrown+` }) }`, Environment{}).Subscriptions()
		err := s[0].Listen(context.Background(), payload(t, `{}`))
		if plugin.CodeOf(err) != plugin.CodePluginError || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", thrown, err)
		}
	}
}

func TestTools(t *testing.T) {
	i := opened(t, `export function register(ctx) {
		ctx.tools.add({ name: "add", description: "adds", schema: { type: "object" }, handler: async ({ a, b }) => ({ sum: a + b }) });
		ctx.tools.add({ name: "none", schema: {}, handler: () => {} });
		ctx.tools.add({ name: "odd", schema: {}, handler: () => () => 1 });
		ctx.tools.add({ name: "long", schema: {}, handler: () => "x".repeat(2 << 20) });
	}`, Environment{Plugin: "p"})
	if tools := i.Tools(); len(tools) != 4 || tools[0].Name != "add" || tools[0].Description != "adds" || string(tools[0].Schema) != `{"type":"object"}` {
		t.Errorf("the tools are %+v", tools)
	}
	for _, c := range []struct {
		tool, input, want string
		code              plugin.Code
	}{
		{"add", `{"a":1,"b":2}`, `{"sum":3}`, ""}, {"none", `null`, `null`, ""}, {"odd", `1`, "", plugin.CodeInvalidOutput},
		{"long", `1`, "", plugin.CodeOutputTooLarge}, {"other", `1`, "", plugin.CodeNotFound}, {"add", `{`, "", plugin.CodeInvalidInput},
	} {
		got, err := i.Call(context.Background(), c.tool, json.RawMessage(c.input))
		if string(got) != c.want || plugin.CodeOf(err) != c.code {
			t.Errorf("%s(%s): %s, %v", c.tool, c.input, got, err)
		}
	}
}

func TestContext(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	i := opened(t, `export function register(ctx) {
		ctx.bus.on("session.message.received@v1", async (e) => {
			console.log("a", { b: 1 }, new Error("c").message);
			ctx.logger.warn("careful", { n: 1 });
			const found = await ctx.memory.search("blue", { limit: 3 });
			return { got: [await ctx.memory.get("sky"), await ctx.memory.get("no"), found.length, ctx.session.id, ctx.session.type, ctx.session.channel, ctx.session.turn, typeof Date.now(), Math.random() < 1].join() };
		});
	}`, Environment{
		Plugin: "p", Memory: shelf{"sky": "is blue"},
		Session: func(context.Context) Session { return Session{"sess_1", "direct", "slack", 3} },
		Log: func(level, message string, fields json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, level+" "+message+" "+string(fields))
		},
	})
	p, err := i.Subscriptions()[0].Transform(context.Background(), payload(t, `{}`))
	if err != nil || p.String("got") != "is blue,,1,sess_1,direct,slack,3,number,true" {
		t.Errorf("got %v, %v", p, err)
	}
	if got := strings.Join(lines, "|"); got != `info a {"b":1} c |warn careful {"n":1}` {
		t.Errorf("the log has %s", got)
	}
}

func TestALogIsBounded(t *testing.T) {
	n, longest, begun := 0, 0, time.Now()
	i := opened(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { for (let i = 0; i < 200; i++) ctx.logger.info("x".repeat(5000), { y: "z".repeat(5000) }) }) }`,
		Environment{Log: func(_, message string, fields json.RawMessage) {
			n, longest = n+1, max(longest, len(message), len(fields))
		}})
	if err := i.Subscriptions()[0].Listen(context.Background(), payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	// The bound grows with the time that passed: a busy machine cannot break it.
	if n < logBurst || n > logBurst+20+2*int(time.Since(begun)/logEvery) || longest > maxMessage+100 {
		t.Errorf("%d lines of at most %d bytes", n, longest)
	}
}

// A stuck memory takes as long as it may.
type stuck struct{ entered func(ctx context.Context) }

func (s stuck) Get(ctx context.Context, _ string) (string, bool, error) {
	if s.entered != nil {
		s.entered(ctx)
		return "done", true, nil
	}
	<-ctx.Done()
	return "", false, ctx.Err()
}

func (s stuck) Search(context.Context, string, int) (json.RawMessage, error) {
	panic("a fault of the host")
}

func TestWaitingForTheHostIsBoundedAndNotCounted(t *testing.T) {
	source := `export function register(ctx) { ctx.bus.on("session.message.received@v1", async () => {
		const got = []; for (let i = 0; i < 3; i++) try { got.push(await ctx.memory.get("k")) } catch (e) { got.push(e.message) } return { got: got.join("; ") } }) }`
	short := patient
	short.Wait = 120 * time.Millisecond
	i := opened(t, source, Environment{Memory: stuck{}, Limits: short})
	p, err := i.Subscriptions()[0].Transform(context.Background(), payload(t, `{}`))
	if err != nil || !strings.Contains(p.String("got"), "could not answer; the plugin has waited for the host") {
		t.Errorf("got %v, %v", p, err)
	}
	i = opened(t, source, Environment{Memory: stuck{func(context.Context) {
		watch.look(0) // it may not have seen the run yet
		watch.look(time.Hour)
	}}})
	if p, err = i.Subscriptions()[0].Transform(context.Background(), payload(t, `{}`)); err != nil || p.String("got") != "done; done; done" {
		t.Errorf("got %v, %v", p, err)
	}
	i = opened(t, strings.ReplaceAll(source, "get(", "search("), Environment{Memory: stuck{}})
	if p, err = i.Subscriptions()[0].Transform(context.Background(), payload(t, `{}`)); err != nil || !strings.Contains(p.String("got"), "could not answer") {
		t.Errorf("a memory that panics: %v, %v", p, err)
	}
}

func TestAPluginDoesNotEnterItself(t *testing.T) {
	var again error
	var s []event.Subscription
	i := opened(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", async () => { await ctx.memory.get("k") }) }`,
		Environment{Plugin: "p", Memory: stuck{func(ctx context.Context) { again = s[0].Listen(ctx, payload(t, `{}`)) }}})
	s = i.Subscriptions()
	if err := s[0].Listen(context.Background(), payload(t, `{}`)); err != nil || plugin.CodeOf(again) != plugin.CodeLimitExceeded {
		t.Errorf("outside %v, inside %v", err, again)
	}
}

func TestAStoppedPluginStartsAfresh(t *testing.T) {
	i := opened(t, `let n = 0; export function register(ctx) {
		ctx.bus.on("session.message.received@v1", (e) => { n++; return { n } })
		ctx.bus.on("tool.after@v1", () => { for (;;) {} }, { deadlineMs: 20 })
	}`, Environment{Plugin: "p"})
	f, loop := i.Subscriptions()[0].Transform, i.Subscriptions()[1].Listen
	for _, c := range []struct{ text, want string }{{"a", `{"n":1}`}, {"b", `{"n":2}`}, {"loop", ""}, {"c", `{"n":1}`}} {
		if c.want == "" {
			if err := loop(context.Background(), payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeTimeout || i.Err() != nil {
				t.Errorf("a loop: %v, %v", err, i.Err())
			}
			continue
		}
		if p, err := f(context.Background(), payload(t, `{"text":"`+c.text+`"}`)); err != nil || p.Text() != c.want {
			t.Errorf("%s: %v, %v", c.text, p, err)
		}
	}
}

func TestAPluginThatHasToBeEndedIsDisabled(t *testing.T) {
	i := opened(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { [].indexOf.call({ length: 2 ** 53 - 1 }, 1) }) }`,
		Environment{Plugin: "p", Limits: Limits{Deadline: 50 * time.Millisecond, Start: time.Minute}})
	listen := i.Subscriptions()[0].Listen
	if err := listen(context.Background(), payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeTimeout || !strings.Contains(err.Error(), "disabled for this agent") {
		t.Errorf("the first time: %v", err)
	}
	if err := listen(context.Background(), payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeDisabled || i.Err() == nil {
		t.Errorf("the second time: %v, %v", err, i.Err())
	}
}

func TestAPluginThatIsStoppedAgainAndAgainIsDisabled(t *testing.T) {
	program := compiled(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { for (;;) {} }, { deadlineMs: 20 }) }`)
	i, err := Open(context.Background(), program, Environment{Plugin: "p", Limits: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	call := func(ctx context.Context, want plugin.Code, disabled bool) {
		t.Helper()
		if err := i.Subscriptions()[0].Listen(ctx, payload(t, `{}`)); plugin.CodeOf(err) != want || (i.Err() != nil) != disabled {
			t.Errorf("want %s: %v, %v", want, err, i.Err())
		}
	}
	for n := 1; n <= maxStops; n++ {
		short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		call(short, plugin.CodeTimeout, false) // does not count
		cancel()
		call(context.Background(), plugin.CodeTimeout, n == maxStops)
	}
	call(context.Background(), plugin.CodeDisabled, true)
}

func TestDeadlinesOfTheCaller(t *testing.T) {
	i := opened(t, `export function register(ctx) { ctx.bus.on("tool.after@v1", () => { for (;;) {} }, { deadlineMs: 3600000 }) }`,
		Environment{Limits: Limits{MaxDeadline: time.Hour, Start: time.Minute, grace: time.Minute}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := i.Subscriptions()[0].Listen(ctx, payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeTimeout {
		t.Errorf("code that its caller gives 20 ms: %v", err)
	}
	if err := i.Subscriptions()[0].Listen(ctx, payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeTimeout {
		t.Errorf("with a context that is over: %v", err)
	}
}

func TestManyPluginsAtOnce(t *testing.T) {
	program := compiled(t, vetoSource)
	before := mapped.Load()
	var all []*Instance
	for range 1000 {
		i, err := Open(context.Background(), program, Environment{Plugin: "p", Limits: patient})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	p := payload(t, toolBefore)
	var callers sync.WaitGroup
	for w := range 8 {
		callers.Go(func() {
			for n := w; n < len(all); n += 4 { // two callers for each
				if v, err := all[n].Subscriptions()[0].Veto(context.Background(), p); err != nil || v.Allow {
					t.Errorf("plugin %d: %+v, %v", n, v, err)
				}
			}
		})
	}
	callers.Wait()
	for _, i := range all {
		i.Close()
		i.Close()
	}
	if err := all[0].Subscriptions()[0].Listen; err != nil {
		t.Error("a veto is no listener")
	}
	if _, err := all[0].Subscriptions()[0].Veto(context.Background(), p); plugin.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("after Close: %v", err)
	}
	if after := mapped.Load(); after != before {
		t.Errorf("%d arenas are left", after-before)
	}
}

func TestFunctionsThatTakeTooMuchOfTheStackAreRefused(t *testing.T) {
	var names []string
	for n := range 9000 {
		names = append(names, fmt.Sprintf("a%d=%d", n, n))
	}
	program := compiled(t, "export function register() { function f() { var "+strings.Join(names, ",")+"; return eval } f() }")
	_, err := Open(context.Background(), program, Environment{Limits: patient})
	if err == nil || !strings.Contains(err.Error(), "variables and temporary values") {
		t.Errorf("the error is %v", err)
	}
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCodeThatCannotBeRun(t *testing.T) {
	for source, says := range map[string]string{
		"const a = 1;\nconst b == 2;\n":                             "index.ts:2:9: Expected \";\" but found \"==\"\n  const b == 2;\n          ^",
		`import fs from "fs"; export const register = () => fs`:     `"fs" is a module of Node`,
		`import * as p from "node:path"; export const register = p`: `"node:path" is a module of Node`,
		`import "fs/promises"; export const register = 1`:           `"fs/promises" is a module of Node`,
		`import x from "https://example.com/x.js"; export { x }`:    `"https://example.com/x.js" is an address`,
		`import x from "lodash"; export { x }`:                      `"lodash" is a package`,
		`import x from "/etc/passwd"; export { x }`:                 `"/etc/passwd" is an absolute path`,
		`import x from "../outside"; export { x }`:                  `"../outside" is outside of the plugin's directory`,
		`import x from "./link.ts"; export { x }`:                   "outside of the plugin's directory",
		`const x = require("child_process"); export { x }`:          `"child_process" is a module of Node`,
		`module.exports = { register() {} }`:                        "is a CommonJS module",
		`export const x = await 1`:                                  "Top-level await",
		`import { a } from "./gone"; export { a }`:                  `"./gone"`,
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "plugin")
		write(t, parent, "outside.ts", "export default secret secret")
		write(t, dir, "index.ts", source)
		if err := os.Symlink(filepath.Join(parent, "outside.ts"), filepath.Join(dir, "link.ts")); err != nil {
			t.Fatal(err)
		}
		_, err := Compile(t.Context(), dir)
		if plugin.CodeOf(err) != plugin.CodePluginError || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", source, err)
		}
	}
	if _, err := Compile(t.Context(), t.TempDir()); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("an empty directory: %v", err)
	}
}
