// The reference plugin that the protocol's transcripts are replayed with; see
// protocol/testdata/README.md.

import { setTimeout as sleep } from "node:timers/promises";
import { Plugin, PluginError, ServiceError, t, type Context } from "mortise";

const plugin = new Plugin("example.reference", {
  version: "1.0.0",
  description: "Answers the conversations that every SDK is tested with.",
  capabilities: ["cache"],
});

const value = { value: t.any() };

plugin.tool("echo", { description: "Answers its value.", input: value, output: t.object(value) }, (input) => input);

plugin.tool(
  "fail",
  { description: "Fails as it is told.", input: { code: t.string(), message: t.string() } },
  ({ code, message }) => {
    throw new PluginError(message, { code, details: { path: "a.log" } });
  },
);

plugin.tool("raise", { description: "Throws an uncaught error.", input: { message: t.string() } }, ({ message }) => {
  throw new RangeError(message);
});

plugin.tool(
  "remember",
  { description: "Stores a value and reads it back.", input: { key: t.string(), value: t.any() }, output: t.object(value) },
  async ({ key, value }, ctx) => {
    await ctx.cache.set(key, value);
    return { value: await ctx.cache.get(key) };
  },
);

plugin.tool(
  "forbidden",
  { description: "Asks for a service that it is not granted.", output: t.object({ refused: t.string() }) },
  async (_, ctx) => {
    try {
      await ctx.service("secrets.get", { key: "k" });
    } catch (error) {
      if (error instanceof ServiceError) return { refused: error.code };
      throw error;
    }
    return { refused: "" };
  },
);

plugin.tool(
  "count",
  { description: "Counts and tells how far it is.", input: { to: t.integer() }, output: t.object({ counted: t.integer() }) },
  ({ to }, ctx) => {
    ctx.log.info("counting", { to });
    for (let done = 1; done <= to; done++) ctx.progress({ message: "counting", done, total: to });
    ctx.emit("done");
    return { counted: to };
  },
);

plugin.tool(
  "stray_print",
  { description: "Prints to standard output.", output: t.object({ printed: t.boolean() }) },
  () => {
    console.log("a stray print");
    process.stdout.write("another one\n");
    return { printed: true };
  },
);

plugin.tool("wait", { description: "Works until it is cancelled." }, async (_, ctx) => {
  ctx.progress({ message: "waiting" });
  while (!ctx.cancelled) await sleep(3_600_000, undefined, { signal: ctx.signal });
});

const sent = ({ to }: { to: string }, ctx: Context) => ({ to, attempt: ctx.attempt, verdict: ctx.policy?.verdict ?? "" });

plugin.operator(
  "send",
  {
    description: "Sends a mail, or so it says.",
    input: { to: t.string() },
    output: t.object({ to: t.string(), attempt: t.integer(), verdict: t.string() }),
    effects: ["mail_send"],
    preview: async ({ to }, ctx) => ({ to, signature: await ctx.cache.get("signature") }),
    reconcile: ({ to }, ctx, effects) => {
      const [first] = effects;
      if (!first) return { outcome: "not_done", evidence: { effects: 0 } };
      if (effects.some(({ state }) => state === "intent")) return { outcome: "unknown" };
      if (effects.some(({ state }) => state === "late")) {
        return { outcome: "failed", error: new PluginError(`${to} does not exist`, { code: "BOUNCED", details: { to } }) };
      }
      return { outcome: "succeeded", data: sent({ to }, ctx), evidence: { effects: effects.length, answer: first.response } };
    },
  },
  sent,
);

plugin.hook(
  "tool.before@v1",
  { priority: 50, failureMode: "fail", deadlineMs: 2000, before: ["example.later"], after: ["example.first"] },
  async (payload, ctx) => {
    switch (payload.toolName) {
      case "shell":
        return { allow: false, reason: "no shell here" };
      case "mail/send":
        return { allow: true, payload: { ...payload, args: { ...payload.args, footer: true } } };
      case "secrets":
        return ctx.service("secrets.get", { key: "k" }).then(
          () => ({ allow: true }),
          (refused: ServiceError) => ({ allow: false, reason: refused.code }),
        );
      case "raise":
        throw new PluginError("it did not look", { code: "NO_RULES" });
      default:
        return { allow: true };
    }
  },
);

plugin.hook("channel.message.in@v1", {}, (payload) => (payload.text.endsWith("?") ? undefined : { ...payload, text: `${payload.text}?` }));

plugin.hook("session.opened@v1", {}, (_, ctx) => ctx.log.info("opened", { agent: ctx.agent, session: ctx.session }));

plugin.run();
