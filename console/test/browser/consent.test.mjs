// An approval with far too much in it, on a real host: the approver cannot approve before all of
// it is on the page, and reads each amount and each recipient there.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, person, watch } from "./host.mjs";
import { Provider } from "./provider.mjs";

const skip = missing;
const shots = process.env.MORTISE_SCREENSHOTS; // a directory for pictures
let chrome;
let host;
let provider;
let bob;
let wrong;

const bank = `from mortise import Plugin

plugin = Plugin("mail", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def send(payments: list, note: dict) -> str:
    """Pay."""
    return "paid " + str(len(payments))

plugin.run()
`;

before(async () => {
  if (skip !== undefined) return;
  chrome = await chromium.launch(launch);
  if (shots !== undefined) mkdirSync(shots, { recursive: true });
  provider = new Provider();
  await provider.start();
  host = new Host();
  host.people(provider, "expire: 24h", "local:owner", "bob");
  host.plugin("mail", bank);
  await host.serve();
  bob = await person(chrome, host, provider, "bob");
  wrong = watch(bob, host.origin);
});
after(async () => {
  await chrome?.close();
  await host?.stop();
  provider?.stop();
});

/** Makes a call that waits, and returns the id of its approval. */
function ask(input) {
  const { status, stdout, stderr } = host.sends(input, "run", "mail/send", "--input", "-", "--no-wait", "--json");
  assert.equal(status, 10, stderr);
  return JSON.parse(stdout).approval.id;
}

const payments = (n, more, text = "") => Array.from({ length: n }, (_, i) => ({ to: `ann${i}@example.com`, amount: i + more, text }));

test("a recipient three levels deep, and what passes for something else, is read on the page", { skip, timeout: 60_000 }, async () => {
  const note = { from: { inner: { recipient: "p\u0430yments@example.com", text: 'hello\nrecipient = “ann@example.com”', turned: "\u202egpj.exe", hidden: "pay\u200bpal", amount: 1 } } };
  await bob.goto(`/approvals/${ask({ payments: [], note })}`);
  for (const text of ['note.from.inner.recipient = "p\\u0430yments@example.com"', '"hello\\n""recipient = “ann@example.com”"', '"\\u202egpj.exe"', '"pay\\u200bpal"', "payments = []"]) {
    await bob.getByRole("listitem").filter({ hasText: text }).waitFor();
  }
  assert.equal(await bob.getByRole("button", { name: "Approve", exact: true }).isEnabled(), true);
  if (shots !== undefined) await bob.screenshot({ path: `${shots}/consent-hostile.png`, fullPage: true });
});

for (const [theme, width] of [["light", 1280], ["dark", 320]]) {
  test(`the view of consent fits a window of ${width}, ${theme}`, { skip, timeout: 60_000 }, async () => {
    await bob.setViewportSize({ width, height: 900 });
    await bob.emulateMedia({ colorScheme: theme });
    await bob.goto(`/decide/${ask({ payments: payments(3, 0, "one line\nand another, which is rather long and has to be broken somewhere in a narrow window"), note: { ["a name with = and \" in it"]: 1 } })}`);
    await bob.getByRole("button", { name: "Approve", exact: true }).waitFor();
    const over = await bob.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(over, 0);
    if (shots !== undefined) await bob.screenshot({ path: `${shots}/consent-${theme}-${width}.png`, fullPage: true });
  });
}

test("Approve is disabled until all values are shown, and all of 600 changes are counted", { skip, timeout: 120_000 }, async () => {
  const first = ask({ payments: payments(600, 0, "x".repeat(400)), note: {} });
  await bob.goto(`/approvals/${first}`);
  const approve = bob.getByRole("button", { name: "Approve", exact: true });
  await approve.waitFor();
  assert.equal(await approve.isDisabled(), true);
  await bob.getByText(/of 1801 values are not shown yet: press/).waitFor();
  if (shots !== undefined) await bob.screenshot({ path: `${shots}/consent-open.png` });
  const more = bob.getByRole("button", { name: "Show more values" });
  while ((await more.count()) > 0) await more.click();
  await bob.getByText("payments[599].amount = 599").waitFor();
  await approve.click();
  await bob.getByText("This was approved.").waitFor();

  await bob.goto(`/approvals/${ask({ payments: payments(600, 1), note: {} })}`);
  await bob.getByText("700 of 1200 changes are not shown.").waitFor();
  await bob.getByText("payments[599].amount = 600").waitFor();
  const beside = bob.getByRole("region", { name: "Changes since the last approved call" });
  while ((await beside.getByRole("button", { name: /^Show \d+ more$/ }).count()) > 0) await beside.getByRole("button", { name: /^Show \d+ more$/ }).click();
  assert.equal(await beside.getByRole("row").count(), 1201);
  assert.deepEqual(wrong, []);
});
