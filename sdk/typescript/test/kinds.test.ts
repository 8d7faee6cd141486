import assert from "node:assert/strict";
import { test } from "node:test";
import { Plugin, PluginError, t, type Proposal, type SubmitRequest } from "mortise";
import { TestHost } from "mortise/testing";

function mail(): Plugin {
  const plugin = new Plugin("mail", { version: "1.0.0", capabilities: ["http"] });
  return plugin.operator(
    "send",
    {
      input: { to: t.string(), subject: t.string({ default: "hello" }) },
      output: t.object({ id: t.integer() }),
      effects: ["http_write"],
      brokered: true,
      labels: ["untrusted"],
      preview: ({ to, subject }) => ({ to, subject }),
      reconcile: async ({ to }, ctx, effects) => {
        if (to === "failed") return { outcome: "failed", error: new PluginError("bounced", { code: "BOUNCED", retryable: true }) };
        if (to === "wrong") return { outcome: "done" } as never;
        const { json } = await ctx.http.get("https://mail.example/sent", { params: { to } });
        if (json === undefined) return { outcome: "not_done", evidence: effects.length };
        return { outcome: "succeeded", data: json as { id: number } };
      },
    },
    async ({ to, subject }, ctx) => {
      const { json } = await ctx.http.post("https://mail.example/send", { to, subject }, { timeout_seconds: 5 });
      assert.equal(ctx.attempt, 2);
      assert.equal(ctx.policy?.verdict, "allow");
      return json as { id: number };
    },
  );
}

test("describe says what stands beside an operator", () => {
  const { operations } = mail().describe() as { operations: Record<string, Record<string, unknown>> };
  const { preview, reconcile, brokered, labels } = operations["send"] ?? {};
  assert.deepEqual({ preview, reconcile, brokered, labels }, { preview: true, reconcile: true, brokered: true, labels: ["untrusted"] });
  const plain = new Plugin("p", { version: "1.0.0" }).operator("x", {}, () => 1).describe() as typeof operations & { operations: typeof operations };
  assert.equal(plain.operations["x"]?.["preview"], undefined);
});

test("a preview takes what the operator takes", async () => {
  const host = new TestHost(mail());
  assert.deepEqual(await host.preview("send", { to: "ann" }), { to: "ann", subject: "hello" });
  await assert.rejects(host.preview("send", { to: "ann", colour: "red" }), { code: "invalid_input" });
});

test("reconcile says what it found out", async () => {
  const answers: unknown[] = [{ json: { id: 7 } }, {}];
  const host = new TestHost(mail(), { services: { "http.fetch": () => answers.shift() } });
  assert.deepEqual(await host.reconcile("send", { to: "ann" }), { outcome: "succeeded", data: { id: 7 } });
  assert.deepEqual(await host.reconcile("send", { to: "ann" }, [{ state: "intent" }]), { outcome: "not_done", evidence: 1 });
  assert.deepEqual(await host.reconcile("send", { to: "failed" }), {
    outcome: "failed",
    error: { code: "plugin_error", plugin_code: "BOUNCED", message: "bounced", details: {}, retryable: true, retry_after_ms: 0 },
  });
  await assert.rejects(host.reconcile("send", { to: "wrong" }), { code: "INVALID_RESULT" });
});

test("the host makes the requests", async () => {
  const asked: unknown[] = [];
  const host = new TestHost(mail(), { services: { "http.fetch": (args) => (asked.push(args), { status_code: 200, json: { id: 1 } }) } });
  const policy = { version: "v", verdict: "allow", reasons: [] } as const;
  assert.deepEqual((await host.call("send", { to: "ann" }, { attempt: 2, policy })).data, { id: 1 });
  assert.deepEqual(asked, [{ method: "POST", url: "https://mail.example/send", json: { to: "ann", subject: "hello" }, timeout_seconds: 5 }]);
});

test("an agent gets its brief and answers a proposal", async () => {
  const plugin = new Plugin("p", { version: "1.0.0" });
  plugin.agent(
    "decide",
    { output: t.string(), allowedActions: ["Mail.Send@1.x"], contextFields: ["student.profile"] },
    ({ intent, tool_registry }): Proposal<string> => ({
      agent_name: "p",
      agent_version: "1.0.0",
      kind: "step_output",
      confidence: 0.5,
      rationale: { short: "because", signals: [`intent_type:${intent.type}`] },
      step_output: tool_registry.map(({ name }) => name).join(),
    }),
  );
  const { operations } = plugin.describe() as { operations: Record<string, Record<string, unknown>> };
  const { kind, allowed_actions, context_fields, effects } = operations["decide"] ?? {};
  assert.deepEqual({ kind, allowed_actions, context_fields, effects }, { kind: "agent", allowed_actions: ["Mail.Send@1.x"], context_fields: ["student.profile"], effects: [] });
  const input = { intent: { type: "A.B" }, context: {}, tool_registry: [{ name: "Mail.Send" }], later: 1 };
  const { data } = await new TestHost(plugin).call("decide", input);
  assert.equal((data as Proposal<string> & { step_output: string }).step_output, "Mail.Send");
  await assert.rejects(new TestHost(plugin).call("decide", {}), { code: "invalid_input" });
});

test("an adapter makes a submit request", async () => {
  const plugin = new Plugin("p", { version: "1.0.0" });
  plugin.adapter("inbound", { input: { id: t.string() } }, ({ id }): SubmitRequest => ({
    intent: { type: "Support.Ticket.Resolve", payload: { id } },
    principal: { provider: "crm", external_id: "u" },
    idempotency_key: `crm:${id}`,
  }));
  const { data } = await new TestHost(plugin).call("inbound", { id: "1" });
  assert.equal((data as SubmitRequest).idempotency_key, "crm:1");
});
