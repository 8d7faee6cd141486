// Everything that a person does to govern is done with the keyboard alone: no test here
// clicks, and each moves with Tab, with the keys of the console, and with Enter.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { desk, Host, launch, missing, signIn, watch } from "./host.mjs";

const skip = missing;
let chrome;
let host;
let page;
let wrong;

const mail = `import os
from mortise import Plugin

plugin = Plugin("mail", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def send(to: str, text: str = "") -> str:
    """Send a mail."""
    return "sent to " + to

@plugin.operator(effects=["mail_send"])
def lose(to: str) -> str:
    """Send a mail, and never come back."""
    os._exit(1)

plugin.run()
`;

before(async () => {
  if (skip !== undefined) return;
  chrome = await chromium.launch(launch);
  host = new Host();
  host.policy(`@id("waits") @approval("it leaves the house") permit (principal, action == Action::"execute", resource == Operation::"mail/send");
@id("lost") permit (principal, action == Action::"execute", resource == Operation::"mail/lose");
@id("desk") permit (principal, action == Action::"execute", resource in Plugin::"desk");
@id("approves") permit (principal, action == Action::"approve", resource);
@id("configures") permit (principal, action == Action::"configure", resource);
`);
  host.plugin("mail", mail);
  const link = await host.serve();
  page = await (await chrome.newContext({ baseURL: host.origin })).newPage();
  page.setDefaultTimeout(10_000);
  wrong = watch(page, host.origin);
  await signIn(page, link);
  await page.goto("/");
});
after(async () => {
  await chrome?.close();
  await host?.stop();
});

/** Presses Tab until what has the focus is of this role and name. */
async function tabTo(role, name, most = 80) {
  const wanted = page.getByRole(role, { name, exact: typeof name === "string" });
  await wanted.first().waitFor();
  for (let i = 0; i < most; i++) {
    if (await wanted.evaluateAll((list) => list.includes(document.activeElement))) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no Tab leads to ${role} ${name}`);
}

/** Goes to a page of the console by its keys. */
async function goes(key, title) {
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("g");
  await page.keyboard.press(key);
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
}

test("a tool is run", { skip, timeout: 60_000 }, async () => {
  await page.goto("/operations/mail/send");
  await tabTo("textbox", /^To/);
  await page.keyboard.type("ann@example.com");
  await tabTo("button", "Dry run");
  await page.keyboard.press("Enter");
  await page.getByText("What would happen").waitFor();
  assert.deepEqual(wrong, []);
});

test("a call is approved, with a reason", { skip, timeout: 60_000 }, async () => {
  host.waits("run", "mail/send", "--set", "to=ben@example.com", "--no-wait", "--as", "bob");
  await goes("a", "Approvals");
  await page.getByText("ben@example.com").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await tabTo("textbox", /^Reason/);
  await page.keyboard.type("it was agreed");
  await tabTo("button", "Approve");
  await page.keyboard.press("Enter");
  await page.getByText("This was approved.").waitFor();
  const [row] = JSON.parse(host.run("approvals", "list", "--all", "--json")).approvals;
  assert.equal(row.reason, "it was agreed");
  assert.deepEqual(wrong, []);
});

test("a plan is approved as a whole, and runs", { skip, timeout: 60_000 }, async () => {
  host.run("plugins", "register", host.write("desk", desk));
  const id = host.plan("--as", "bob");
  await goes("n", "Plans");
  await page.getByRole("table").getByText("desk/plan").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await tabTo("link", "Review and decide");
  await page.keyboard.press("Enter");
  await page.getByText("A plan of 2 steps").waitFor();
  await tabTo("textbox", /^Reason/);
  await page.keyboard.type("both steps were agreed");
  await tabTo("button", "Approve");
  await page.keyboard.press("Enter");
  await page.getByText("This was approved.").waitFor();
  await goes("n", "Plans");
  await page.getByRole("table").getByText("desk/plan").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("main").getByText("succeeded").nth(2).waitFor(); // the plan and both of its steps
  const plan = JSON.parse(host.run("plans", "show", id, "--json"));
  assert.equal(plan.state, "succeeded", JSON.stringify(plan));
  assert.deepEqual(wrong, []);
});

test("an outcome that is unknown is settled", { skip, timeout: 60_000 }, async () => {
  host.tries("run", "mail/lose", "--set", "to=lost@example.com");
  const { calls } = JSON.parse(host.run("calls", "list", "--json"));
  const lost = calls.find((c) => c.state === "unknown" || c.status === "unknown");
  assert.notEqual(lost, undefined, JSON.stringify(calls));
  await goes("h", "Home");
  const unknown = page.getByRole("region", { name: "Unknown outcomes" });
  await unknown.getByRole("link").first().waitFor();
  for (let i = 0; i < 80 && !(await unknown.getByRole("link").first().evaluate((e) => e === document.activeElement)); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await tabTo("button", "Settle…");
  await page.keyboard.press("Enter");
  await tabTo("radio", "No, it was not done; the call may run again");
  await page.keyboard.press("ArrowUp");
  await tabTo("textbox", /^How you know/);
  await page.keyboard.type("the other side has no such mail");
  await tabTo("button", "Record the outcome");
  await page.keyboard.press("Enter");
  await page.getByRole("main").getByText("failed").first().waitFor();
  assert.deepEqual(wrong, []);
});

test("a plugin that waits is compared with what was approved, and let go", { skip, timeout: 60_000 }, async () => {
  const packed = (version, text) => host.write(`held-${version}`, {
    "plugin.py": `from mortise import Plugin\n\nplugin = Plugin("held", version="${version}")\n\n@plugin.tool\ndef say() -> str:\n    """Say it."""\n    return "${text}"\n\nplugin.run()\n`,
    "manifest.yaml": `name: held\nversion: ${version}\nowner: test\ndescription: Says ${text}.\nrunner: {kind: process, entry: plugin.py, protocol: "2"}\noperations:\n  say: {kind: tool, description: Say it., timeout: fast}\n`,
  });
  host.run("plugins", "register", packed("1.0.0", "one"));
  const { stderr } = host.tries("plugins", "register", packed("1.0.1", "two"));
  await goes("h", "Home");
  assert.equal(await page.getByRole("link", { name: /^held/ }).first().waitFor().then(() => true, () => false), true, stderr);
  await tabTo("link", /^held/);
  await page.keyboard.press("Enter");
  await tabTo("button", "Compare 1.0.1");
  await page.keyboard.press("Enter");
  await tabTo("button", "Approve 1.0.1…");
  await page.keyboard.press("Enter");
  await tabTo("button", "Approve");
  await page.keyboard.press("Enter");
  await page.getByText("version 1.0.1").first().waitFor();
  await page.getByText("active").first().waitFor();
  assert.deepEqual(wrong, []);
});

test("two hundred events a second leave the page at ease", { skip, timeout: 120_000 }, async () => {
  let longest = [Infinity];
  for (let i = 0; i < 3 && longest.length > 0; i++) longest = await longTasks(); // what else this machine does makes tasks long too
  assert.deepEqual(longest, []);
});

/** Sends 200 events a second to a page for ten seconds, and returns how long its tasks over 50 ms were. */
async function longTasks() {
  const busy = await page.context().newPage();
  const faults = watch(busy, host.origin);
  const { calls } = JSON.parse(host.run("calls", "list", "--json"));
  await busy.addInitScript((id) => { // the stream alone is ours; what the page asks for then is answered by the host
    const ask = globalThis.fetch;
    globalThis.longest = [];
    globalThis.sent = 0;
    new PerformanceObserver((list) => globalThis.longest.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
    globalThis.fetch = (url, init) => {
      if (!String(url).endsWith("/api/v1/events")) return ask(url, init);
      const encoder = new TextEncoder();
      const body = new ReadableStream({
        start(out) {
          const timer = setInterval(() => {
            for (let i = 0; i < 10; i++) out.enqueue(encoder.encode(`id: 1-${++globalThis.sent}\nevent: call.succeeded\ndata: ${JSON.stringify({ noun: "call", id, event: "call.succeeded", at: new Date().toISOString() })}\n\n`));
            if (globalThis.sent >= 2000) clearInterval(timer);
          }, 50);
        },
      });
      return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
    };
  }, calls[0].call_id ?? calls[0].id);
  await busy.goto("/calls");
  await busy.getByRole("table").waitFor();
  await busy.evaluate(() => (globalThis.longest.length = 0)); // what follows is the events' doing
  const from = await busy.evaluate(() => [globalThis.sent, performance.now()]);
  await busy.waitForFunction(() => globalThis.sent >= 2000, undefined, { timeout: 30_000 });
  const [sent, now, longest] = await busy.evaluate(() => [globalThis.sent, performance.now(), globalThis.longest]);
  assert.ok((sent - from[0]) / ((now - from[1]) / 1000) > 150, `${sent - from[0]} events in ${now - from[1]} ms`);
  assert.deepEqual(faults, []);
  await busy.close();
  return longest.filter((ms) => ms > 50);
}
