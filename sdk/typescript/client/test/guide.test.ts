// docs/guides/agent-frameworks.md: its programs run, with the frameworks themselves and a real host.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelMessage } from "ai";
import { setTracingDisabled } from "@openai/agents";
import { theHost } from "./host.ts";
import { Script, modelThat } from "./models.ts";

setTracingDisabled(true);

const host = theHost();
process.env["MORTISE_URL"] = host.url;
process.env["MORTISE_TOKEN"] = host.token;

test("the program for the AI SDK", async () => {
  const { turn } = await import("./guide/vercel.ts");
  const model = modelThat("mail__send", { to: "ann", text: "hi" });
  const messages: ModelMessage[] = [{ role: "user", content: "Write to ann." }];
  const [pending] = await turn(model, "c1", messages);
  assert.ok(pending);
  assert.deepEqual(await turn(model, "c1", messages), [pending]);
  await host.approve(pending.approvalId);
  assert.deepEqual(await turn(model, "c1", messages), []);
  assert.match(JSON.stringify(messages), /receipt.*done/);
});

test("the program for OpenAI Agents", async () => {
  const { turn } = await import("./guide/agents.ts");
  const model = new Script("mail__send", { to: "bea", text: "hi" });
  const first = await turn(model, "c2", "Write to bea.");
  const again = await turn(model, "c2", "", first.saved);
  assert.deepEqual(again.pending, first.pending);
  await host.approve(first.pending[0]?.approvalId ?? "");
  const last = await turn(model, "c2", "", first.saved);
  assert.deepEqual(last.pending, []);
  assert.match(last.output ?? "", /bea.*receipt/);
});
