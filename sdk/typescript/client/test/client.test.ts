import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ApprovalPending, ArgumentsChanged, Client, MortiseError, ToolCalls, toolsOf } from "../src/index.ts";
import { theHost } from "./host.ts";

const host = theHost();

const code = (wanted: string) => (error: unknown) => error instanceof MortiseError && error.code === wanted;

test("operations are listed and described", async () => {
  const names: string[] = [];
  for await (const operation of host.client.operations()) if (operation.name.startsWith("mail/")) names.push(`${operation.name} ${operation.kind} ${operation.effects}`);
  assert.deepEqual(names.sort(), ["mail/large tool ", "mail/secret operator mail_send", "mail/send operator mail_send", "mail/upper tool "]);
  assert.deepEqual((await host.client.operation("mail/send")).input_schema["required"], ["to"]);
  await assert.rejects(host.client.operation("mail/none"), code("not_found"));
  await assert.rejects(host.client.operation("../tokens"), code("invalid_input"));
});

test("an operation is executed, once for a key", async () => {
  const first = await host.client.execute("mail/upper", { text: "a" }, { key: "k1" });
  assert.equal(first.data, "A");
  assert.equal((await host.client.execute("mail/upper", { text: "a" }, { key: "k1" })).call_id, first.call_id);
  await assert.rejects(host.client.execute("mail/upper", { text: "b" }, { key: "k1" }), code("key_conflict"));
  await assert.rejects(host.client.execute("mail/upper", { txet: "b" }), code("invalid_input"));
  await assert.rejects(host.client.execute("mail/secret", {}), code("policy_denied"));
});

test("integers keep their digits, and are text in the results of tools", async () => {
  assert.deepEqual((await host.client.execute("mail/large", {})).data, { n: 9007199254740993n });
  assert.deepEqual(await new ToolCalls(host.client).result("mail/large", "c1", {}), { n: "9007199254740993" });
});

test("a call waits for a person, and its approval can be read", async () => {
  const outcome = await host.client.execute("mail/send", { to: "eve" }, { key: "k2" });
  const pending = host.client.pending(outcome);
  assert.ok(pending);
  assert.deepEqual(Object.keys(pending).sort(), ["approvalId", "callId", "expiresAt", "operation", "url"]);
  assert.equal(pending.url, `${host.url}/decide/${pending.approvalId}`);
  assert.equal((await fetch(pending.url)).status, 200);
  const elsewhere = new Client({ url: host.url, token: host.token, publicUrl: "https://mortise.example.com/" });
  assert.equal(elsewhere.pending(outcome)?.url, `https://mortise.example.com/decide/${pending.approvalId}`);
  assert.equal((await host.client.approval(pending.approvalId)).state, "open");
  await host.approve(pending.approvalId);
  const call = await host.client.call(pending.callId, { waitMs: 20_000 });
  assert.equal(call.status, "succeeded");
  assert.equal(call.approval_state, "consumed");
});

test("arguments that changed are refused, by the adapter and by the host", async () => {
  const calls = new ToolCalls(host.client, { scope: "conversation" });
  const pending = await calls.pending("mail/send", "c1", { to: "ann", text: "hi" });
  assert.ok(pending);
  const before = await host.calls("mail/send");
  const known = (error: unknown): boolean => error instanceof ArgumentsChanged && error.cause === undefined;
  await assert.rejects(calls.submit("mail/send", "c1", { to: "eve", text: "hi" }), known); // as it remembers them: the host is not asked
  const another = new ToolCalls(host.client, { scope: "conversation" }); // which remembers nothing
  await assert.rejects(another.submit("mail/send", "c1", { to: "eve", text: "hi" }), (error) => error instanceof ArgumentsChanged && code("key_conflict")(error.cause));
  assert.equal((await another.pending("mail/send", "c1", { text: "hi", to: "ann" }))?.callId, pending.callId); // the order of members says nothing
  await host.approve(pending.approvalId);
  await assert.rejects(calls.submit("mail/send", "c1", { to: "eve", text: "hi" }), known); // after approval as before
  await assert.rejects(another.client.execute("mail/send", { to: "eve", text: "hi" }, { key: another.key("mail/send", "c1") }), code("key_conflict")); // as the host has it
  assert.equal(((await calls.result("mail/send", "c1", { to: "ann", text: "hi" })) as { to: string }).to, "ann");
  assert.equal(await host.calls("mail/send"), before);
  const fresh = await calls.pending("mail/send", "c2", { to: "eve", text: "hi" }); // a call of its own, with an approval of its own
  assert.ok(fresh && fresh.callId !== pending.callId && fresh.approvalId !== pending.approvalId);
  await assert.rejects(calls.result("mail/send", "c2", { to: "eve", text: "hi" }), ApprovalPending);
});

test("a token is sent to no address in the clear, and to no other host", async () => {
  assert.throws(() => new Client({ url: "http://mortise.example.com", token: "t" }), code("configuration"));
  assert.throws(() => new Client({ url: host.url, token: "" }), code("configuration"));
  await assert.rejects(new Client({ url: host.url, token: "mrt_no" }).operation("mail/send"), (error) => code("unauthenticated")(error) && (error as MortiseError).status === 401);
});

test("answers are bounded", async () => {
  const answers: Record<string, (send: (status: number, text: string, headers?: Record<string, string>) => void) => void> = {
    long: (send) => send(200, `{"a":"${"x".repeat(5000)}"}`),
    text: (send) => send(200, "hello"),
    away: (send) => send(302, "", { location: "http://127.0.0.1:1/" }),
    silent: () => undefined,
    busy: (send) => send(429, '{"code":"rate_limited","detail":"slower","retryable":true}', { "retry-after": "60" }),
  };
  const server = createServer((request, response) => {
    answers[request.url?.split("/")[4] ?? ""]?.((status, text, headers) => response.writeHead(status, headers).end(text));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: "t", timeoutMs: 300, maxBytes: 1000 });
  try {
    await assert.rejects(client.operation("long/x"), code("bad_response"));
    await assert.rejects(client.operation("text/x"), code("bad_response"));
    await assert.rejects(client.operation("away/x"), code("unreachable"));
    await assert.rejects(client.operation("silent/x"), (error) => code("unreachable")(error) && (error as MortiseError).retryable);
    await assert.rejects(client.operation("busy/x"), (error) => code("rate_limited")(error) && (error as MortiseError).retryAfterMs === 60_000);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("names of tools are such as models accept, and the number is limited", async () => {
  const tools = await toolsOf(host.client, { only: ["mail/*"] });
  assert.deepEqual(tools.map((tool) => tool.name).sort(), ["mail__large", "mail__secret", "mail__send", "mail__upper"]);
  await assert.rejects(toolsOf(host.client, { only: ["mail/*"], limit: 3 }), code("too_many_operations"));
});

test("what the package exports is there", async () => {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, { default: string }> };
  for (const found of Object.values(exports)) {
    const module = (await import(new URL(`../../../${found.default.replace("./dist/", "build/")}`, import.meta.url).href)) as object;
    assert.ok(Object.keys(module).length > 0);
  }
});
