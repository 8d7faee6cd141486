// Every page in its states, light and dark, wide and narrow: nothing that axe finds, no
// error, no report of the content security policy, no request to another origin.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, signIn, watch } from "./host.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.MORTISE_SCREENSHOTS; // a directory for pictures of each page
const skip = missing;
let chrome;

before(async () => {
  if (skip === undefined) chrome = await chromium.launch(launch);
  if (shots !== undefined) mkdirSync(shots, { recursive: true });
});
after(async () => chrome?.close());

const pages = ["/", "/calls", "/approvals", "/approvals?state=all", "/operations", "/operations/pattern_extractor/pattern_extractor", "/plugins", "/plugins/pattern_extractor", "/plans",
  "/agents", "/sessions", "/knowledge", "/feeds", "/secrets", "/policy?operation=pattern_extractor%2Fpattern_extractor", "/ledger", "/people", "/tokens", "/models", "/settings", "/nowhere"];

async function look(page, path, state, wrong) {
  for (const [theme, width] of [["light", 1280], ["dark", 320]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate((t) => localStorage.setItem("mortise-console", JSON.stringify({ theme: t })), theme);
    await page.goto(path);
    await page.waitForFunction(() => document.querySelector("main h1") !== null && document.querySelector('main [aria-busy="true"]') === null);
    const name = `${path} ${state} ${theme} ${width}`;
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name.replaceAll(/[^\w]+/g, "_")}.png`, fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const v of violations) wrong.push(`${name}: ${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? n.failureSummary ?? ""}`).join("; ")}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) wrong.push(`${name}: it is ${over} px wider than the window`);
  }
}

test("every page of a host that is empty, and of one that is full", { skip, timeout: 300_000 }, async () => {
  for (const full of [false, true]) {
    const host = new Host();
    try {
      if (full) host.fill();
      const link = await host.serve();
      const context = await chrome.newContext({ baseURL: host.origin });
      const page = await context.newPage();
      const wrong = watch(page, host.origin);
      await signIn(page, link);
      const more = [];
      if (full) {
        const { calls } = JSON.parse(host.run("calls", "list", "--json"));
        const { approvals } = JSON.parse(host.run("approvals", "list", "--json"));
        const { sessions } = JSON.parse(host.run("sessions", "list", "--json"));
        more.push(`/calls/${calls[0].call_id ?? calls[0].id}`, `/approvals/${approvals[0].id}`, `/decide/${approvals[0].id}`, "/operations/mail/send", "/plugins/mail", "/knowledge/notes", "/agents/helper");
        if (sessions?.[0]) more.push(`/sessions/${sessions[0].id}`);
      }
      for (const path of [...pages, ...more]) await look(page, path, full ? "full" : "empty", wrong);
      assert.deepEqual(wrong, []);
      await context.close();
    } finally {
      await host.stop();
    }
  }
});

test("a browser that is not signed in is told so on every page", { skip, timeout: 60_000 }, async () => {
  const host = new Host();
  try {
    await host.serve();
    const context = await chrome.newContext({ baseURL: host.origin });
    const page = await context.newPage();
    for (const path of ["/", "/calls", "/decide/1"]) {
      await page.goto(path);
      await page.getByRole("heading", { name: "You are signed out" }).waitFor();
    }
    await context.close();
  } finally {
    await host.stop();
  }
});
