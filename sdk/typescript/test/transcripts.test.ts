import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parseExact } from "../src/json.ts";
import { Child, root } from "./child.ts";

const folder = `${root}../../protocol/testdata/`;
const files = readdirSync(folder).filter((name) => name.endsWith(".txtar"));

test("there are transcripts of both versions", () => {
  assert.ok(files.includes("session.txtar") && files.includes("v1_ok.txtar"));
});

for (const file of files) {
  test(`the reference plugin follows ${file}`, async () => {
    const { sections, lines } = parse(readFileSync(folder + file, "utf8"));
    const plugin = new Child("reference");
    for (const line of lines) {
      if (line.startsWith("-> ")) plugin.send(line.slice(3));
      else if (line.startsWith("<- ")) {
        const got: unknown = await plugin.frame();
        const want = parseExact(line.slice(3));
        // In version 1 the plugin may expose more tools than the file does.
        if (sections.get("version") === "1") exposeWanted(got, want);
        match(got, want);
      }
    }
    assert.equal(await plugin.line(), undefined);
    assert.equal(await plugin.exited, 0, plugin.stderr);
  });
}

function parse(text: string): { sections: Map<string, string>; lines: string[] } {
  const [, ...parts] = text.split(/^-- (\w+) --\n/m);
  const sections = new Map<string, string>();
  for (let i = 0; i + 1 < parts.length; i += 2) sections.set(parts[i] ?? "", (parts[i + 1] ?? "").trim());
  return { sections, lines: (sections.get("conversation") ?? "").split("\n") };
}

function exposeWanted(got: unknown, want: unknown): void {
  const { manifest } = got as { manifest?: { exposed_tools: string[] } };
  const wanted = (want as { manifest?: { exposed_tools: string[] } }).manifest?.exposed_tools ?? [];
  if (manifest) manifest.exposed_tools = manifest.exposed_tools.filter((tool) => wanted.includes(tool));
}

function match(got: unknown, want: unknown): void {
  assert.deepEqual(got, fill(want, got));
}

// Puts what was got in the place of "<any>".
function fill(want: unknown, got: unknown): unknown {
  if (want === "<any>" && got !== undefined) return got;
  if (Array.isArray(want)) return want.map((item, i) => fill(item, Array.isArray(got) ? (got as unknown[])[i] : undefined));
  if (typeof want !== "object" || want === null) return want;
  return Object.fromEntries(Object.entries(want).map(([key, item]) => [key, fill(item, (got as Record<string, unknown> | null)?.[key])]));
}
