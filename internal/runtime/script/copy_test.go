//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// What is done to a copy c of the payload e, by functions of the language that
// see the difference between objects.
var copyUses = []string{
	`Object.keys(c).join()`, `JSON.stringify(c)`, `JSON.stringify(Object.entries(c))`, `JSON.stringify({ ...c, z: 1 })`, `JSON.stringify(Object.assign({}, c))`,
	`c.text = "x"; JSON.stringify(c)`, `c.fresh = 1; c.text = 2; c.fresh = 3; JSON.stringify(c)`, `delete c.text; JSON.stringify(c) + ("text" in c)`, `delete c.nope`,
	`delete c.text; c.text = "again"; JSON.stringify(c)`, `c[7] = 1; c.a = 2; c[3] = 4; Object.keys(c).join()`, `c[""] = 1; JSON.stringify(c)`,
	`[typeof c, String(c), c.constructor === Object, c instanceof Object, Object.getPrototypeOf(c) === Object.prototype].join()`,
	`[Object.isExtensible(c), Object.isFrozen(c), Object.isSealed(c)].join()`,
	`Object.freeze(c); try { c.text = 1 } catch (x) { "" + x + Object.isFrozen(c) + JSON.stringify(c) }`, `Object.seal(c); c.text = 1; JSON.stringify(c) + Object.isSealed(c)`,
	`Object.preventExtensions(c); try { c.other = 1 } catch (x) { "" + x + JSON.stringify(c) }`,
	`JSON.stringify(Object.getOwnPropertyDescriptors(c))`, `JSON.stringify(Object.getOwnPropertyDescriptor(c, "text"))`, `"" + Object.getOwnPropertyDescriptor(c, "nope")`,
	`Object.defineProperty(c, "text", { get: () => "got" }); c.text + JSON.stringify(c)`, `Object.defineProperty(c, "text", { enumerable: false }); Object.keys(c).join() + c.text`,
	`Object.defineProperty(c, "hidden", { value: 1 }); Object.keys(c).join() + c.hidden`, `Object.defineProperty(c, "text", { value: 1 }); JSON.stringify(Object.getOwnPropertyDescriptor(c, "text"))`,
	`Object.setPrototypeOf(c, { inherited: 1 }); c.inherited + Object.keys(c).join()`, `Object.setPrototypeOf(c, null); [c.toString, c.text].join()`, `c.__proto__ === Object.prototype`,
	`const s = Symbol("s"); c[s] = 1; [c[s], Object.getOwnPropertySymbols(c).length, Object.keys(c)].join()`,
	`let all = ""; for (const k in c) all += k; all`, `let all = ""; for (const k in c) { delete c.o; c.late = 1; all += k } all`,
	`const d = Object.create(c); d.text = "own"; [d.text, c.text, d.o === c.o, Object.keys(d)].join()`, `const { text, ...rest } = c; text + JSON.stringify(rest)`,
	`c.self = c; [c.self === c, Object.keys(c)].join()`, `c.o === e.o`, `c.list === e.list`, `[c.hasOwnProperty("text"), Object.hasOwn(c, "nope"), "toString" in c, c.propertyIsEnumerable("o")].join()`,
	`for (let i = 0; i < 30; i++) c["m" + i] = i; JSON.stringify(c)`, `for (let i = 0; i < 30; i++) c.text = "t" + i; JSON.stringify(c)`, `c.o = undefined; JSON.stringify(c) + ("o" in c)`,
	`Object.defineProperty(Object.prototype, "trap", { configurable: true, set(v) { this.sprung = v } }); c.trap = 1; delete Object.prototype.trap; JSON.stringify(c)`,
	`const m = new WeakMap([[c, 1]]); c.text = 2; m.get(c)`, `Reflect.ownKeys(c).join()`, `new Proxy(c, {}).text`, `Object.groupBy([c], (x) => x.text).one[0] === c`,
	`class A extends (function (o) { return o }) { #p = 7; static read(o) { return o.#p } } new A(c); A.read(c) + JSON.stringify(c)`,
	`const kept = []; for (let i = 0; i < 100; i++) { const d = { ...e, i }; d.self = d; kept.push(d) } JSON.stringify(kept.map((d) => d.i + d.text))`,
	`const copy = { ...e, ...{ text: "two" }, o: { ...e.o, b: 2 } }; JSON.stringify(copy)`, `JSON.stringify([{ ...e }, { ...e, a: { ...e } }])`,
	`const f = (x, y) => ({ ...x, y: { ...y } }); JSON.stringify(f(e.o, e))`, `JSON.stringify({ ...(globalThis.g = {}, e) }) + JSON.stringify(globalThis.g)`,
	`let n = 0; const y = { get a() { return ++n } }; JSON.stringify({ ...y, ...e }) + n`, `JSON.stringify({ a: 1, ...e, text: 2 })`, `JSON.stringify({ ...null, ...undefined, ..."ab", ...e })`,
}

// TestACopyIsLikeAnyObject does the same to {...e}, which takes nothing out of
// the payload, and to a copy that the language makes.
func TestACopyIsLikeAnyObject(t *testing.T) {
	const given = `{"text":"one","n":1.5,"o":{"x":{"y":1}},"list":[1,{"k":2}],"none":null}`
	answers := func(made, use string) string {
		i := opened(t, fmt.Sprintf(`export function register(ctx: any) { ctx.bus.on("session.message.received@v1", (e: any) => {
			const c: any = %s; const use = () => { %s }; return { got: String(use()) } }) }`, made, returned(use)), Environment{})
		p, err := i.Subscriptions()[0].Transform(context.Background(), payload(t, given))
		if err != nil {
			return err.Error()
		}
		if made == "{...e}" && cap(i.engine.(*machine).copies) == 0 {
			t.Errorf("with %s, the engine copied member by member", use)
		}
		return p.String("got")
	}
	for _, use := range copyUses {
		got, want := answers("{...e}", use), answers("Object.assign({}, e)", use)
		if got != want || strings.Contains(got, "Error: ") && !strings.Contains(got, "TypeError: ") {
			t.Errorf("%s\ngot  %s\nwant %s", use, got, want)
		}
	}
}

// returned has the last statement of a text return its value.
func returned(text string) string {
	i := strings.LastIndex(text, "; ")
	if i < 0 {
		return "return " + text
	}
	switch last := text[i+2:]; {
	case strings.HasPrefix(last, "try {"), strings.Contains(last, "} catch (x) {"):
		return text[:i+2] + strings.Replace(last, "catch (x) { ", "catch (x) { return ", 1)
	case strings.LastIndex(last, "} ") >= 0 && (strings.Contains(text, "for (") || strings.Contains(text, "class A")):
		j := i + 2 + strings.LastIndex(last, "} ") + 2
		return text[:j] + "return " + text[j:]
	default:
		return text[:i+2] + "return " + last
	}
}

func TestACopyOutlivesItsEvent(t *testing.T) {
	f := transform(t, `(e) => {
		const g = globalThis;
		if (!g.kept) { g.kept = { ...e, own: 1 }; g.inner = { deep: { ...e } }; g.weak = new WeakRef(e); g.lost = { ...e }; g.lost = null; return }
		let over = ""; try { g.kept.o.x } catch (x) { over = x.message }
		let weak = g.weak.deref(); try { weak = weak && weak.text } catch (x) { weak = "over" }
		return { got: [g.kept.text, g.kept.own, g.inner.deep.text, Object.keys(g.kept), over, weak ?? "gone"].join() }
	}`)
	if _, err := f(`{"text":"first","o":{"x":1}}`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := f(`{"text":"second","o":{"x":2}}`)
		if err != nil || !strings.HasPrefix(got, `{"got":"first,1,first,text,o,own,this payload is of an event that is over`) || strings.Contains(got, "second") {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func TestACopyThatChangesWhileItIsRead(t *testing.T) {
	for handler, want := range map[string]string{
		`(e) => { const c = { ...e, a: { toJSON() { c.b = 2; delete c.text; return 1 } } }; return c }`: `{"o":{},"a":1,"b":2}`,
		`(e) => { const c = { ...e, a: { toJSON() { c.b = 2; return 1 } } }; return c }`:                `{"text":"one","o":{},"a":1,"b":2}`,
		`(e) => { const c = { ...e, text: undefined }; return c }`:                                      `{"o":{}}`,
		`(e) => ({ ...e, a: 1, b: 2, c: 3, d: 4, f: 5 })`:                                               `{"text":"one","o":{},"a":1,"b":2,"c":3,"d":4,"f":5}`,
		`(e) => { const c = { ...e, text: "two" }; return { ...c, o: c } }`:                             `{"text":"two","o":{"text":"two","o":{}}}`,
		`async (e) => { const c = { ...e }; await null; c.text = "later"; return c }`:                   `{"text":"later","o":{}}`,
		`(e) => { const c = { ...e.o }; c.p = 1; return c }`:                                            `{"p":1}`,
		`(e) => { const o = e.o; return { ...o, q: 1 } }`:                                               `{"q":1}`,
		`(e) => [1, 2].map((n) => ({ ...e, n })).at(-1)`:                                                `{"text":"one","o":{},"n":2}`,
	} {
		if got, err := transform(t, handler)(`{"text":"one","o":{}}`); err != nil || got != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", handler, got, err, want)
		}
	}
}
