// Writes the blocks in TypeScript of docs/guides/agent-frameworks.md beside the tests, which are compiled with them.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const page = readFileSync("../../../docs/guides/agent-frameworks.md", "utf8");
rmSync("test/guide", { recursive: true, force: true });
mkdirSync("test/guide");
for (const [, name, text] of page.matchAll(/^```ts (\S+)\n(.*?)^```$/gms)) {
  writeFileSync(
    `test/guide/${name}`,
    text.replaceAll(/"mortise-client(?:\/([a-z-]+))?"/g, (_, module) => `"../../src/${module ?? "index"}.ts"`), // the package is not built here
  );
}
