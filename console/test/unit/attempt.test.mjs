// One key for one filled form, until its end was seen.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { Attempt } = await load("attempt.ts");
const run = (more = {}) => ({ plugin: "bank", operation: "pay", input: { amount: 1 }, key: "", fresh: false, session: "", dry: false, artifacts: [], ...more });

/** Returns an attempt whose keys are k1, k2 and so on. */
function attempt() {
  let n = 0;
  return new Attempt(() => `k${++n}`);
}

test("a form that is sent again has its key until the end was seen", () => {
  for (const [status, next] of [[undefined, "k1"], ["in_progress", "k1"], ["pending_approval", "k1"], ["unknown", "k1"], ["succeeded", "k2"], ["failed", "k2"], ["a state of a later host", "k1"]]) {
    const a = attempt();
    const sent = a.keyed(run());
    assert.equal(sent.key, "k1");
    if (status !== undefined) a.saw(sent, status);
    assert.equal(a.keyed(run()).key, next, status);
  }
});

test("another input is another key, whatever of it is another", () => {
  const a = attempt();
  const seen = new Set();
  const forms = [{}, { input: { amount: 2 } }, { input: undefined }, { input: null }, { operation: "refund" }, { plugin: "other" }, { session: "s" }, { fresh: true }, { artifacts: ["a"] }, { artifacts: ["a", "b"] }];
  for (const form of forms) {
    const { key } = a.keyed(run(form));
    assert.ok(!seen.has(key), JSON.stringify(form));
    seen.add(key);
    assert.equal(a.keyed(run(form)).key, key);
  }
  assert.equal(a.keyed(run()).key, "k1", "and the first again is the first key");
  a.saw(a.keyed(run()), "succeeded");
  assert.equal(a.keyed(run({ input: { amount: 2 } })).key, "k2", "the end of one is not that of another");
});

test("a chosen key stays, and a dry run has none", () => {
  const a = attempt();
  assert.equal(a.keyed(run({ key: "mine" })).key, "mine");
  assert.equal(a.keyed(run({ dry: true })).key, "");
  assert.equal(a.keyed(run()).key, "k1");
  assert.equal(a.keyed(run({ dry: true })).key, "");
  assert.equal(a.keyed(run()).key, "k1", "a dry run is no other intent");
});

test("a call is made through one function, which is given the key of the form", () => {
  // the operations of the API that take a key: a source that makes another request with one is named here
  const keyed = new Set(["execute-operation", "make-call"]);
  const document = JSON.parse(readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"));
  const ids = Object.values(document.paths).flatMap((item) => Object.values(item)).filter((o) => (o.parameters ?? []).some((p) => p.name === "Idempotency-Key")).map((o) => o.operationId);
  assert.ok(ids.length >= keyed.size && [...keyed].every((id) => ids.includes(id)));
  const root = new URL("../../src/", import.meta.url);
  for (const name of readdirSync(root, { recursive: true }).filter((n) => /\.(ts|svelte)$/.test(n) && !n.startsWith("lib/api/"))) {
    const text = readFileSync(new URL(name, root), "utf8");
    for (const id of ids) assert.ok(!new RegExp(`(request|requestFull|address)\\("${id}"`).test(text) || (name === "lib/execute.ts" && keyed.has(id)), `src/${name} makes ${id}`);
    for (const [, given] of text.matchAll(/\bexecute\((.*?),/g)) assert.ok(name.startsWith("lib/") || (given === "sent" && text.includes("const sent = attempt.keyed(")), `src/${name}: execute(${given})`);
  }
});
