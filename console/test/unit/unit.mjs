// Bundles a module of src/lib, which is TypeScript, so that it can be tested by itself, and a
// component, so that what it shows can be looked at.
import { fileURLToPath, pathToFileURL } from "node:url";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { svelte, vitePreprocess } from "@sveltejs/vite-plugin-svelte";
import { build } from "vite";

async function bundle(options) {
  const result = await build({ configFile: false, logLevel: "error", ...options, build: { write: false, minify: false, target: "es2023", ...options.build } });
  const file = join(mkdtempSync(join(tmpdir(), "mortise-unit-")), "lib.mjs");
  writeFileSync(file, [result].flat()[0].output[0].code);
  return import(pathToFileURL(file).href);
}

export function load(name) {
  return bundle({ build: { lib: { entry: fileURLToPath(new URL(`../../src/lib/${name}`, import.meta.url)), formats: ["es"], fileName: "lib" } } });
}

/** Returns functions that render components to HTML. */
export function components() {
  return bundle({
    plugins: [svelte({ configFile: false, preprocess: vitePreprocess(), compilerOptions: { runes: true } })],
    ssr: { noExternal: true },
    build: { ssr: fileURLToPath(new URL("./components.js", import.meta.url)) },
  });
}
