import assert from "node:assert/strict";
import { test } from "node:test";
import { Plugin, PluginError, type EventName, type HookHandler, type HookOptions, type ToolBeforeV1 } from "mortise";
import { TestHost } from "mortise/testing";
import { Child, initialize } from "./child.ts";

const use: ToolBeforeV1 = { agentId: "support", sessionId: "s", at: "2026-03-02T09:00:06Z", toolName: "shell", toolCallId: "c", args: {} };
const message = { agentId: "support", at: "2026-03-02T09:00:02Z", channel: "slack", direction: "in", text: "where" } as const;

function plugin(): Plugin {
  return new Plugin("test.plugin", { version: "1.0.0" });
}

test("what cannot be right is refused at start", () => {
  const options: [HookOptions, RegExp][] = [
    [{ priority: NaN }, /finite number/],
    [{ prioritiy: 1 } as never, /there is no option prioritiy/],
    [{ failureMode: "ignore" as "skip" }, /skip or fail/],
    [{ deadlineMs: 0 }, /1 to 600000/],
    [{ deadlineMs: 600_001 }, /1 to 600000/],
    [{ before: "other" as unknown as string[] }, /lists/],
    [{ after: Array<string>(33).fill("p") }, /at most 32/],
  ];
  for (const [wrong, why] of options) assert.throws(() => plugin().hook("tool.after@v1", wrong, () => {}), why);
  // @ts-expect-error there is no such event
  assert.throws(() => plugin().hook("tool.before", {}, () => {}), /there is no event "tool.before": say tool.before@v1/);
  // @ts-expect-error nor such a one
  assert.throws(() => plugin().hook("toString", {}, () => {}), /there are agent.started@v1, /);
  assert.throws(() => plugin().hook("tool.after@v1", {}, undefined as unknown as HookHandler<"tool.after@v1">), /no function/);
  const twice = plugin().hook("tool.after@v1", {}, () => {});
  assert.throws(() => twice.hook("tool.after@v1", {}, () => {}), /two hooks/);
});

test("an event that there is not ends the process with a message", async () => {
  const child = new Child("mishears");
  assert.equal(await child.exited, 1);
  assert.match(child.stderr, /there is no event "tool.before": say tool.before@v1/);
});

test("types say what each shape may answer", () => {
  plugin()
    .hook("session.opened@v1", {}, () => {})
    // @ts-expect-error a listener answers nothing
    .hook("session.closed@v1", {}, ({ reason }) => reason)
    .hook("channel.message.in@v1", {}, (payload) => ({ ...payload, text: "x" }))
    .hook("prompt.assemble@v1", {}, () => {})
    // @ts-expect-error a transform answers all of the payload
    .hook("channel.message.out@v1", {}, () => ({ text: "x" }))
    // @ts-expect-error a veto says whether it allows
    .hook("tool.before@v1", {}, () => undefined);
});

test("what each shape may answer, and what is none", async () => {
  const ask = (event: EventName, payload: unknown, answer: unknown) =>
    new TestHost(plugin().hook(event, {}, (() => answer) as unknown as HookHandler<EventName>)).hook(event, payload as never);
  for (const said of [undefined, null, Promise.resolve()]) assert.deepEqual(await ask("tool.after@v1", use, said), {});
  for (const said of [undefined, null, Promise.resolve()]) assert.deepEqual(await ask("channel.message.in@v1", message, said), {});
  assert.deepEqual(await ask("channel.message.in@v1", message, { text: "a" }), { payload: { text: "a" } });
  assert.deepEqual(await ask("tool.before@v1", use, { allow: true, more: 1 }), { allow: true });
  assert.deepEqual(await ask("tool.before@v1", use, { allow: false, reason: "no" }), { allow: false, reason: "no" });
  assert.deepEqual(await ask("tool.before@v1", use, Promise.resolve({ allow: true, payload: use })), { allow: true, payload: use });
  const wrong: [EventName, unknown[]][] = [
    ["tool.after@v1", [1, "", false, {}, { allow: false }, { payload: {} }, Promise.resolve({})]],
    ["channel.message.in@v1", [1, "text", [], true]],
    ["tool.before@v1", [undefined, null, true, {}, { allow: 1 }, { allow: true, payload: [] }, { allow: false, reason: 1 }]],
  ];
  for (const [event, answers] of wrong) {
    for (const said of answers) {
      await assert.rejects(ask(event, use, said), (error) => error instanceof PluginError && error.code === "INVALID_RESULT", JSON.stringify(said));
    }
  }
});

test("the context knows the agent, the session and the deadline", async () => {
  const host = new TestHost(
    plugin().hook("tool.before@v1", {}, (_, ctx) => ({ allow: false, reason: `${ctx.agent} ${String(ctx.session)} ${ctx.deadlineMs}` })),
  );
  assert.equal((await host.hook("tool.before@v1", use, { agent: "support", session: "s7" }))["reason"], "support s7 5000");
});

test("a hook that is given up hears of it, and one that says too much fails alone", async () => {
  const child = new Child("hears");
  child.send(initialize);
  await child.frame();
  const ask = (id: number, toolName: string) =>
    child.send(JSON.stringify({ jsonrpc: "2.0", id, method: "hook", params: { call: `c${id}`, event: "tool.before@v1", shape: "veto", payload: { ...use, toolName }, agent: "support", deadline_ms: 5000 } }));
  ask(2, "wait");
  child.send('{"jsonrpc":"2.0","method":"$/cancel","params":{"call":"c2","reason":"timeout"}}');
  assert.equal((await child.frame()).error?.data?.["code"], "cancelled");
  ask(3, "much");
  assert.equal((await child.frame()).error?.data?.["code"], "limit_exceeded");
  ask(4, "shell");
  assert.deepEqual((await child.frame()).result, { allow: true });
  assert.equal(await child.end(), 0);
});
