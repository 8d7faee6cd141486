// Compresses the built console into the directory that the host embeds. Equal sources give
// equal bytes: names are hashes, and the compression records neither time nor system.
// With --check it writes nothing and fails if the directory differs from the built files.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const from = fileURLToPath(new URL("../dist/", import.meta.url));
const to = fileURLToPath(new URL("../../internal/surface/console/dist/", import.meta.url));
const check = process.argv.includes("--check");
const files = (dir) => readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const embedded = check ? files(to).length : 0;
if (!check) rmSync(to, { recursive: true, force: true });

let script = 0;
let all = 0;
const sizes = new Map();
const stale = [];
for (const entry of files(from)) {
  const path = `${entry.parentPath}/${entry.name}`.replaceAll("//", "/");
  const name = path.slice(from.length);
  const packed = gzipSync(readFileSync(path), { level: 9 });
  packed[9] = 255; // the system that compressed it
  sizes.set(name, packed.length);
  all += packed.length;
  const target = `${to}${name}.gz`;
  if (check) {
    if (!existsSync(target) || !readFileSync(target).equals(packed)) stale.push(name);
    continue;
  }
  mkdirSync(to + name.split("/").slice(0, -1).join("/"), { recursive: true });
  writeFileSync(target, packed);
}
if (stale.length > 0 || (check && embedded !== sizes.size)) {
  console.error(`console: internal/surface/console/dist is not the built console (${stale.join(", ") || "it has more files"}); run "npm run build" in console/`);
  process.exit(1);
}

// What the first page needs: the page, and what it names.
const page = readFileSync(`${from}index.html`, "utf8");
for (const [, name] of page.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)) script += sizes.get(name);
console.log(`console: the first page has ${(script / 1024).toFixed(1)} KB of script, all files ${(all / 1024).toFixed(1)} KB, compressed`);
const [mostScript, most] = [120, 1200];
if (script > mostScript * 1024 || all > most * 1024) {
  console.error(`console: more than ${mostScript} KB of script for the first page, or ${most} KB in all`);
  process.exit(1);
}
