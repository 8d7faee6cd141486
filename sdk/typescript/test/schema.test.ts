import assert from "node:assert/strict";
import { test } from "node:test";
import { Plugin, result, t, type Infer, type JsonSchema } from "mortise";
import { inputReader } from "../src/schema.ts";

// Type-level tests: they fail in `npm run check`.
type Equal<A, B> = (<X>() => X extends A ? 1 : 2) extends <X>() => X extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Equal<A, B> extends true ? [] : [never]): void {}

const everything = t.object({
  text: t.string({ minLength: 1 }),
  size: t.integer({ default: 3 }),
  big: t.optional(t.bigint()),
  ratio: t.nullable(t.number()),
  flags: t.array(t.boolean()),
  mode: t.enum(["fast", "exact"]),
  one: t.literal("one"),
  by: t.record(t.union(t.string(), t.integer())),
  any: t.any(),
  own: t.json<{ x: 1 }>({ const: { x: 1 } }),
});

same<
  Infer<typeof everything>,
  {
    text: string;
    size: number;
    big?: bigint;
    ratio: number | null;
    flags: boolean[];
    mode: "fast" | "exact";
    one: "one";
    by: Record<string, string | number>;
    any: unknown;
    own: { x: 1 };
  }
>();

new Plugin("test.types", { version: "1" })
  .tool("infers", { input: { a: t.string(), n: t.optional(t.integer()) }, output: t.integer() }, (input, ctx) => {
    same<typeof input, { a: string; n?: number }>();
    same<typeof ctx.signal, AbortSignal>();
    return input.a.length;
  })
  .tool("takes_a_schema", { input: t.object({ a: t.string() }) }, (input) => {
    same<typeof input, { a: string }>();
  })
  .operator("may_say_more", { output: t.string(), effects: ["fs_write"] }, async () => result("x", { summary: "wrote x" }))
  // @ts-expect-error the output is a number
  .tool("answers_the_wrong_kind", { output: t.integer() }, () => "three")
  // @ts-expect-error there is no such argument
  .tool("takes_the_wrong_name", { input: { a: t.string() } }, ({ b }) => b);

// @ts-expect-error a default is of the schema's type
t.integer({ default: "three" });

const schemas: [string, { json: JsonSchema }, JsonSchema][] = [
  ["string", t.string({ minLength: 1, pattern: "^a" }), { type: "string", minLength: 1, pattern: "^a" }],
  ["integer", t.integer({ description: "d", default: 3 }), { type: "integer", description: "d", default: 3 }],
  ["bigint", t.bigint({ minimum: 1n }), { type: "integer", minimum: 1n }],
  ["number", t.number({ exclusiveMinimum: 0 }), { type: "number", exclusiveMinimum: 0 }],
  ["boolean", t.boolean(), { type: "boolean" }],
  ["array", t.array(t.string(), { maxItems: 2 }), { type: "array", items: { type: "string" }, maxItems: 2 }],
  [
    "object",
    t.object({ a: t.string(), b: t.integer({ default: 1 }), c: t.optional(t.any()) }),
    {
      type: "object",
      properties: { a: { type: "string" }, b: { type: "integer", default: 1 }, c: {} },
      required: ["a"],
      additionalProperties: false,
    },
  ],
  ["empty object", t.object({}), { type: "object", properties: {}, additionalProperties: false }],
  ["record", t.record(t.number()), { type: "object", additionalProperties: { type: "number" } }],
  ["one literal", t.literal(null), { const: null }],
  ["several literals", t.literal(1, "a"), { enum: [1, "a"] }],
  ["enum", t.enum(["a", "b"], { default: "a" }), { enum: ["a", "b"], default: "a" }],
  ["union", t.union(t.string(), t.integer()), { anyOf: [{ type: "string" }, { type: "integer" }] }],
  ["nullable", t.nullable(t.string()), { anyOf: [{ type: "string" }, { type: "null" }] }],
  ["any", t.any({ description: "d" }), { description: "d" }],
  ["json", t.json({ $ref: "#/x" }), { $ref: "#/x" }],
];

for (const [name, schema, want] of schemas) {
  test(`schema of ${name}`, () => assert.deepEqual(schema.json, want));
}

test("described schemas name their dialect", () => {
  const plugin = new Plugin("test.dialect", { version: "1" }).tool("a", { input: { b: t.string() }, output: t.string() }, ({ b }) => b);
  const described = plugin.operations.get("a")?.description as { input: Record<string, unknown>; output: Record<string, unknown> };
  assert.equal(described.input["$schema"], "https://json-schema.org/draft/2020-12/schema");
  assert.equal(described.output["$schema"], "https://json-schema.org/draft/2020-12/schema");
});

const big = 2n ** 60n;
const reads: [string, Parameters<typeof inputReader>[0], unknown, unknown][] = [
  ["a default", t.object({ a: t.integer({ default: 3 }) }), {}, { a: 3 }],
  ["a default that was given", t.object({ a: t.integer({ default: 3 }) }), { a: 0 }, { a: 0 }],
  ["a default inside", t.object({ a: t.array(t.object({ b: t.string({ default: "x" }) })) }), { a: [{}] }, { a: [{ b: "x" }] }],
  ["a default of null", t.object({ a: t.nullable(t.string(), { default: null }) }), {}, { a: null }],
  ["a record of defaults", t.object({ a: t.record(t.object({ b: t.boolean({ default: true }) })) }), { a: { k: {} } }, { a: { k: { b: true } } }],
  ["nothing optional", t.object({ a: t.optional(t.string()) }), {}, {}],
  ["bigint from number", t.object({ a: t.bigint() }), { a: 1 }, { a: 1n }],
  ["bigint", t.object({ a: t.nullable(t.bigint()), b: t.nullable(t.bigint()) }), { a: big, b: null }, { a: big, b: null }],
  ["number from bigint", t.object({ a: t.record(t.number()) }), { a: { k: big } }, { a: { k: Number(big) } }],
  ["any bigint", t.object({ a: t.any() }), { a: [big] }, { a: [big] }],
];

for (const [name, schema, input, want] of reads) {
  test(`input with ${name}`, () => assert.deepEqual(inputReader(schema)(input, true), want));
}

test("a default is a new value for every call", () => {
  const read = inputReader(t.object({ list: t.array(t.string(), { default: ["a"] }) }));
  const first = read({}, false) as { list: string[] };
  first.list.push("b");
  assert.deepEqual(read({}, false), { list: ["a"] });
});

const refused: [string, unknown, RegExp][] = [
  ["a missing argument", {}, /a is missing/],
  ["an inherited argument", Object.create({ a: 1 }), /a is missing/],
  ["an unknown argument", { a: 1, b: 2 }, /b is not an argument/],
  ["no object", [1], /not an object/],
  ["an integer out of range", { a: 2n ** 60n }, /^a: 1152921504606846976 is larger/],
];

for (const [name, input, message] of refused) {
  test(`${name} is invalid input`, () => {
    assert.throws(() => inputReader(t.object({ a: t.integer() }))(input, true), { code: "invalid_input", message });
  });
}

test("what cannot be right is refused when it is written", () => {
  const plugin = new Plugin("test.wrong", { version: "1" }).tool("a", {}, () => 1);
  assert.throws(() => plugin.tool("a", {}, () => 1), TypeError);
  assert.throws(() => plugin.tool("a/b", {}, () => 1), TypeError);
  assert.throws(() => new Plugin("test.wrong", { version: "1", concurrency: 0 }), TypeError);
  assert.throws(() => new Plugin("", { version: "1" }), TypeError);
  assert.throws(() => t.union(t.string(), t.object({ a: t.integer({ default: 1 }) })), TypeError);
});
