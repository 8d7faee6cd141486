import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { shapeOf, initial, shown, chosen, resolve, label, below, at } = await load("schema/shape.ts");
const shape = (schema, root = schema) => shapeOf(schema, root);

test("a field is of the kind that its schema says", () => {
  for (const [schema, kind] of [
    [{ type: "string" }, "text"], [{ type: "integer" }, "number"], [{ type: "boolean" }, "boolean"], [{ enum: [1, "a"] }, "enum"], [{ const: 5 }, "const"],
    [{ type: "object", properties: { a: {} } }, "object"], [{ properties: { a: {} } }, "object"], [{ type: "array" }, "array"], [{ items: {} }, "array"],
    [{ oneOf: [{ type: "string" }, { type: "integer" }] }, "choice"], [{ type: ["string", "integer"] }, "choice"], [true, "json"], [{}, "json"], [{ type: "object" }, "json"], [{ type: "null" }, "null"],
    [{ pattern: "^a" }, "text"], [{ minimum: 1 }, "number"],
  ]) assert.equal(shape(schema).kind, kind, JSON.stringify(schema));
});

test("null beside another type makes the field one that may be left open", () => {
  for (const schema of [{ type: ["string", "null"] }, { anyOf: [{ type: "string" }, { type: "null" }] }, { oneOf: [{ type: "null" }, { type: "string" }] }]) {
    assert.deepEqual([shape(schema).kind, shape(schema).nullable], ["text", true]);
  }
  assert.deepEqual(shape({ enum: ["a", null] }).values, ["a"]);
});

test("references are followed within the document, and nowhere else", () => {
  const root = { $defs: { a: { type: "integer", title: "A" }, loop: { $ref: "#/$defs/loop" }, anchored: { $anchor: "x", type: "boolean" }, "a/b": { type: "string" } } };
  assert.equal(shape({ $ref: "#/$defs/a" }, root).kind, "number");
  assert.equal(shape({ $ref: "#/$defs/a", title: "Own" }, root).title, "Own");
  assert.equal(shape({ $ref: "#x" }, root).kind, "boolean");
  assert.equal(shape({ $ref: "#/$defs/a~1b" }, root).kind, "text");
  for (const elsewhere of ["#/$defs/loop", "#/$defs/none", "https://example.com/schema", "other.json"]) assert.equal(shape({ $ref: elsewhere }, root).kind, "json", elsewhere);
  const tree = { type: "object", properties: { children: { type: "array", items: { $ref: "#" } } } };
  assert.equal(shapeOf(shapeOf(tree.properties.children, tree).item, tree).kind, "object");
});

test("allOf is joined", () => {
  const s = { allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }, { properties: { b: { type: "integer" } }, required: ["b"] }] };
  assert.deepEqual(shape(s).properties.map((p) => [p.name, p.required]), [["a", true], ["b", true]]);
});

test("a form begins with what is fixed, and with nothing that was not asked for", () => {
  const s = { type: "object", required: ["op", "kind", "deep"], properties: { op: { enum: ["only"] }, kind: { const: 3 }, note: { type: "string" }, many: { type: "integer", default: 4 }, deep: { type: "object", properties: { x: { default: true } } } } };
  assert.deepEqual(JSON.parse(JSON.stringify(initial(s, s, true))), { op: "only", kind: 3, many: 4, deep: { x: true } });
  const endless = { $defs: { n: { type: "object", required: ["n"], properties: { n: { $ref: "#/$defs/n" } } } }, $ref: "#/$defs/n" };
  assert.ok(JSON.stringify(initial(endless, endless, true)).length < 200);
});

test("show_when has three forms, and another one shows", () => {
  const values = { mode: "a", n: 1 };
  for (const [hint, is] of [[{ field: "mode", equals: "a" }, true], [{ field: "mode", equals: "b" }, false], [{ field: "mode", in: ["b", "a"] }, true], [{ field: "mode", in: [] }, false],
    [{ mode: "a", n: 1 }, true], [{ mode: "a", n: 2 }, false], [undefined, true], ["mode", true], [{ field: "n", equals: 1 }, true]]) assert.equal(shown(hint, values), is, JSON.stringify(hint));
  assert.equal(shown({ field: "mode", equals: "a" }, undefined), false);
});

test("the alternative of a value is the one that its constants name", () => {
  const all = ["card", "bank"].map((kind) => ({ type: "object", required: ["kind"], properties: { kind: { const: kind }, number: { type: "string" } } }));
  const { alternatives } = shape({ oneOf: all });
  assert.deepEqual(alternatives.map((a) => a.title), ["card", "bank"]);
  assert.equal(chosen(alternatives, {}, { kind: "bank", number: "1" }), 1);
  assert.equal(chosen(alternatives, {}, undefined), 0);
});

test("hints are read in both spellings", () => {
  assert.equal(shape({ type: "string", "x-ui": { hidden: true } }).hints.hidden, true);
  assert.equal(shape({ type: "string", x_ui: { help: "H" }, x_binding: "env:REGION" }).hints.binding, "env:REGION");
  assert.deepEqual(shape({ enum: ["a"], "x-ui": { enum_labels: { a: "All" }, enum_help: { a: "everything", b: 3 } } }).hints.optionHelp, { a: "everything" });
});

test("a schema of a stranger's never throws", () => {
  for (const odd of [null, 3, "x", [], { type: 7 }, { enum: [] }, { oneOf: [] }, { oneOf: [null, 3] }, { properties: 3 }, { properties: { a: null } }, { items: 4, type: "array" }, { allOf: [3, null] }, { "x-ui": 3 }, { required: "a", type: "object" }, { type: ["null"] }, { $ref: 5 }, { $ref: "#%ZZ" }]) {
    assert.doesNotThrow(() => { shape(odd); initial(odd, odd, true); resolve(odd, odd); }, JSON.stringify(odd));
  }
});

test("names and pointers", () => {
  assert.equal(label("from_address"), "From address");
  assert.equal(label("pageToken"), "Page Token");
  assert.equal(below("/a", "b/c~d"), "/a/b~1c~0d");
  assert.equal(at({ "b/c~d": [1, { x: 2 }] }, "/b~1c~0d/1/x"), 2);
  assert.equal(at({ a: 1 }, "/__proto__"), undefined);
});
