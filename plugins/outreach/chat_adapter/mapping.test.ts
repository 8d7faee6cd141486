import assert from "node:assert/strict";
import { test } from "node:test";
import { TestHost } from "mortise/testing";
import { outcomeKey } from "./mapping.ts";
import { plugin } from "./operations.ts";

const event = { provider: "slack", workspace: "T1", user: { id: "U1" }, channel: "C1", text: "when is the deadline?", ts: "1767225600.000100", kind: "mention" };
type Request = { intent: { type: string; payload: Record<string, unknown> }; principal: { provider: string; external_id: string }; idempotency_key: string };

async function inbound(change: object = {}): Promise<Request> {
  const { data } = await new TestHost(plugin).call("inbound", { ...event, ...change });
  return data as Request;
}

test("a mention asks a question in its user's name", async () => {
  const request = await inbound();
  assert.deepEqual(request.intent, { type: "Support.QA.Answer", payload: { question: "when is the deadline?" } });
  assert.deepEqual(request.principal, { provider: "slack", external_id: "T1/U1" });
});

test("an event that is delivered twice has one key", async () => {
  const key = async (change: object) => (await inbound(change)).idempotency_key;
  assert.equal(await key({}), await key({}));
  const keys = await Promise.all([{}, { ts: "2" }, { channel: "C2" }, { workspace: "T2" }, { provider: "teams" }].map(key));
  assert.equal(new Set(keys).size, keys.length);
  assert.ok(keys.every((k) => /^[ -~]{1,255}$/.test(k)));
});

test("a command is an intent with a payload", async () => {
  const { intent } = await inbound({ kind: "command", text: '/outreach send professor_id=910 to=m@example.org from=a@example.edu subject="Two words"' });
  assert.deepEqual(intent, {
    type: "Funding.Outreach.Email.Send",
    payload: { professor_id: 910, to: "m@example.org", from: "a@example.edu", subject: "Two words" },
  });
  assert.deepEqual((await inbound({ kind: "command", text: "/outreach draft" })).intent, { type: "Funding.Outreach.Email.Generate", payload: {} });
});

test("what is no command is refused", async () => {
  const bad = ["/outreach", "/outreach delete", "constructor x", "/outreach send to", "/outreach send admin=1", "/outreach send to=a to=b", '/outreach send to="a'];
  for (const text of bad) await assert.rejects(inbound({ kind: "command", text }), { code: "invalid_input" }, text);
});

test("an outcome is written by the operator alone", async () => {
  const asked: unknown[] = [];
  const host = new TestHost(plugin, {
    operations: {
      "ExternalSystem.WriteOutcome": (input) => {
        asked.push(input);
        return { status: 201 };
      },
    },
  });
  const input = { url: "http://127.0.0.1:8025/outcomes", reference: "chat:1", status: "succeeded", text: "done" };
  const { data } = await host.call("outbound", input);
  assert.deepEqual(data, { status: "succeeded", data: { status: 201 } });
  assert.deepEqual(asked, [{ url: input.url, outcome: { reference: "chat:1", status: "succeeded", text: "done" } }]);
  assert.match(outcomeKey("chat:1", "failed"), /^outcome:[0-9a-f]{64}$/);
  assert.notEqual(outcomeKey("chat:1", "failed"), outcomeKey("chat:1", "succeeded"));
});
