// Every page in its states, light and dark, wide and narrow: nothing that axe finds, no
// error, no report of the content security policy, no request to another origin.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, person, signIn, watch } from "./host.mjs";
import { Provider } from "./provider.mjs";

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
  "/plugins/pattern_extractor/feed", "/agents", "/sessions", "/knowledge", "/feeds", "/decisions", "/secrets", "/policy?operation=pattern_extractor%2Fpattern_extractor", "/ledger", "/users", "/tokens", "/quotas",
  "/models", "/tenants", "/settings", "/nowhere"];

/** The pages of things that a full host has. */
function things(host) {
  const list = (...args) => JSON.parse(host.run(...args, "--json"));
  const { calls } = list("calls", "list");
  const { approvals } = list("approvals", "list");
  const { sessions } = list("sessions", "list");
  const { plans } = list("plans", "list");
  const { feeds } = list("feeds", "list");
  const id = (one) => one.call_id ?? one.id;
  const of = (state) => calls.find((c) => (c.state ?? c.status) === state);
  return [...["pending_approval", "unknown", "failed"].map((state) => `/calls/${id(of(state))}`), `/approvals/${approvals[0].id}`, `/decide/${approvals[0].id}`, `/plans/${plans[0].id}`, `/sessions/${sessions[0].id}`,
    `/feeds/${feeds[0].id}`, "/operations/mail/send", "/plugins/mail", "/plugins/held", "/knowledge/notes", "/agents/helper"];
}

async function look(page, path, state, wrong) {
  await page.goto(path);
  await page.waitForFunction(() => document.querySelector("main h1") !== null && document.querySelector('main [aria-busy="true"]') === null);
  await page.evaluate(axe);
  for (const [theme, width] of [["light", 1280], ["dark", 1280], ["dark", 320], ["light", 320]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction((t) => document.documentElement.dataset.theme === t, theme);
    const name = `${path} ${state} ${theme} ${width}`;
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name.replaceAll(/[^\w]+/g, "_")}.png`, fullPage: true });
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const v of violations) wrong.push(`${name}: ${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? n.failureSummary ?? ""}`).join("; ")}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) wrong.push(`${name}: it is ${over} px wider than the window`);
  }
}

for (const full of [false, true]) {
  test(`every page of a host that is ${full ? "full" : "empty"}`, { skip, timeout: 600_000 }, async () => {
    const host = new Host();
    try {
      if (full) host.fill();
      const link = await host.serve();
      const context = await chrome.newContext({ baseURL: host.origin });
      const page = await context.newPage();
      const wrong = watch(page, host.origin);
      await signIn(page, link);
      for (const path of [...pages, ...(full ? things(host) : [])]) await look(page, path, full ? "full" : "empty", wrong);
      assert.deepEqual(wrong, []);
      await context.close();
    } finally {
      await host.stop();
    }
  });
}

test("every page where the host answers that it has too much to do", { skip, timeout: 600_000 }, async () => {
  const host = new Host();
  try {
    host.fill();
    const link = await host.serve();
    const context = await chrome.newContext({ baseURL: host.origin });
    const page = await context.newPage();
    const wrong = watch(page, host.origin);
    await signIn(page, link);
    const problem = { type: "about:blank", title: "Service Unavailable", status: 503, code: "overloaded", detail: "the host has more requests at hand than it takes" };
    await page.route("**/api/v1/**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }));
    for (const path of [...pages, ...things(host)]) {
      await look(page, path, "error", wrong);
      if (path !== "/nowhere") assert.notEqual(await page.getByText(problem.detail).count(), 0, `${path} says what is wrong`);
    }
    assert.deepEqual(wrong, []);
    await context.close();
  } finally {
    await host.stop();
  }
});

test("every page for a person who may see and do nothing", { skip, timeout: 600_000 }, async () => {
  const provider = new Provider();
  await provider.start();
  const host = new Host();
  try {
    host.people(provider, "expire: 24h", "local:owner", "eve");
    host.fill();
    await host.serve();
    const page = await person(chrome, host, provider, "eve");
    const wrong = watch(page, host.origin);
    const own = things(host);
    for (const path of [...pages, ...own]) await look(page, path, "refused", wrong);
    for (const path of ["/ledger", "/users", "/agents", "/tenants", ...own.filter((p) => /^\/(calls|plans|feeds|decide|sessions)\//.test(p))]) {
      await page.goto(path);
      await page.getByRole("alert").first().waitFor(); // what is refused is said
    }
    await page.goto("/plugins/held");
    assert.equal(await page.getByRole("button", { name: /^(Approve|Disable|Roll back)/ }).count(), 0);
    assert.deepEqual(wrong, []);
    await page.context().close();
  } finally {
    await host.stop();
    provider.stop();
  }
});

test("a host that is gone is said on the page", { skip, timeout: 60_000 }, async () => {
  const host = new Host();
  try {
    const link = await host.serve();
    const context = await chrome.newContext({ baseURL: host.origin });
    const page = await context.newPage();
    await signIn(page, link);
    await page.goto("/calls");
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    await page.route("**/api/v1/**", (route) => route.abort("connectionrefused"));
    await page.getByRole("link", { name: "Approvals" }).click();
    await page.getByText("The host cannot be reached").waitFor();
    await page.unroute("**/api/v1/**");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Nothing is waiting for a decision.").waitFor();
    await context.close();
  } finally {
    await host.stop();
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
