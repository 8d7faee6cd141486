// Puts what was built, compressed, where the host embeds it. Equal sources give equal
// bytes: names are hashes, and the compression has no time and no system in it.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const from = fileURLToPath(new URL("../dist/", import.meta.url));
const to = fileURLToPath(new URL("../../internal/surface/console/dist/", import.meta.url));
rmSync(to, { recursive: true, force: true });

let script = 0;
let all = 0;
for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = `${entry.parentPath}/${entry.name}`.replaceAll("//", "/");
  const name = path.slice(from.length);
  const packed = gzipSync(readFileSync(path), { level: 9 });
  packed[9] = 255; // the system that compressed it
  mkdirSync(to + name.split("/").slice(0, -1).join("/"), { recursive: true });
  writeFileSync(`${to}${name}.gz`, packed);
  all += packed.length;
}

// What the first page needs: the page, and what it names.
const page = readFileSync(`${from}index.html`, "utf8");
for (const [, name] of page.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)) script += readFileSync(`${to}${name}.gz`).length;
console.log(`console: the first page has ${(script / 1024).toFixed(1)} KB of script, all files ${(all / 1024).toFixed(1)} KB, compressed`);
const [mostScript, most] = [120, 1200];
if (script > mostScript * 1024 || all > most * 1024) {
  console.error(`console: more than ${mostScript} KB of script for the first page, or ${most} KB in all`);
  process.exit(1);
}
