import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { codes, pluginCodes } from "../src/codes.ts";
import { root } from "./child.ts";

test("the codes are those of the protocol", () => {
  const listed = JSON.parse(readFileSync(`${root}../../protocol/codes.json`, "utf8")) as { code: string }[];
  assert.deepEqual(codes, listed.map(({ code }) => code));
});

test("the codes of plugins are those of the protocol", () => {
  const norm = readFileSync(`${root}../../docs/protocol.md`, "utf8");
  const sentence = /In both, `code` may be one of ([^.]*)\./.exec(norm)?.[1] ?? "";
  assert.deepEqual([...pluginCodes], Array.from(sentence.matchAll(/`(\w+)`/g), ([, code]) => code));
});
