// Entries of the ledger in words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { detailsOf, reasonOf, titleOf } = await load("story.ts");

test("a sentence of policy is taken apart into what the rule says, its name and its place", () => {
  assert.deepEqual(reasonOf("mail.cedar:3 outside asks for approval: it leaves the house"), { says: "it leaves the house", rule: "outside", where: "mail.cedar:3" });
  assert.deepEqual(reasonOf("policies/all.cedar:7 lost"), { says: "", rule: "lost", where: "policies/all.cedar:7" });
  assert.deepEqual(reasonOf("policy.default, rule 1"), { says: "", rule: "1", where: "policy.default" });
  assert.deepEqual(reasonOf("step post: the agent asks for it"), { says: "step post: the agent asks for it", rule: "", where: "" });
  assert.deepEqual(reasonOf(""), { says: "", rule: "", where: "" });
});

test("an entry says what policy decided, why it failed and how long it took", () => {
  const body = { decision: { verdict: "allow_with_approval", reasons: ["a.cedar:1 x asks for approval: y"] }, error: { code: "timeout", message: "too slow" }, effects: ["mail_send"], metrics: { latency_ms: 31.7 }, isolation: "full" };
  assert.deepEqual(detailsOf(body).map((d) => `${d.name}: ${d.text}`), ["Policy decided: allow after approval", "By: a.cedar:1 x asks for approval: y", "Error timeout: too slow", "Effects: mail send", "Sandbox level: full", "Took: 32 ms"]);
  for (const odd of [undefined, null, 3, [], { decision: 3, effects: [1], error: "x", metrics: [] }]) assert.deepEqual(detailsOf(odd), []);
});

test("a kind without words of its own is shown as it is", () => {
  assert.equal(titleOf("call.unknown"), "Outcome unknown");
  assert.equal(titleOf("kb.created"), "kb.created");
});
