import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { segment } = await load("api/segment.ts");

// The host refuses a path that could be written otherwise; this is its spelling, that
// of paths in Go.
test("a segment of a path is written as the host writes it", () => {
  for (const [text, want] of [["held@1.0.1", "held@1.0.1"], ["local:owner", "local:owner"], ["a/b", "a%2Fb"], ["a b?c#d%", "a%20b%3Fc%23d%25"], ["$&+=,;", "$&+=,;"], ["!'()*", "%21%27%28%29%2A"], ["é", "%C3%A9"], ["~-._", "~-._"]]) {
    assert.equal(segment(text), want);
  }
});
