import assert from "node:assert/strict";
import { test } from "node:test";
import { bounded, encode, hasLongIntegers, parseExact } from "../src/json.ts";

const roundTrips = [
  "9007199254740993",
  "-9007199254740993",
  "[1,9007199254740992,123456789012345678901234567890]",
  '{"a":{"b":[18446744073709551615]},"text":"9007199254740993, [9007199254740993]"}',
  '{"a":1,"__proto__":9007199254740993}',
  '["\\"9007199254740993\\\\",9007199254740993]',
];

test("integers of any size come back as they were", () => {
  for (const text of roundTrips) assert.equal(encode(parseExact(text)), text);
});

test("only what a number cannot hold becomes bigint", () => {
  const text = '{"safe":9007199254740991,"unsafe":9007199254740992,"float":0.12345678901234567,"exponent":12345678901234567890e1}';
  assert.deepEqual(parseExact(text), {
    safe: 9007199254740991,
    unsafe: 9007199254740992n,
    float: Number("0.12345678901234567"),
    exponent: 123456789012345678900,
  });
});

test("lines with long integers are found wherever these stand", () => {
  for (let pad = 0; pad < 40; pad++) {
    const filler = "x".repeat(pad);
    assert.ok(hasLongIntegers(`{"${filler}":1234567890123456}`));
    assert.ok(hasLongIntegers(`{"${filler}":12,"b":[ -12345678901234567]}`));
    assert.ok(!hasLongIntegers(`{"${filler}":"1234567890123456","n":123456789012345,"m":0.1234567890123456789}`));
    assert.ok(!hasLongIntegers(`{"${filler}":"a1234567890123456"}`));
  }
});

test("a marked text is still a text", () => {
  const marked = /"(bigint-[^"]*)"/.exec(JSON.stringify({ a: "bigint-abc:12" }))?.[1];
  assert.equal(encode({ marked, big: 1n }), '{"marked":"bigint-abc:12","big":1}');
});

test("texts of megabytes pass the exact parser", () => {
  const text = "é\\\"".repeat(1 << 20);
  assert.deepEqual(parseExact(JSON.stringify([text])), [text]);
});

test("what no JSON can carry is refused", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  let deep: unknown = 1;
  for (let i = 0; i < 62; i++) deep = { deep };
  const refused = [NaN, [1, { a: Infinity }], cycle, [1n, NaN], "\ud800", { "\udfff": 1 }, deep, { toJSON: () => assert.fail() }];
  for (const value of refused) assert.throws(() => encode(value), { name: "PluginError", code: "INVALID_RESULT" });
});

test("the rest is written as JSON.stringify would", () => {
  const values = [undefined, null, "null", [undefined, null], { a: undefined }, new Date(0), new Date(NaN), "\\ud800", "🦉", Array(90).fill([[]])];
  for (const value of values) assert.equal(encode(value), JSON.stringify(value) ?? "null");
});

test("texts are cut between characters", () => {
  assert.equal(bounded("a".repeat(9), 8), "a".repeat(8));
  assert.equal(bounded("éé", 3), "é");
  assert.equal(bounded("🦉🦉", 7), "🦉");
  assert.equal(bounded("\ud800", 8), "\ufffd");
});
