// With OpenAI Agents itself and a model that is a script.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, type RunResult, RunState, run, setTracingDisabled } from "@openai/agents";
import { ApprovalPending, ArgumentsChanged, mortiseErrorOf } from "../src/index.ts";
import { type AgentTools, mortiseTools } from "../src/openai-agents.ts";
import { theHost } from "./host.ts";
import { Script } from "./models.ts";

setTracingDisabled(true); // or it would be sent to its makers

const host = theHost();

type Any = Agent<unknown, any>; // eslint-disable-line @typescript-eslint/no-explicit-any

async function agentFor(adapter: AgentTools, toolName: string, input: unknown): Promise<Any> {
  return new Agent({ name: "desk", model: new Script(toolName, input), tools: adapter.tools }) as Any;
}

async function begin(toolName: string, input: unknown, scope = crypto.randomUUID()): Promise<{ adapter: AgentTools; agent: Any; result: RunResult<unknown, Any> }> {
  const adapter = await mortiseTools(host.client, { only: ["mail/*"], scope });
  const agent = await agentFor(adapter, toolName, input);
  return { adapter, agent, result: await run(agent, "Go.") };
}

test("an operation that policy allows runs at once, and once", async () => {
  const before = await host.calls("mail/upper");
  const { result } = await begin("mail__upper", { text: "hello" });
  assert.match(result.finalOutput ?? "", /HELLO/);
  assert.equal(await host.calls("mail/upper"), before + 1);
});

test("what the host refuses the model reads, with its code", async () => {
  assert.match((await begin("mail__secret", {})).result.finalOutput ?? "", /policy_denied/);
  assert.match((await begin("mail__send", { tu: "ann" })).result.finalOutput ?? "", /invalid_input/);
});

test("a pending approval is the framework's interruption, with ids alone", async () => {
  const { adapter, result } = await begin("mail__send", { to: "ann" });
  assert.equal(result.interruptions.length, 1);
  const [pending] = await adapter.resolve(result.state);
  assert.deepEqual(Object.keys(pending ?? {}).sort(), ["approvalId", "callId", "expiresAt", "operation", "toolCallId", "url"]);
});

test("an approval at the host lets the call run once, in another process too", async () => {
  const scope = crypto.randomUUID();
  const first = await begin("mail__send", { to: "bea" }, scope);
  const [pending] = await first.adapter.resolve(first.result.state);
  await host.approve(pending?.approvalId ?? "");
  const before = await host.calls("mail/send");
  const adapter = await mortiseTools(host.client, { only: ["mail/*"], scope }); // which remembers nothing
  const agent = await agentFor(adapter, "mail__send", { to: "bea" });
  const state = await RunState.fromString(agent, first.result.state.toString());
  assert.deepEqual(await adapter.resolve(state), []);
  const result = await run(agent, state);
  assert.match(result.finalOutput ?? "", /bea.*receipt/);
  assert.equal(await host.calls("mail/send"), before);
});

test("a denial at the host is a denial here", async () => {
  const { adapter, agent, result } = await begin("mail__send", { to: "cid" });
  await host.deny((await adapter.resolve(result.state))[0]?.approvalId ?? "");
  assert.deepEqual(await adapter.resolve(result.state), []);
  assert.match((await run(agent, result.state)).finalOutput ?? "", /approval_denied/);
});

test("an approval that the framework alone was given changes nothing", async () => {
  const { adapter, agent, result } = await begin("mail__send", { to: "dan" });
  const [pending] = await adapter.resolve(result.state);
  const [item] = result.interruptions;
  assert.ok(item && pending);
  const saved = result.state.toString();
  result.state.approve(item);
  await assert.rejects(run(agent, result.state), (error) => mortiseErrorOf(error) instanceof ApprovalPending);
  assert.equal((await host.client.call(pending.callId)).status, "pending_approval");

  await host.approve(pending.approvalId); // the run goes on from where it waited
  const state = await RunState.fromString(agent, saved);
  assert.deepEqual(await adapter.resolve(state), []);
  assert.match((await run(agent, state)).finalOutput ?? "", /dan.*receipt/);
});

test("arguments that changed after the approval are refused", async () => {
  for (const remembers of [true, false]) {
    const scope = crypto.randomUUID();
    const first = await begin("mail__send", { to: "eve" }, scope);
    const [pending] = await first.adapter.resolve(first.result.state);
    await host.approve(pending?.approvalId ?? "");
    await host.client.call(pending?.callId ?? "", { waitMs: 20_000 });
    const adapter = remembers ? first.adapter : await mortiseTools(host.client, { only: ["mail/*"], scope });
    const agent = await agentFor(adapter, "mail__send", { to: "eve" });
    const before = await host.calls("mail/send");
    const state = await RunState.fromString(agent, first.result.state.toString().replaceAll('\\"to\\":\\"eve\\"', '\\"to\\":\\"mallory\\"'));
    const [item] = state.getInterruptions();
    assert.ok(item && JSON.stringify(item).includes("mallory"));
    await assert.rejects(adapter.resolve(state), ArgumentsChanged);
    state.approve(item);
    await assert.rejects(run(agent, state), (error) => mortiseErrorOf(error) instanceof ArgumentsChanged);
    assert.equal(await host.calls("mail/send"), before);
  }
});

test("what waits can be withdrawn, and is not to be approved any more", async () => {
  const { adapter, agent, result } = await begin("mail__send", { to: "gus" });
  const [pending] = await adapter.resolve(result.state);
  await adapter.withdraw(result.state, "the user left");
  assert.match((await run(agent, result.state)).finalOutput ?? "", /the user left/);
  await assert.rejects(host.approve(pending?.approvalId ?? ""));
});

test("arguments that are no JSON make no call", async () => {
  const { adapter, agent, result } = await begin("mail__send", "{to"); // which the framework holds back
  assert.deepEqual(await adapter.resolve(result.state), []);
  assert.match((await run(agent, result.state)).finalOutput ?? "", /not approved/); // in the framework's words
});
