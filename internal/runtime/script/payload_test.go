package script

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// transform opens a plugin with one transform handler and returns it.
func transform(t *testing.T, handler string) func(text string) (string, error) {
	t.Helper()
	s := opened(t, `export function register(ctx: any) { ctx.bus.on("session.message.received@v1", `+handler+`) }`, Environment{Plugin: "p"}).Subscriptions()
	return func(text string) (string, error) {
		p, err := s[0].Transform(context.Background(), payload(t, text))
		if p == nil {
			return "", err
		}
		return p.Text(), err
	}
}

func TestATransformReturnsANewPayload(t *testing.T) {
	const given = `{ "agentId" : "a","text":"h\u00e9\n", "n": 12345678901234567890, "list":[1,{"k":"v"},[2]], "o":{"x":{"y":1}}, "__proto__":{"z":1}, "1":"one" }`
	for name, c := range map[string]struct{ handler, want string }{
		"nothing":                 {`() => {}`, ""},
		"null":                    {`() => null`, ""},
		"the payload itself":      {`(e) => e`, ""},
		"a copy without a change": {`(e) => ({ ...e })`, ""},
		"one member":              {`(e) => ({ ...e, text: e.text + "!" })`, strings.Replace(given, `"h\u00e9\n"`, `"hé\n!"`, 1)},
		"the same text again":     {`(e) => ({ ...e, agentId: "a" })`, ""},
		"a new member":            {`(e) => ({ ...e, more: [true, null, 1.5] })`, strings.Replace(given, `"one" }`, `"one","more":[true,null,1.5] }`, 1)},
		"a member inside":         {`(e) => ({ ...e, o: { ...e.o, b: e.o.x } })`, strings.Replace(given, `{"x":{"y":1}}`, `{"x":{"y":1},"b":{"y":1}}`, 1)},
		"a longer list":           {`(e) => ({ ...e, list: [...e.list, "x"] })`, strings.Replace(given, `[1,{"k":"v"},[2]]`, `[1,{"k":"v"},[2],"x"]`, 1)},
		"a member less":           {`({ agentId, n, list, o, ["__proto__"]: p, ...e }) => e`, `{"1":"one","text":"h\u00e9\n"}`},
		"another one":             {`() => ({ a: 1, u: undefined, f() {}, d: new Date(0), nan: NaN })`, `{"a":1,"d":"1970-01-01T00:00:00.000Z","nan":null}`},
		"nothing in it":           {`() => ({})`, `{}`},
		"a part of it":            {`(e) => e.o`, `{"x":{"y":1}}`},
		"one moved":               {`(e) => ({ ...e, text: e.agentId })`, strings.Replace(given, `"h\u00e9\n"`, `"a"`, 1)},
		"after a promise":         {`async (e) => { await null; return { ...e, text: "late" } }`, strings.Replace(given, `"h\u00e9\n"`, `"late"`, 1)},
		"half a character":        {`(e) => ({ ...e, text: "\ud83d" })`, strings.Replace(given, `"h\u00e9\n"`, "\"\uFFFD\"", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := transform(t, c.handler)(given)
			if err != nil || got != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestAPayloadReadsLikeAnObject(t *testing.T) {
	const given = `{"agentId":"a","text":"x","none":null,"yes":true,"f":-1.5e3,"z":-0,"list":[1,{"k":"v"},["n"]],"o":{"x":{"y":"\ud83d\ude00\""}},"1":"one"}`
	for source, want := range map[string]string{
		`[e.text, e.none, e.yes, e.f, 1 / e.z, e.nope, e["1"], e[1]].join()`: `x,,true,-1500,-Infinity,,one,one`,
		`e.o.x.y`:               `😀"`,
		`Object.keys(e).join()`: `agentId,text,none,yes,f,z,list,o,1`,
		`JSON.stringify(e.list) + JSON.stringify(e.o)`:                                                                    `[1,{"k":"v"},["n"]]{"x":{"y":"😀\""}}`,
		`["text" in e, "nope" in e, e.hasOwnProperty("o"), Object.hasOwn(e, "q"), e.o === e.o, e.list === e.list].join()`: `true,false,true,false,true,true`,
		`Array.isArray(e.list) + e.list.map((x) => typeof x).join() + e.list.length`:                                      `truenumber,object,object3`,
		`String(e) + typeof e + (e instanceof Object)`:                                                                    `[object Object]objecttrue`,
		`(() => { const { text, ...rest } = e; return text + Object.keys(rest).length })()`:                               `x8`,
		`[Object.isFrozen(e), Object.isFrozen(e.o.x), Object.isFrozen(e.list)].join()`:                                    `true,true,true`,
		`String(e[Symbol("text")])`: `undefined`,
		`Object.entries(e.o.x)[0].join() + (() => { let s = ""; for (const k in e.o) s += k; return s })()`: `y,😀"x`,
		`structured(e)`: `no`,
	} {
		source = strings.ReplaceAll(source, "structured(e)", `(typeof structuredClone === "undefined" ? "no" : "yes")`)
		got, err := transform(t, `(e) => ({ got: `+source+` })`)(given)
		if p := payload(t, cmpOr(got, "{}")); err != nil || p.String("got") != want {
			t.Errorf("%s\ngot  %q, %v\nwant %q", source, p.String("got"), err, want)
		}
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func TestAPayloadIsFrozen(t *testing.T) {
	for _, write := range []string{
		`e.text = "x"`, `e.fresh = 1`, `delete e.text`, `e.o.x = 1`, `e.list.push(1)`, `e.list[0] = 1`, `e.list.length = 0`, `e.list[1].k = 2`,
		`Object.defineProperty(e, "text", { value: 1 })`, `Object.setPrototypeOf(e, null)`, `e.list.sort()`, `Object.assign(e, { text: 1 })`,
	} {
		got, err := transform(t, `(e) => { try { `+write+` } catch (x) { return { got: x instanceof TypeError ? "refused" : String(x) } } return { got: "written" } }`)(`{"text":"t","list":[3,{"k":1},2],"o":{}}`)
		if err != nil || got != `{"got":"refused"}` {
			t.Errorf("%s: %s, %v", write, got, err)
		}
	}
}

// A transform that changes its payload as published ones do, and returns it or nothing, gets
// one of its own: what it made of it counts, and no other handler sees it half done.
func TestATransformMayChangeAPayloadOfItsOwn(t *testing.T) {
	for handler, want := range map[string]string{
		`(e) => { e.text = "new"; return e }`:                                             `{"text":"new","list":[3,{"k":1}],"o":{}}`,
		`(e) => { e.list.length = 0; e.list.push(7) }`:                                    `{"text":"t","list":[7],"o":{}}`,
		`(e) => { e.list[1].k = 2; delete e.o; e.fresh = [e.list[0]] }`:                   `{"text":"t","list":[3,{"k":2}],"fresh":[3]}`,
		`async (e) => { await Promise.resolve(); e.o.x = 1; return { ...e, text: "u" } }`: `{"text":"u","list":[3,{"k":1}],"o":{"x":1}}`,
		`(e) => { e.list.sort(); return { text: "only" } }`:                               `{"text":"only"}`,
	} {
		f := transform(t, handler)
		for range 3 {
			if got, err := f(`{"text":"t","list":[3,{"k":1}],"o":{}}`); err != nil || got != want {
				t.Errorf("%s: %s, %v", handler, got, err)
			}
		}
	}
	// Its first run counts for nothing but what it did to its own state.
	f := transform(t, `(e) => { globalThis.runs = (globalThis.runs || 0) + 1; e.text = "run " + runs }`)
	for _, want := range []string{"run 2", "run 3"} {
		if got, err := f(`{"text":"t"}`); err != nil || got != `{"text":"`+want+`"}` {
			t.Errorf("%s, %v", got, err)
		}
	}
	// What fails for a reason of its own fails once.
	if _, err := transform(t, `(e) => { e.text = "x"; throw new Error("own") }`)(`{"text":"t"}`); err == nil || !strings.Contains(err.Error(), "own") {
		t.Errorf("%v", err)
	}
	// A number that JavaScript would round stays as it is, and the payload frozen.
	if _, err := transform(t, `(e) => { e.text = "x" }`)(`{"text":"t","id":12345678901234567}`); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
	// A guard is never run twice: what it is given is frozen.
	s := opened(t, `export function register(ctx) { ctx.bus.on("tool.before@v1", (e) => { e.toolName = "other"; return { allow: true } }) }`, Environment{}).Subscriptions()
	if v, err := s[0].Veto(t.Context(), payload(t, `{"toolName":"t","args":{}}`)); err == nil || v.Allow {
		t.Errorf("a guard changed what it was given: %+v", v)
	}
}

func TestAPayloadEndsWithItsEvent(t *testing.T) {
	f := transform(t, `(e) => { if (globalThis.kept) { try { kept.text } catch (x) { return { got: x.message } } } globalThis.kept = e }`)
	if _, err := f(`{"text":"secret"}`); err != nil {
		t.Fatal(err)
	}
	if got, err := f(`{"text":"other"}`); err != nil || !strings.Contains(got, "an event that is over") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestResultsThatAreNoneAreRefused(t *testing.T) {
	for result, says := range map[string]string{
		`"text"`: "returned a string", `7`: "returned a number", `[]`: "an array", `() => 1`: "a function", `Symbol("x")`: "returned a symbol", `true`: "returned a boolean",
		`(() => { const a = { ...e }; a.a = a; return a })()`: "circular", `({ ...e, a: 1n })`: "no JSON",
	} {
		_, err := transform(t, `(e) => (`+result+`)`)(`{"text":"x"}`)
		if plugin.CodeOf(err) != plugin.CodeInvalidOutput || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", result, err)
		}
	}
	_, err := transform(t, `(e) => ({ ...e, text: "x".repeat(1 << 21) })`)(`{"text":"x"}`)
	if plugin.CodeOf(err) != plugin.CodeOutputTooLarge {
		t.Errorf("2 MiB: %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	for answer, want := range map[string]string{
		`{ allow: true }`: "true", `{ allow: false }`: "false", `{ allow: false, reason: "no", payload: {} }`: "false no", `{ allow: true, reason: "why" }`: "true",
		`{ allow: true, payload: { ...e, args: { a: 1 } } }`: `true {"toolName":"t","args":{"a":1}}`, `{ allow: true, payload: e }`: "true",
		`undefined`: "nothing", `true`: "a boolean", `{}`: "allow is nothing", `{ allow: 1 }`: "allow is a number", `{ allow: true, payload: 7 }`: "a number",
	} {
		s := opened(t, `export const register = (ctx: any) => ctx.bus.on("tool.before@v1", (e) => (`+answer+`))`, Environment{}).Subscriptions()
		v, err := s[0].Veto(context.Background(), payload(t, `{"toolName":"t","args":{}}`))
		if err != nil {
			if plugin.CodeOf(err) != plugin.CodeInvalidOutput || !strings.Contains(err.Error(), want) || v.Allow {
				t.Errorf("%s: %v", answer, err)
			}
			continue
		}
		got := map[bool]string{true: "true", false: "false"}[v.Allow]
		if v.Reason != "" {
			got += " " + v.Reason
		}
		if v.Payload != nil {
			got += " " + v.Payload.Text()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}

// FuzzIndex holds the index of objects against the one of package event.
func FuzzIndex(f *testing.F) {
	f.Add(`{"a":1,"b":[1,{"c":"}\""}],"\u0061b":"\\","":{},"n":-1e9 , "t" : true }`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := event.NewPayload(text)
		if err != nil {
			return
		}
		members := appendMembers(nil, p.Text())
		i := 0
		for name, raw := range p.Members() {
			if i >= len(members) || members[i] != (member{name: name, raw: raw}) {
				t.Fatalf("member %d of %s: %q is %q; got %+v", i, text, name, raw, members)
			}
			i++
		}
		if i != len(members) {
			t.Errorf("%s has %d members; got %+v", text, i, members)
		}
	})
}
