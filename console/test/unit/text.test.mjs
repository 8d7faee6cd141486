import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { spell, size, ago } = await load("text.ts");
const { layout } = await load("graph.ts");
const { read } = await load("sse.ts");

test("characters that are not seen or mislead are spelt", () => {
  assert.deepEqual(spell("a\u202eb"), [{ text: "a", odd: false }, { text: "U+202E RIGHT-TO-LEFT OVERRIDE", odd: true }, { text: "b", odd: false }]);
  for (const odd of ["\u200b", "\u0000", "\u001b", "\u00a0", "\ufeff", "\u2066", "\u{e0041}", "\ue000", "\u3164", "\r", "\u0085"]) assert.ok(spell(odd)[0].odd, odd.codePointAt(0).toString(16));
  assert.deepEqual(spell("p\u0430y"), [{ text: "p", odd: false }, { text: "U+0430", odd: true }, { text: "y", odd: false }], "a letter of another alphabet within a word");
  for (const plain of ["Привет, мир", "Grüße", "日本語", "a\nb\tc", "🙂", ""]) assert.ok(spell(plain).every((p) => !p.odd), plain);
});

test("sizes and times", () => {
  assert.deepEqual([size(0), size(1023), size(1536), size(5 * 1024 ** 3)], ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
  const now = Date.parse("2026-01-01T00:00:00Z");
  assert.deepEqual([ago("2025-12-31T23:57:00Z", now), ago("2026-01-01T02:00:00Z", now), ago("?", now)], ["3 minutes ago", "in 2 hours", "?"]);
});

test("a step stands after all that it needs, and a circle ends", () => {
  const places = layout([{ id: "c", needs: ["a", "b"] }, { id: "a", needs: [] }, { id: "b", needs: ["a"] }, { id: "x", needs: ["y"] }, { id: "y", needs: ["x"] }]);
  assert.deepEqual(["a", "b", "c"].map((id) => places.get(id).column), [0, 1, 2]);
  assert.equal(places.size, 5);
  assert.equal(new Set([...places.values()].map((p) => `${p.column}/${p.row}`)).size, 5);
});

test("server-sent events are read however they are cut", async () => {
  const text = ": beat\n\nid: 1\nevent: call.succeeded\ndata: {\"a\":\ndata: 1}\n\nretry: 50\r\ndata: two\r\n\r\nid: 3\n\nevent: reset\ndata\n\n";
  for (const step of [1, 2, 7, 1000]) {
    const bytes = new TextEncoder().encode(text);
    const stream = new ReadableStream({ start(c) { for (let i = 0; i < bytes.length; i += step) c.enqueue(bytes.slice(i, i + step)); c.close(); } });
    const found = [];
    let retry = 0;
    for await (const m of read(new Response(stream), (ms) => (retry = ms))) found.push([m.id, m.event, m.data]);
    assert.deepEqual(found, [["1", "call.succeeded", '{"a":\n1}'], ["1", "message", "two"], ["3", "reset", ""]], `in steps of ${step}`);
    assert.equal(retry, 50);
  }
});
