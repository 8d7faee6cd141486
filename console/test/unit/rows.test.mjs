// A row of a list is named by all that tells it from the others: two rows that differ in one
// column alone are two requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { deletion } = await load("secrets.ts");
const { address } = await load("api/client.ts");

test("deleting a secret names its row and no other", () => {
  const rows = ["key", "other", "a/b", "a?user=ann"].flatMap((name) => ["*", "mail", "mail&system=true"].flatMap((plugin) => [["system", ""], ["user", "ann"], ["user", "bob"], ["user", "ann&system=true"]].map(([scope, subject]) => ({ name, plugin, scope, subject }))));
  const addresses = rows.map((row) => address("delete-secret", deletion(row)));
  assert.equal(new Set(addresses).size, rows.length);
  for (const [i, row] of rows.entries()) {
    const url = new URL(addresses[i], "http://host");
    assert.equal(decodeURIComponent(url.pathname.split("/").at(-1)), row.name);
    assert.deepEqual(Object.fromEntries(url.searchParams), { plugin: row.plugin, ...(row.scope === "system" ? { system: "true" } : { user: row.subject }) });
  }
});
