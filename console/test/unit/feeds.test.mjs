import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { feedChoice, withoutOperation } = await load("feeds.ts");

const operations = [{ name: "list", kind: "operator" }, { name: "ingest", kind: "operator" }, { name: "ask", kind: "agent" }];

test("one operation that is allowed is fixed", () => {
  assert.deepEqual(feedChoice({ feed: { allowed: ["ingest"] }, operations }), { names: ["ingest"], chosen: "ingest", locked: true });
});

test("among several the default comes first, and a person may choose", () => {
  assert.deepEqual(feedChoice({ feed: { allowed: ["list", "ingest"], default: "ingest" }, operations }), { names: ["list", "ingest"], chosen: "ingest", locked: false });
  assert.deepEqual(feedChoice({ feed: { allowed: ["list", "ingest"] }, operations }), { names: ["list", "ingest"], chosen: "", locked: false });
});

test("a plugin that lists nothing offers its operators and tools", () => {
  assert.deepEqual(feedChoice({ operations }), { names: ["list", "ingest"], chosen: "", locked: false });
  assert.deepEqual(feedChoice({ feed: { default: "gone" }, operations: [operations[0]] }), { names: ["list"], chosen: "list", locked: true });
  assert.deepEqual(feedChoice(undefined), { names: [], chosen: "", locked: false });
});

test("the member that names the operation is hidden", () => {
  const schema = { type: "object", properties: { op: { enum: ["ingest"] }, label: { type: "string" } }, required: ["op", "label"] };
  assert.deepEqual(withoutOperation(schema), { type: "object", properties: { label: { type: "string" } }, required: ["label"] });
  assert.deepEqual(withoutOperation({ type: "object" }), { type: "object" });
  assert.deepEqual(withoutOperation(undefined), {});
});
