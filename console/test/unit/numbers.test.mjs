// Numbers stay what the host wrote, wherever they are read, calculated with or shown.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { components } from "./unit.mjs";
import { visible } from "./visible.mjs";

const { json, jsonTree, series } = await components();
const { equal, isNumber, near, numeral, parse, stringify } = json;

const numbers = ["0", "-0", "1", "-7", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "12345678901234567890", "18446744073709551615", "0.1", "0.1000", "1.10", "31.70",
  "0.1000000000000000055511151231257827", "123456789.123456789123456789", "1e400", "1E+2", "1e-7", "5e-324", "1e21", "100000000000000000000000"];

/** Returns a numeral as a person reads it: without what groups its digits. */
const digits = (text) => text.replaceAll(",", "");

test("a number is read, written, compared and shown with all of its digits", () => {
  for (const text of numbers) {
    const value = parse(text);
    assert.ok(isNumber(value), text);
    assert.equal(stringify(value), text);
    assert.equal(digits(numeral(value)), text);
    assert.equal(near(value), Number(text));
    assert.equal(digits(visible(jsonTree({ value })).text.trim()), text);
    for (const other of numbers) assert.equal(equal(value, parse(other)), text === other, `${text} and ${other}`);
  }
  assert.equal(numeral(parse("9007199254740993")), "9,007,199,254,740,993");
  assert.equal(numeral(parse("-1234567.1234567")), "-1,234,567.1234567");
});

test("a chart has the amounts of its data, and no other", () => {
  for (const text of numbers) {
    const rows = ["a", "b", "c"].map((name, i) => `{"name":"${name}","count":${i === 1 ? text : i + 1}}`);
    const shown = [...series({ value: parse(`[${rows.join(",")}]`) }).matchAll(/class="amount[^"]*">([^<]*)</g)].map(([, amount]) => digits(amount));
    assert.deepEqual(shown, ["1", text, "3"]);
  }
  // an amount that is none makes no bar of 0
  assert.equal(visible(series({ value: parse('[{"name":"a","count":1},{"name":"b","count":"2"},{"name":"c","count":3}]') })).text.trim(), "");
});

// What would change a number, or overlook one that JavaScript cannot hold, stands in one module.
test("no source reads, rounds or tests numbers by itself", () => {
  const lossy = [/JSON\.parse\(/, /\.json\(\)/, /\.toLocaleString\(/, /\.toFixed\(/, /typeof [^=]+ [!=]== "number"/, /Number\.parse/, /parseFloat\(/];
  // Texts and times of the browser itself: a kept setting, bytes that were counted, a clock.
  const own = new Map([["lib/settings.svelte.ts", /JSON\.parse\(localStorage/], ["lib/text.ts", /value\.toFixed/], ["components/Timeline.svelte", /\(ms \/ 1000\)\.toFixed/]]);
  const root = new URL("../../src/", import.meta.url);
  for (const name of readdirSync(root, { recursive: true }).filter((n) => /\.(ts|svelte)$/.test(n) && n !== "lib/json.ts" && !n.endsWith("schema.d.ts"))) {
    for (const [i, line] of readFileSync(new URL(name, root), "utf8").split("\n").entries()) {
      for (const one of lossy) if (one.test(line) && own.get(name)?.test(line) !== true) assert.fail(`src/${name}:${i + 1}: ${line.trim()}`);
    }
  }
});
