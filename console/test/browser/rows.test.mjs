// Every action of a row is pressed, and what becomes of the rows is compared: the one that was
// pressed is gone or another, and each of the rest is as it was. A row is named by an id or by
// all of its key columns, so that rows which differ in one column alone are told apart.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, person, program, watch } from "./host.mjs";
import { Provider } from "./provider.mjs";

const skip = missing;
let chrome;
let host;
let provider;
let page;
let wrong;

const secrets = ["key", "other"].flatMap((name) => ["*", "mail"].flatMap((plugin) => ["", "local:owner", "bob", "eve"].map((user) => ({ name, plugin, user }))));

before(async () => {
  if (skip !== undefined) return;
  chrome = await chromium.launch(launch);
  provider = new Provider();
  await provider.start();
  host = new Host();
  host.people(provider, "expire: 24h", "local:owner", "bob", "eve");
  host.fill();
  for (const { name, plugin, user } of secrets) {
    const whose = user === "" ? ["--system"] : ["--user", user];
    execFileSync(program, ["secrets", "set", name, "--plugin", plugin, ...whose], { env: host.env(), input: "correct-horse-battery", stdio: ["pipe", "pipe", "pipe"] });
  }
  for (const name of ["ci", "ci", "ci"]) host.run("tokens", "create", name, "--scope", "run");
  for (const name of ["acme", "beta"]) host.run("tenants", "create", name);
  const note = join(host.dir, "second.txt");
  writeFileSync(note, "The harbour report of April names no ship.");
  host.run("kb", "add", "--kb", "notes", note);
  for (const name of ["one", "two"]) {
    writeFileSync(join(host.dir, `${name}.cedar`), `@id("${name}") permit (principal, action == Action::"execute", resource == Operation::"mail/check");\n`);
    host.run("policy", "put", name, join(host.dir, `${name}.cedar`));
  }
  await host.serve();
  await person(chrome, host, provider, "bob"); // a second browser of another person
  page = await person(chrome, host, provider, "local:owner");
  wrong = watch(page, host.origin);
});
after(async () => {
  await chrome?.close();
  await host?.stop();
  provider?.stop();
});

/**
 * The lists whose rows have actions: where they come from, which columns name a row, which texts
 * its place on the page shows of them, and what a press does.
 */
const lists = [
  { path: "/secrets", list: "secrets", member: "secrets", key: ["name", "plugin", "scope", "subject"], shows: (r) => [r.name, r.plugin, r.scope === "system" ? "all users" : r.subject], action: /^Delete /, does: "gone" },
  { path: "/tokens", list: "tokens", member: "tokens", key: ["id"], shows: (r) => [r.id], action: /^Revoke /, does: "changed" },
  { path: "/users", list: "users", member: "users", key: ["id"], shows: (r) => [r.principal], action: /^Invite /, does: "changed" },
  { path: "/users", list: "users", member: "users", key: ["id"], shows: (r) => [r.principal], action: /^Disable (?!local:owner)/, does: "changed" },
  { path: "/users", list: "users", member: "users", key: ["id"], shows: (r) => [r.principal], action: /^Enable /, does: "changed" },
  { path: "/tenants", list: "tenants", member: "tenants", key: ["name"], shows: (r) => [r.name], action: /^Disable /, does: "changed" },
  { path: "/tenants", list: "tenants", member: "tenants", key: ["name"], shows: (r) => [r.name], action: /^Enable /, does: "changed" },
  { path: "/knowledge/notes", list: "knowledge/notes/documents", member: "documents", key: ["document_id"], shows: (r) => [r.title || r.source_id], action: /^Delete /, does: "gone" },
  { path: "/policy", list: "policies", member: "policies", key: ["source", "name"], shows: (r) => [r.name, r.source === "stored" ? "the database" : r.source], action: /^Remove/, does: "gone" },
];
/** Actions in rows that change nothing, or cannot be pressed without ending the test. */
const harmless = [["/plugins/held", /^Compare /], ["/users", /^Sign out/], ["/users", /^Disable local:owner/], ["/secrets", /^Add /], ["/sessions/", /./], ["/plans/", /./], ["/", /^(Raw|Pretty|Copy|\d+ more)$/]];

const rowsOf = async (one) => (await (await page.request.get(`/api/v1/${one.list}`)).json())[one.member];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const nameOf = (button) => button.evaluate((b) => b.textContent.replace(/\s+/g, " ").trim());

/** Returns the buttons that stand in rows of a page. */
async function actionsOf(path) {
  await page.goto(path);
  await page.waitForFunction(() => document.querySelector("main h1") !== null && document.querySelector('main [aria-busy="true"]') === null);
  return page.locator("main tr button, main li button").all();
}

for (const one of lists) {
  test(`${one.action} on ${one.path} is for its row, and for no other`, { skip, timeout: 300_000 }, async () => {
    const done = new Set();
    for (;;) {
      const before = await rowsOf(one);
      assert.equal(new Set(before.map((r) => JSON.stringify(one.key.map((k) => r[k])))).size, before.length, "the columns name a row");
      let pressed;
      for (const button of await actionsOf(one.path)) {
        const row = button.locator("xpath=ancestor::*[self::tr or self::li][1]");
        const texts = (await row.innerText()).split(/[\n\t]/).map((t) => t.trim());
        if (!one.action.test(await nameOf(button))) continue;
        const [meant, ...more] = before.filter((r) => one.shows(r).every((text) => texts.includes(text)));
        assert.ok(meant !== undefined && more.length === 0, `${texts.join(" | ")} shows one row of ${one.list}`);
        if (done.has(JSON.stringify(one.key.map((k) => meant[k])))) continue;
        done.add(JSON.stringify(one.key.map((k) => meant[k])));
        pressed = meant;
        await button.click();
        break;
      }
      if (pressed === undefined) break;
      const answered = page.waitForResponse((r) => r.request().method() !== "GET" && r.url().includes("/api/v1/"));
      await page.locator("dialog[open] button.primary, dialog[open] button.danger").click();
      assert.ok((await answered).ok(), `${one.path} ${JSON.stringify(pressed)}: ${(await answered).status()} ${(await answered).url()}`);
      const after = await rowsOf(one);
      const is = (r) => one.key.every((k) => r[k] === pressed[k]);
      assert.deepEqual(after.filter((r) => !is(r)), before.filter((r) => !is(r)), `only ${JSON.stringify(pressed)} is another`);
      const now = after.find(is);
      if (one.does === "gone") assert.equal(now, undefined, `${JSON.stringify(pressed)} is gone`);
      else assert.ok(now !== undefined && !same(now, pressed), `${JSON.stringify(pressed)} is another`);
    }
    assert.ok(done.size >= 2, `${done.size} rows of ${one.path} were pressed`);
    assert.deepEqual(wrong, []);
  });
}

test("no row has an action that is not pressed here", { skip, timeout: 120_000 }, async () => {
  const list = (...args) => JSON.parse(host.run(...args, "--json"));
  const paths = ["/", "/calls", "/approvals?state=all", "/operations", "/plugins", "/plugins/mail", "/plugins/held", "/plans", `/plans/${list("plans", "list").plans[0].id}`, "/agents", "/agents/helper", "/sessions", `/sessions/${list("sessions", "list").sessions[0].id}`,
    "/knowledge", "/knowledge/notes", "/feeds", `/feeds/${list("feeds", "list").feeds[0].id}`, "/decisions", "/secrets", "/policy", "/ledger", "/users", "/tokens", "/quotas", "/models", "/tenants"];
  let seen = 0;
  for (const path of paths) {
    for (const button of await actionsOf(path)) {
      const name = await nameOf(button);
      seen++;
      assert.ok(lists.some((one) => one.path === path && one.action.test(name)) || harmless.some(([prefix, action]) => path.startsWith(prefix) && action.test(name)), `${path} has the action ${name}`);
    }
  }
  assert.ok(seen > 5, `${seen} actions`);
});

test("a browser that is signed out is the one of its row", { skip, timeout: 60_000 }, async () => {
  await person(chrome, host, provider, "local:owner"); // another browser of the same person
  await page.goto("/users");
  const others = page.getByRole("listitem").filter({ hasText: "Sign out" }).filter({ hasNotText: "this browser" });
  await others.first().waitFor();
  const before = (await (await page.request.get("/api/v1/browsers")).json()).browsers;
  const name = await nameOf(others.first().getByRole("button"));
  const answered = page.waitForResponse((r) => r.request().method() === "POST" && r.url().includes(":end"));
  await others.first().getByRole("button").click();
  await answered;
  const after = (await (await page.request.get("/api/v1/browsers")).json()).browsers;
  const gone = before.filter((b) => !after.some((one) => one.id === b.id));
  assert.deepEqual(gone.map((b) => `Sign out of ${b.id}`), [name]);
});

test("who may set secrets of the system can, and no one else is offered to", { skip, timeout: 120_000 }, async () => {
  await page.goto("/secrets");
  await page.getByRole("button", { name: "Add a secret…" }).click();
  await page.getByLabel("Name (required)").fill("shared");
  await page.getByLabel("Value (required)").fill("correct-horse-battery");
  await page.getByLabel(/For all users/).check();
  await page.getByRole("button", { name: "Store" }).click();
  await page.getByRole("row").filter({ hasText: "shared" }).filter({ hasText: "all users" }).waitFor();
  const eve = await person(chrome, host, provider, "eve");
  await eve.goto("/secrets");
  await eve.getByRole("button", { name: "Add a secret…" }).click();
  await eve.getByLabel("Name (required)").waitFor();
  assert.equal(await eve.getByLabel(/For all users/).count(), 0);
  assert.deepEqual(wrong, []);
});
