import assert from "node:assert/strict";
import { test } from "node:test";
import { TestHost } from "mortise/testing";
import { plugin } from "./operations.ts";

const host = new TestHost(plugin);

async function score(text: string, names: string[] = []) {
  const { data } = (await host.call("Text.Score", { text, names })) as {
    data: { score: number; findings: { rule: string; points: number; most: number; text: string }[] };
  };
  return { total: data.score, points: Object.fromEntries(data.findings.map(({ rule, points }) => [rule, points])), findings: data.findings };
}

const good =
  "Dear Professor Curie,\n\n" +
  "I read your paper on pitchblende with great interest. The way you measured the rays has stayed with me. ".repeat(4) +
  "\n\nCould we talk for a few minutes next week? I would be glad to hear what you think of the plan.\n\nAda";

test("a good text has all points", async () => {
  const { total, findings } = await score(good, ["Curie", "pitchblende"]);
  assert.equal(total, 100, JSON.stringify(findings));
});

test("the points are what the rules give, and a hundred at most", async () => {
  for (const text of ["", "x", "?", good, "word ".repeat(5000), "No. Yes. No.", "\u{1f600}".repeat(99)]) {
    const { total, findings } = await score(text, ["x"]);
    assert.equal(total, findings.reduce((sum, { points }) => sum + points, 0));
    assert.equal(findings.reduce((sum, { most }) => sum + most, 0), 100);
    assert.ok(findings.every(({ points, most }) => points >= 0 && points <= most), JSON.stringify(findings));
  }
});

test("each rule sees its own matter", async () => {
  assert.equal((await score("")).total, 0);
  assert.equal((await score("word ".repeat(100))).points["length"], 25);
  assert.equal((await score("word ".repeat(50))).points["length"], 15);
  assert.equal((await score("word ".repeat(400))).points["length"], 5);
  assert.equal((await score(good, ["Curie", "polonium"])).points["personal"], 18);
  assert.equal((await score("It is so.")).points["call_to_action"], 0);
  assert.equal((await score("Is it so?")).points["call_to_action"], 10);
  assert.equal((await score("Could you write?")).points["call_to_action"], 20);
  assert.ok((await score("Interdisciplinary characterisation necessitates methodological considerations.")).points["readability"]! < 10);
});

test("the same text has the same score", async () => {
  assert.deepEqual(await score(good, ["Curie"]), await score(good, ["Curie"]));
});
