//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// proxyTraps tell of themselves and then do what is done without them, or hide,
// add and change members.
var proxyTraps = []string{
	`get(t, k, r) { log.push("get " + String(k)); return k === "n" ? "[hidden]" : Reflect.get(t, k) }`,
	`ownKeys(t) { log.push("ownKeys"); return [...Reflect.ownKeys(t), "more"] }`,
	`getOwnPropertyDescriptor(t, k) { log.push("describe " + String(k)); return { ...(Reflect.getOwnPropertyDescriptor(t, k) ?? { value: 9 }), enumerable: k !== "n", configurable: true } }`,
	`has(t, k) { log.push("has " + String(k)); return true }`,
	`getPrototypeOf(t) { log.push("proto"); return Object.prototype }`,
}

// proxyUses read a proxy p; those with a spread have it by every kind of variable.
var proxyUses = []string{
	`return { ...p }`, `return { ...p, z: 1 }`, `return { z: 1, ...p }`, `const { text, ...rest } = p; return { text, rest }`, `return Object.assign({}, p)`,
	`return Object.keys(p)`, `return Object.entries(p)`, `return JSON.stringify(p)`, `return [JSON.stringify({ ...p }), JSON.stringify(p)]`, `return Reflect.ownKeys(p)`,
	`const all = []; for (const k in p) all.push(k, p[k]); return all`, `return Object.getOwnPropertyDescriptors(p)`, `return ["text" in p, Object.hasOwn(p, "text")]`,
	`const q = p; return { ...q }`, `let q = p; const f = () => ({ ...q }); return f()`, `const f = (x) => ({ ...x }); return f(p)`, `const f = (a, b, c, d, x) => ({ ...x }); return f(1, 2, 3, 4, p)`,
	`let a = 1, b = 2, c = 3, d = 4, q = p; const r = { ...q }; return [a, b, c, d, r]`, `function* g(x) { yield { ...x } } return [...g(p)]`,
	`globalThis.q = p; const r = { ...globalThis.q }; delete globalThis.q; return r`, `return [p].map((x) => ({ ...x }))`, `return { ...new Proxy(p, {}) }`,
	`const q = new Proxy(p, { get(t, k, r) { log.push("outer " + String(k)); return Reflect.get(t, k, r) } }); return { ...q }`,
	`var q = p; { let q2 = q; return { ...q2, own: { ...p.o } } }`, `try { return { ...p } } finally { log.push("end") }`,
}

// A proxy of a payload, or of an object inside it, has its traps sprung by all
// that reads it, just as the proxy of a plain object has.
func TestProxiesOfPayloadsSpringTheirTraps(t *testing.T) {
	const given = `{"text":"one","n":1.5,"o":{"text":"in","x":{"y":1}},"list":[1,{"k":2}]}`
	for mask := range 1 << len(proxyTraps) {
		if bits.OnesCount(uint(mask)) > 2 {
			continue
		}
		var traps []string
		for i, trap := range proxyTraps {
			if mask&(1<<i) != 0 {
				traps = append(traps, trap)
			}
		}
		var body strings.Builder
		for _, use := range proxyUses {
			fmt.Fprintf(&body, "run(%q, (t, log) => { const p = new Proxy(t, { %s }); %s });\n", use, strings.Join(traps, ", "), use)
		}
		// What a view gives has to be what a plain frozen object gives.
		got, err := transform(t, `(e) => {
			const wrong = [];
			const tried = (t, use) => {
				const log = [];
				let result;
				try { result = JSON.stringify(use(t, log)) } catch (x) { result = String(x) }
				return result + " " + log.join();
			};
			const run = (name, use) => {
				for (const view of [e, e.o]) {
					const got = tried(view, use), want = tried(Object.freeze(JSON.parse(JSON.stringify(view))), use);
					if (got !== want) wrong.push(name, got, want);
				}
			};
			`+body.String()+`
			return { wrong };
		}`)(given)
		if err != nil || got != `{"wrong":[]}` {
			t.Errorf("traps %05b: %.3000s, %v", mask, strings.ReplaceAll(got, `","`, "\"\n\""), err)
		}
	}
}
