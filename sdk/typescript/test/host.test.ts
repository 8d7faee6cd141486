import assert from "node:assert/strict";
import { test } from "node:test";
import { Cancelled, InvalidInput, PluginError, result, ServiceError, t, Plugin, type Context } from "mortise";
import { TestHost, type TestHostOptions } from "mortise/testing";

// A host with a plugin of one operation.
function hosting(handler: (input: { a?: unknown }, ctx: Context) => unknown, options?: TestHostOptions): TestHost {
  const plugin = new Plugin("test.plugin", { version: "1" }).tool("op", { input: { a: t.optional(t.any()) } }, handler);
  return new TestHost(plugin, options);
}

test("a call answers its data", async () => {
  const { data, status } = await hosting(({ a }) => ({ a })).call("op", { a: 2n ** 70n });
  assert.deepEqual({ data, status }, { data: { a: 2n ** 70n }, status: "succeeded" });
});

test("a result says more than its data", async () => {
  const host = hosting(() => result([1], { summary: "one", metrics: { tokens_in: 3 }, diagnostics: ["d"] }));
  assert.deepEqual(await host.call("op"), {
    status: "succeeded",
    data: [1],
    summary: "one",
    metrics: { tokens_in: 3 },
    diagnostics: ["d"],
  });
});

test("a handler sees its call", async () => {
  const host = hosting((_, ctx) => [ctx.auth, ctx.key, ctx.session, ctx.deadlineMs, ctx.trace.workflow_id, ctx.cancelled]);
  const { data } = await host.call("op", {}, { auth: { tenant_id: "t" }, key: "k", session: { id: "s" }, deadlineMs: 5 });
  assert.deepEqual(data, [{ tenant_id: "t" }, "k", { id: "s" }, 5, "", false]);
});

test("logs, progress and content are recorded in order", async () => {
  const host = hosting((_, ctx) => {
    ctx.log.warning("hm", { n: 1 });
    ctx.log.debug("m".repeat(9000), { bad: NaN });
    ctx.progress({ done: 1, total: 2 });
    ctx.emit({ part: 1 });
  });
  await host.call("op");
  assert.deepEqual(host.logs, [
    { level: "warning", message: "hm", fields: { n: 1 } },
    { level: "debug", message: "m".repeat(8192) },
  ]);
  assert.deepEqual(host.progress, [{ done: 1, total: 2 }]);
  assert.deepEqual(host.content, [{ part: 1 }]);
});

test("services and other operations answer or refuse", async () => {
  const options: TestHostOptions = {
    services: { "clock.now": ({ zone }) => ({ zone, hour: 12 }) },
    operations: { "other/double": ({ n }) => Number(n) * 2 },
  };
  const { data } = await hosting(async (_, ctx) => {
    await ctx.cache.set("k", [1], { ttlSeconds: 5 });
    const kept = await ctx.cache.get("k");
    await ctx.cache.delete("k");
    return [kept, (await ctx.cache.get("k")) === undefined, await ctx.service("clock.now", { zone: "UTC" }), await ctx.call("other/double", { n: 4 }, { key: "x" })];
  }, options).call("op");
  assert.deepEqual(data, [[1], true, { zone: "UTC", hour: 12 }, { status: "succeeded", data: 8 }]);

  const refusals = hosting((_, ctx) => ctx.service("secrets.get"));
  await assert.rejects(refusals.call("op"), { code: "service_denied" });
});

const failures: [string, () => unknown, object][] = [
  ["a code of the plugin", () => new PluginError("no", { code: "MINE", details: { a: 1 } }), { code: "MINE", message: "no", details: { a: 1 } }],
  ["a code of the protocol", () => new PluginError("slow down", { code: "rate_limited", retryable: true, retryAfterMs: 5 }), { code: "rate_limited", retryable: true, retryAfterMs: 5 }],
  ["a code of the host", () => new PluginError("no", { code: "policy_denied" }), { code: "policy_denied" }],
  ["no code", () => new PluginError("no"), { code: "plugin_error" }],
  ["no message", () => new PluginError("", { code: "X" }), { message: "X" }],
  ["invalid input", () => new InvalidInput("a is odd"), { code: "invalid_input", message: "a is odd" }],
  ["cancelled", () => new Cancelled("timeout"), { code: "cancelled" }],
  ["details that are no JSON", () => new PluginError("no", { code: "X", details: { n: NaN } }), { code: "X", details: {} }],
  ["a refused service", () => new ServiceError("no", { code: "not_found" }), { code: "not_found" }],
];

for (const [name, error, want] of failures) {
  test(`a failure with ${name}`, async () => {
    const host = hosting(() => {
      throw error();
    });
    await assert.rejects(host.call("op"), want);
  });
}

test("errors keep their cause", () => {
  const cause = new Error("disk");
  assert.equal(new PluginError("no", { cause }).cause, cause);
  assert.ok(!("cause" in new PluginError("no")));
});

test("a cancelled call stops at whatever it awaits", async () => {
  const waits: ((ctx: Context) => Promise<unknown>)[] = [
    (ctx) => ctx.service("slow.thing"),
    (ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
    async (ctx) => {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        ctx.check();
      }
    },
  ];
  for (const wait of waits) {
    const services = { "slow.thing": () => new Promise(() => {}) };
    const caller = new AbortController();
    const answer = hosting((_, ctx) => wait(ctx), { services }).call("op", {}, { signal: caller.signal });
    setTimeout(() => caller.abort(), 5);
    await assert.rejects(answer, { code: "cancelled" });
  }
});

test("a context outlives its call in silence", async () => {
  let kept: Context | undefined;
  const host = hosting((_, ctx) => void (kept = ctx));
  await host.call("op");
  kept?.emit("late");
  kept?.log.info("late");
  assert.deepEqual([host.content, host.logs], [[], []]);
  await assert.rejects(async () => kept?.service("cache.get", { key: "k" }), { name: "ServiceError", code: "not_found" });
});
