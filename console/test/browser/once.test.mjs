// A form whose answer was lost, or was not waited for, is sent again and done once; and a burst
// of events has a page look again once.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, signIn } from "./host.mjs";

const skip = missing;
let chrome;
let host;
let page;

const bank = (log, gate) => `import os, time
from mortise import Plugin

plugin = Plugin("mail", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def lose(to: str) -> str:
    """Pay, once the test allows it."""
    with open(${JSON.stringify(log)}, "a") as f:
        f.write(to + "\\n")
    while to.startswith("slow") and not os.path.exists(${JSON.stringify(gate)}):
        time.sleep(0.01)
    return "paid " + to

plugin.run()
`;

before(async () => {
  if (skip !== undefined) return;
  chrome = await chromium.launch(launch);
  host = new Host();
  host.log = join(host.dir, "paid.txt");
  host.gate = join(host.dir, "gate");
  host.plugin("mail", bank(host.log, host.gate));
  const link = await host.serve();
  page = await (await chrome.newContext({ baseURL: host.origin })).newPage();
  page.setDefaultTimeout(20_000);
  await signIn(page, link);
});
after(async () => {
  await chrome?.close();
  await host?.stop();
});

const paid = (to) => readFileSync(host.log, "utf8").split("\n").filter((line) => line === to).length;

test("a call whose answer is lost is made once, however often the form is sent", { skip, timeout: 60_000 }, async () => {
  await page.goto("/operations/mail/lose");
  await page.getByLabel(/^To/).fill("lost");
  const keys = [];
  let lose = true;
  await page.route("**/api/v1/operations/**", async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    if (!lose) return route.continue();
    await route.fetch(); // the host has done it, and no one hears of it
    return route.abort("connectionreset");
  });
  for (const _ of [1, 2]) {
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("The host cannot be reached").waitFor();
  }
  lose = false;
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("paid lost").first().waitFor();
  assert.equal(paid("lost"), 1);
  assert.equal(new Set(keys).size, 1, keys.join(" "));
  // its end was seen: the same form is another intent now
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForResponse((r) => r.url().includes("/operations/"));
  await page.getByText("paid lost").first().waitFor();
  assert.equal(paid("lost"), 2);
  assert.equal(new Set(keys).size, 2);
  await page.unroute("**/api/v1/operations/**");
});

test("a call that is not waited for is made once, and another input is another call", { skip, timeout: 60_000 }, async () => {
  await page.goto("/operations/mail/lose");
  await page.getByLabel(/^To/).fill("slow");
  for (const _ of [1, 2]) {
    const sent = page.waitForRequest((r) => r.url().includes(":execute"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await sent;
    await page.getByRole("button", { name: "Stop waiting" }).click();
  }
  writeFileSync(host.gate, "");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("paid slow").first().waitFor();
  assert.equal(paid("slow"), 1);
  await page.getByLabel(/^To/).fill("slower");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("paid slower").first().waitFor();
  assert.equal(paid("slower"), 1);
});

test("events without a pause have a page look again a few times, and not for each of them", { skip, timeout: 120_000 }, async () => {
  // The clock of the page and its stream of events are those of the test; what it asks is real.
  const own = await page.context().newPage();
  await own.clock.install({ time: new Date() });
  await own.addInitScript(() => {
    const real = globalThis.fetch;
    const stream = new ReadableStream({ start: (c) => (globalThis.tell = (text) => c.enqueue(new TextEncoder().encode(text))) });
    globalThis.fetch = (url, init) => (String(url) === "/api/v1/events" ? Promise.resolve(new Response(stream, { headers: { "Content-Type": "text/event-stream" } })) : real(url, init));
  });
  const asked = new Map();
  own.on("request", (r) => {
    const path = r.url().replace(host.origin, "");
    if (path.startsWith("/api/v1/")) asked.set(path, (asked.get(path) ?? 0) + 1);
  });
  const settled = () => own.waitForFunction(() => document.querySelector("main h1") !== null && document.querySelector('main [aria-busy="true"]') === null);
  await own.goto("/");
  await settled();
  for (const path of asked.keys()) asked.set(path, 0);
  const nouns = ["call", "approval", "plugin", "ledger"];
  const [bursts, most] = [200, 8]; // 20 s of events, every 100 ms
  for (let i = 0; i < bursts; i++) {
    await own.evaluate((text) => globalThis.tell(text), nouns.map((noun) => `id: ${i}\nevent: ${noun}.changed\ndata: ${JSON.stringify({ type: `${noun}.changed`, noun, id: `x${i}`, at: "" })}\n\n`).join(""));
    await own.clock.runFor(100);
  }
  await settled();
  const during = new Map(asked);
  assert.ok([...during.values()].filter((n) => n > 0).length >= 5, [...during].join(" "));
  for (const [path, n] of during) assert.ok(n <= most, `${n} requests for ${path} after ${bursts * nouns.length} events`);
  await own.evaluate(() => globalThis.tell('event: call.succeeded\ndata: {"type":"call.succeeded","noun":"call","id":"last","at":""}\n\n'));
  await own.clock.runFor(10_000); // the last event is looked at, and then nothing is
  await settled();
  const after = new Map(asked);
  const calls = [...asked.keys()].filter((path) => path.startsWith("/api/v1/calls"));
  for (const path of calls) assert.ok(after.get(path) > during.get(path), path);
  await own.clock.runFor(120_000);
  await settled();
  assert.deepEqual(new Map(asked), after, "an idle page asks nothing");
  await own.close();
});
