// Forty schemas are filled in and sent, and the host's answer stands at the fields: at the
// places that the command line names for the same input.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { fill } from "./fill.mjs";
import { Host, launch, missing, signIn, watch } from "./host.mjs";
import { shipped, torture } from "./schemas.mjs";

const skip = missing;
const secret = "canary-2f61c9-of-the-secret";
const vault = {
  name: "secrets",
  schema: {
    type: "object", additionalProperties: false, required: ["key", "n"],
    properties: { key: { type: "string", format: "password" }, token: { type: "string", "x-binding": "secret:api" }, n: { type: "integer", minimum: 1 } },
  },
};
let chrome;
let host;
let page;
let wrong;
const traffic = [];
const answers = [];
const waits = [];

const source = (names) => `from mortise import Plugin

plugin = Plugin("torture", version="1.0.0")
for name in ${JSON.stringify(names)}:
    plugin.tool(name=name)(lambda **values: {"members": sorted(values)})
plugin.run()
`;

before(async () => {
  if (skip !== undefined) return;
  host = new Host();
  host.policy(`@id("all") permit (principal, action, resource);`);
  const cases = [...torture, vault];
  const files = { "plugin.py": source(cases.map((c) => c.name)) };
  let manifest = `name: torture\nversion: 1.0.0\nowner: test\ndescription: Takes inputs of many forms.\nrunner: {kind: process, entry: plugin.py, protocol: "2"}\noperations:\n`;
  for (const c of cases) {
    files[`schemas/${c.name}.json`] = JSON.stringify({ $schema: "https://json-schema.org/draft/2020-12/schema", ...c.schema });
    manifest += `  ${c.name}: {kind: tool, description: One of many., input: schemas/${c.name}.json, output: schemas/any.json, timeout: fast${c === vault ? ", secrets: {api: {allowed_scope: system_or_user}}" : ""}}\n`;
  }
  files["schemas/any.json"] = `{"type": "object"}`;
  host.run("plugins", "register", host.write("torture", { ...files, "manifest.yaml": manifest }));
  for (const { plugin } of shipped) if (plugin !== "") host.run("plugins", "register", fileURLToPath(new URL(`../../../plugins/${plugin}`, import.meta.url)));
  const kept = host.write("kept", { api: secret });
  host.run("secrets", "set", "api", "--from-file", `${kept}/api`);
  const link = await host.serve();
  chrome = await chromium.launch(launch);
  page = await (await chrome.newContext({ baseURL: host.origin })).newPage();
  page.setDefaultTimeout(5_000);
  wrong = watch(page, host.origin);
  page.on("request", (r) => traffic.push(r.url(), r.postData() ?? ""));
  await page.exposeFunction("heard", (url, status, type, text) => {
    traffic.push(text);
    answers.push({ url, status, type, text });
    waits.splice(0).forEach((go) => go());
  });
  await page.addInitScript(() => { // what the page is answered, also where it is a stream
    const ask = globalThis.fetch;
    globalThis.fetch = async (...request) => {
      const answer = await ask(...request);
      if (!answer.url.endsWith("/events")) void answer.clone().text().then((text) => globalThis.heard(answer.url, answer.status, answer.headers.get("Content-Type") ?? "", text), () => {});
      return answer;
    };
  });
  await signIn(page, link);
});
after(async () => {
  await chrome?.close();
  await host?.stop();
});

const plain = (value) => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `exact:${v}` : v)).replaceAll(/"exact:(\d+)"/g, "$1");

const sorted = (text) => JSON.stringify(JSON.parse(text, (_, v) => (typeof v === "object" && v !== null && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v)));

/** What is sent, without what the form begins with by itself at the top. */
function members(body, value) {
  const all = JSON.parse(sorted(body));
  return JSON.stringify(Object.fromEntries(Object.entries(all).filter(([name]) => name in value)));
}

/** Sends the form and returns the request's input and the answer. */
async function send() {
  answers.length = 0;
  const asked = page.waitForRequest((r) => r.method() === "POST" && r.url().includes(":execute"));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const body = /^\{"input":(.*)\}$/s.exec((await asked).postData())[1];
  const mine = () => answers.find((a) => a.url.includes(":execute"));
  while (mine() === undefined) await new Promise((go) => waits.push(go));
  const { status, type, text } = mine();
  if (type.includes("json")) return { body, status, answer: JSON.parse(text) };
  const [, event, data] = /event: (problem|result)\n(?:id: .*\n)?data: (.*)\n/.exec(text);
  const said = JSON.parse(data);
  return { body, status: event === "problem" ? said.status : status, answer: said };
}

/** The places that the command line names. */
function placesOf(message) {
  const found = message.slice(message.indexOf(": input ") + 8);
  return found.replace(/; and \d+ more$/, "").split(/; (?=at )/).map((part) => /^at (the top|\/.*?): /s.exec(part)[1]).map((p) => (p === "the top" ? "" : p));
}

/** The plugin's own check refuses: its sentences stand at the fields that they begin with. */
async function told(name, value) {
  await page.goto(`/operations/${name}`);
  await fill(page, value);
  const { body, answer } = await send();
  const { error } = JSON.parse(host.tries("run", name, "--input", body, "--json").stdout);
  assert.deepEqual(answer.error.details, error.details, name);
  await page.locator(".faults li").first().waitFor();
  for (const detail of error.details.errors) {
    const pointer = `/${detail.split(" ")[0]}`;
    assert.equal(await page.locator(`.faults li[data-pointer="${pointer}"]`).count(), 1, `${name}: ${detail}`);
    assert.equal(await page.locator(".fault").filter({ hasText: detail }).count(), 1, `${name}: ${detail}`);
  }
}

async function refused(name, value, picks) {
  await page.goto(`/operations/${name}`);
  await fill(page, value, picks);
  const { body, status, answer } = await send();
  assert.deepEqual(members(body, value), sorted(plain(value)), `${name}: what was filled in is what is sent`);
  assert.equal(status, 422, `${name}: ${JSON.stringify(answer)}`);
  const { stdout } = host.tries("run", name, "--input", body, "--json");
  const { error } = JSON.parse(stdout);
  assert.equal(error.code, "invalid_input", name);
  const told = placesOf(error.message);
  assert.deepEqual(answer.errors.map((e) => e.pointer).slice(0, 5), told.map((p) => `/input${p}`), `${name}: ${error.message}`);

  await page.locator(".faults li").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("faults")), true, `${name}: the summary is told`);
  assert.deepEqual(await page.locator(".faults li").evaluateAll((list) => list.map((e) => e.dataset.pointer)), answer.errors.map((e) => e.pointer.slice("/input".length)), name);
  const links = page.locator(".faults li a");
  for (let i = 0; i < (await links.count()); i++) { // each leads into the form
    await links.nth(i).click();
    assert.equal(await page.evaluate(() => document.activeElement.closest('section[aria-label="Run it"] form') !== null && document.activeElement.tagName !== "A"), true, `${name}: link ${i}`);
  }
  const fields = await page.locator(".fault").allTextContents();
  const hidden = answer.errors.filter((e) => !fields.some((f) => f.includes(e.detail)));
  return hidden;
}

for (const c of torture) {
  test(`the form of ${c.name}`, { skip, timeout: 60_000 }, async () => {
    const hidden = await refused(`torture/${c.name}`, c.wrong, c.picks);
    if (c.name !== "hidden") assert.deepEqual(hidden, [], "what is wrong stands at a field");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("The input as JSON").fill(JSON.stringify(c.right));
    await page.getByRole("button", { name: "Form", exact: true }).click();
    const { body, status } = await send();
    assert.deepEqual([body, status], [JSON.stringify(c.right), 200], "the form loses nothing of a value that JSON gave");
    await page.getByText("succeeded").first().waitFor();
    assert.deepEqual(wrong, []);
  });
}

for (const c of shipped) {
  test(`the form of ${c.name}, which ships`, { skip, timeout: 60_000 }, async () => {
    if (c.own) await told(c.name, c.wrong);
    else await refused(c.name, c.wrong, c.picks);
    assert.deepEqual(wrong, []);
  });
}

test("a secret is chosen by its name, and is nowhere in the browser nor in the host's log", { skip, timeout: 60_000 }, async () => {
  await page.goto("/operations/torture/secrets");
  await fill(page, { key: { $secret: "api" }, n: 0 });
  const { answer } = await send();
  assert.equal(answer.code ?? answer.error?.code, "invalid_input", JSON.stringify(answer)); // what does not fit may be a secret, so that no place is named
  await fill(page, { n: 3 });
  assert.equal((await send()).status, 200);
  await page.getByText("succeeded").first().waitFor();
  const { calls } = JSON.parse(host.run("calls", "list", "--json"));
  await page.goto("/secrets");
  await page.getByText("api").first().waitFor();
  for (const path of ["/", "/calls", "/ledger", ...calls.slice(0, 1).map((c) => `/calls/${c.call_id ?? c.id}`)]) await page.goto(path);
  const kept = await page.evaluate(() => [document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join("\n"));
  for (const [where, what] of [["the page", kept], ["requests and answers", traffic.join("\n")], ["the log", host.said]]) assert.equal(what.includes(secret), false, where);
  assert.equal(traffic.some((one) => one.includes('"$secret":"api"')), true, "its name was sent");
  assert.equal(torture.length + shipped.length >= 40, true);
});
