import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { parse, stringify, equal, Exact } = await load("json.ts");

test("what is read is written again as it was", () => {
  for (const text of ["null", "true", "[]", "{}", "0", "-0", "1.0", "1e400", "12345678901234567890", "0.1000", '"a\\u0000b"', '{"b":1,"a":[1,{"c":null}]}', '{"__proto__":1,"constructor":{"x":2}}']) {
    assert.equal(stringify(parse(text)), text === '"a\\u0000b"' ? '"a\\u0000b"' : text);
  }
});

test("a number that JavaScript would change keeps its text", () => {
  assert.ok(parse("12345678901234567890") instanceof Exact);
  assert.equal(String(parse("1.10")), "1.10");
  assert.equal(parse("7"), 7);
});

test("what is no JSON is refused at its place", () => {
  for (const [text, at] of [["", 0], ["{", 1], ['{"a" 1}', 5], ["[1,]", 3], ["tru", 0], ["01", 1], ['"a', 2], ["[1] 2", 4], ['{"a":1 "b":2}', 7], ["\u00a01", 0]]) {
    assert.throws(() => parse(text), (err) => typeof err.at === "number" && err.at >= at - 1 && err.at <= at + 1, text);
  }
  assert.throws(() => parse("[".repeat(1000) + "]".repeat(1000)), /nested deeper/);
});

test("values are equal whatever the order of their members is", () => {
  assert.ok(equal(parse('{"a":1,"b":[2]}'), parse('{"b":[2],"a":1}')));
  assert.ok(!equal(parse("[1,2]"), parse("[2,1]")));
  assert.ok(!equal(parse("12345678901234567890"), parse("12345678901234567891")));
  assert.ok(!equal(parse("{}"), parse("[]")));
});
