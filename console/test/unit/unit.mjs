// Bundles a module of src/lib, which is TypeScript, so that it can be tested by itself.
import { fileURLToPath, pathToFileURL } from "node:url";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

export async function load(name) {
  const result = await build({
    configFile: false,
    logLevel: "error",
    build: { write: false, minify: false, target: "es2023", lib: { entry: fileURLToPath(new URL(`../../src/lib/${name}`, import.meta.url)), formats: ["es"], fileName: "lib" } },
  });
  const file = join(mkdtempSync(join(tmpdir(), "mortise-unit-")), "lib.mjs");
  writeFileSync(file, [result].flat()[0].output[0].code);
  return import(pathToFileURL(file).href);
}
