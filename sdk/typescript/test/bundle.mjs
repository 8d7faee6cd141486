// Bundles as the host does: a plugin's entry with the SDK into one .mjs file,
// the boot module first. Tests are bundled the same way, without the boot module.

import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const alias = { "mortise/testing": resolve(root, "src/testing.ts"), mortise: resolve(root, "src/index.ts") };
const shared = { bundle: true, platform: "node", format: "esm", target: "node20", alias, logLevel: "warning", absWorkingDir: root };

rmSync(resolve(root, "build"), { recursive: true, force: true });
mkdirSync(resolve(root, "build/plugins"), { recursive: true });

const plugins = [
  ["reference/plugin.ts", "reference"],
  ...readdirSync(resolve(root, "test/plugins")).map((name) => [`test/plugins/${name}`, name.replace(/\.ts$/, "")]),
];
const tests = readdirSync(resolve(root, "test")).filter((name) => name.endsWith(".test.ts"));

await Promise.all([
  ...plugins.map(([entry, name]) =>
    build({
      ...shared,
      stdin: { contents: `import "./src/boot.ts";\nimport "./${entry}";\n`, resolveDir: root, sourcefile: "entry.ts" },
      outfile: `build/plugins/${name}.mjs`,
    }),
  ),
  build({
    ...shared,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: "build",
    outExtension: { ".js": ".mjs" },
  }),
]);
