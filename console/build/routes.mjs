// Writes src/lib/api/routes.ts: the method and the path of each operation of the API.
import { readFileSync, writeFileSync } from "node:fs";

const document = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
const lines = [];
for (const [path, item] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    if (operation.operationId) lines.push(`  ${JSON.stringify(operation.operationId)}: [${JSON.stringify(method.toUpperCase())}, ${JSON.stringify(path)}],`);
  }
}
writeFileSync(
  new URL("../src/lib/api/routes.ts", import.meta.url),
  `/** The method and the path of each operation of the API. Written by \`npm run types\`. */
import type { operations } from "./schema.d.ts";

export const routes: Record<keyof operations, readonly [method: string, path: string]> = {
${lines.sort().join("\n")}
};
`,
);
