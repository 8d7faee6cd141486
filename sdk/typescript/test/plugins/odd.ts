// A plugin of odd habits, for the tests of a real process.

import { execFileSync } from "node:child_process";
import { writeSync } from "node:fs";
import { Plugin, result, t } from "mortise";

console.log("printed while loading");
process.stdout.write("written while loading\n");

const plugin = new Plugin("test.odd", { version: "0.1.0", concurrency: 8 });

plugin.tool("echo", { input: { value: t.any() } }, ({ value }) => value);

plugin.tool("later", { input: { value: t.any(), ms: t.number() } }, async ({ value, ms }) => {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return value;
});

plugin.tool("prints", {}, () => {
  console.info("info");
  console.debug("debug");
  console.table([{ a: 1 }]);
  process.stdout.write("write\n");
  return true;
});

plugin.tool("prints_raw", {}, () => {
  writeSync(1, "a raw write\n");
  execFileSync("echo", ["a child's print"], { stdio: "inherit" });
  return true;
});

plugin.tool("forgets", {}, () => {
  void Promise.reject(new Error("I am not awaited"));
  return true;
});

plugin.tool("throws", { input: { what: t.enum(["class", "text", "long", "odd"]) } }, ({ what }) => {
  class Boom extends Error {}
  if (what === "class") throw new Boom("boom");
  if (what === "text") throw "just text";
  if (what === "odd") throw Object.create(null);
  throw new TypeError("é".repeat(5000));
});

plugin.tool("returns", { input: { what: t.string() } }, ({ what }): unknown => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  let deep: unknown = 1;
  for (let i = 0; i < 70; i++) deep = [deep];
  const values: Record<string, unknown> = {
    nothing: undefined,
    nan: { list: [1, NaN] },
    infinity: -Infinity,
    cycle,
    deep,
    surrogate: "\ud800",
    surrogateKey: { "\udc00": 1 },
    escapedText: "\\ud800 is only text",
    wide: Array.from({ length: 100 }, () => [{}]),
    bigint: { n: 2n ** 70n, list: [-5n] },
    date: new Date(0),
    long: "x".repeat(5 << 20),
    holes: { a: undefined, b: [undefined], c: null },
    result: result([1], { summary: "one", metrics: { tokens_in: 3 } }),
    thenable: { then: 1 },
  };
  return values[what];
});

plugin.tool("waits", {}, async (_, ctx) => {
  ctx.progress({ message: "waiting" });
  await ctx.service("slow.thing");
});

plugin.run();
