// Two people in two browsers: one asks, the other decides; each sees what the other did
// without loading a page again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, mail, missing, person, watch } from "./host.mjs";
import { Provider } from "./provider.mjs";

const skip = missing;
let chrome;
let host;
let provider;

before(async () => {
  if (skip !== undefined) return;
  chrome = await chromium.launch(launch);
  provider = new Provider();
  await provider.start();
  host = new Host();
  host.people(provider, "expire: 24h", "local:owner", "bob");
  host.fill();
  await host.serve();
});
after(async () => {
  await chrome?.close();
  await host?.stop();
  provider?.stop();
});

test("one asks by keyboard, another decides, and the one who asked sees the result", { skip, timeout: 120_000 }, async () => {
  const asks = await person(chrome, host, provider, "local:owner");
  const decides = await person(chrome, host, provider, "bob");
  const wrong = watch(asks, host.origin).concat(watch(decides, host.origin));
  await decides.goto("/approvals");
  await decides.getByRole("heading", { name: "Approvals" }).waitFor();

  await asks.goto("/operations/mail/send");
  await asks.getByLabel(/^To/).focus();
  await asks.keyboard.type("cleo@example.com");
  await asks.getByRole("button", { name: "Request approval" }).focus();
  await asks.keyboard.press("Enter");
  await asks.getByText("A person has to decide.").waitFor();

  const rows = decides.getByRole("row").filter({ hasText: "waiting" }).filter({ hasText: "mail/send" });
  await rows.nth(3).waitFor(); // three were there; the fourth came by itself
  const row = rows.first();
  await row.getByRole("link").focus();
  await decides.keyboard.press("Enter");
  await decides.getByText("cleo@example.com").first().waitFor();
  await decides.getByLabel(/^Reason/).focus();
  await decides.keyboard.type("it is fine");
  const sent = [];
  decides.on("request", (r) => r.method() === "POST" && sent.push(r.url()));
  await decides.getByRole("button", { name: "Approve", exact: true }).dblclick();
  await decides.getByText("This was approved.").waitFor();
  assert.equal(sent.length, 1, "a double click is one decision");

  await asks.getByText("sent to cleo@example.com").first().waitFor(); // the page was not loaded again

  // The call is made again with another input: who decides sees what differs, and who
  // asked has no button to approve it, and reads why.
  await asks.getByRole("link", { name: "Run again…" }).click();
  await asks.getByLabel(/^To/).waitFor();
  assert.equal(await asks.getByLabel(/^To/).inputValue(), "cleo@example.com");
  await asks.getByLabel(/^To/).fill("dora@example.com");
  await asks.getByRole("button", { name: "Request approval" }).click();
  await asks.getByRole("link", { name: "Open the approval" }).click();
  await asks.getByText("You requested this, so another person has to decide.").waitFor();
  assert.equal(await asks.getByRole("button", { name: "Approve", exact: true }).count(), 0);
  assert.equal(await asks.getByRole("button", { name: "Deny", exact: true }).count(), 1, "the requester may withdraw it");
  await decides.goto(asks.url());
  const beside = decides.getByRole("region", { name: "Changes since the last approved call" });
  await beside.getByText("cleo@example.com").waitFor();
  await beside.getByText("dora@example.com").waitFor();
  await beside.getByText("bob approved").waitFor();
  await decides.getByRole("button", { name: "Deny", exact: true }).dblclick();
  await decides.getByText("This was denied.").waitFor();
  assert.equal(sent.length, 2, "a double click is one decision");
  await asks.getByText("This was denied.").waitFor();
  assert.deepEqual(wrong, []);
  await asks.context().close();
  await decides.context().close();
});

test("arguments that change while the page is open are shown, and are approved by no one who has not read them", { skip, timeout: 60_000 }, async () => {
  const decides = await person(chrome, host, provider, "bob");
  const wrong = watch(decides, host.origin);
  host.waits("run", "mail/send", "--set", "to=gil@example.com", "--no-wait");
  const { approvals } = JSON.parse(host.run("approvals", "list", "--json"));
  const [{ id }] = approvals;
  let changed = false; // what a host answers whose record is another now
  await decides.route(`**/api/v1/approvals/${id}`, async (route) => {
    const answer = await route.fetch();
    const question = await answer.json();
    if (changed) Object.assign(question, { input: { to: "mallory@example.com" }, binding: "sha256:another" });
    await route.fulfill({ response: answer, json: question });
  });
  await decides.route(`**/api/v1/approvals/${id}:approve`, (route) => {
    changed = true;
    return route.fulfill({ status: 409, contentType: "application/problem+json", json: { type: "about:blank", title: "Conflict", status: 409, code: "approval_void", detail: "what was asked for has changed" } });
  });
  await decides.goto(`/approvals/${id}`);
  await decides.getByText("gil@example.com").first().waitFor();
  await decides.getByRole("button", { name: "Approve", exact: true }).click();
  const alert = decides.getByRole("alert").filter({ hasText: "The request changed while this page was open" });
  await alert.getByText("gil@example.com").waitFor();
  await alert.getByText("mallory@example.com").waitFor();
  assert.equal(await decides.getByRole("button", { name: "Approve", exact: true }).isDisabled(), true);
  await decides.getByRole("button", { name: "I have read the changes" }).click();
  assert.equal(await decides.getByRole("button", { name: "Approve", exact: true }).isDisabled(), false);
  assert.deepEqual(wrong, []);
  await decides.context().close();
});

test("a plugin that changed since it was asked is said, and nothing runs", { skip, timeout: 60_000 }, async () => {
  const own = new Host();
  try {
    own.people(provider, "expire: 24h", "local:owner", "bob");
    own.plugin("mail", mail);
    await own.serve();
    const bob = await person(chrome, own, provider, "bob");
    own.waits("run", "mail/send", "--set", "to=ann@example.com", "--no-wait");
    const [{ id, subject }] = JSON.parse(own.run("approvals", "list", "--json")).approvals;
    await bob.goto(`/approvals/${id}`);
    await bob.getByRole("button", { name: "Approve", exact: true }).waitFor();
    own.plugin("mail", mail.replace('return "sent to " + to', 'return "sent to everyone"'));
    await bob.getByRole("button", { name: "Approve", exact: true }).click();
    await bob.getByText(/The plugin has changed since this was requested|This approval is void/).first().waitFor();
    assert.notEqual(JSON.parse(own.run("calls", "show", subject, "--json")).status, "succeeded");
    await bob.context().close();
  } finally {
    await own.stop();
  }
});

test("an approval that expires while it is open says so", { skip, timeout: 60_000 }, async () => {
  const brief = new Host();
  try {
    brief.people(provider, "expire: 6s", "local:owner", "bob");
    brief.plugin("mail", mail);
    await brief.serve();
    const bob = await person(chrome, brief, provider, "bob");
    brief.waits("run", "mail/send", "--set", "to=ann@example.com", "--no-wait");
    const [{ id }] = JSON.parse(brief.run("approvals", "list", "--json")).approvals;
    await bob.goto(`/approvals/${id}`);
    await bob.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await bob.getByText("The time to decide is over.").waitFor();
    assert.equal(await bob.getByRole("button", { name: "Approve", exact: true }).count(), 0);
    await bob.context().close();
  } finally {
    await brief.stop();
  }
});

test("a file of this machine is chosen for a call, and the call is made again with it", { skip, timeout: 60_000 }, async () => {
  const asks = await person(chrome, host, provider, "local:owner");
  const wrong = watch(asks, host.origin);
  await asks.goto("/operations/pattern_extractor/pattern_extractor");
  const lines = Array.from({ length: 30 }, (_, i) => `harbour crane ${i} lifted container ${i * 7}`).join("\n");
  await asks.getByLabel("Files from this computer").setInputFiles({ name: "crane.log", mimeType: "text/plain", buffer: Buffer.from(`${lines}\n`) });
  await asks.getByRole("checkbox", { name: /crane\.log/ }).waitFor();
  assert.equal(await asks.getByRole("checkbox", { name: /crane\.log/ }).isChecked(), true);
  await asks.getByRole("button", { name: "Run", exact: true }).click();
  await asks.getByText("harbour crane").first().waitFor();
  await asks.getByText("succeeded").first().waitFor();
  const { calls } = JSON.parse(host.run("calls", "list", "--json"));
  const { call_id: id } = calls.find((c) => c.operation === "pattern_extractor/pattern_extractor" && c.origin === "api");
  await asks.goto(`/calls/${id}`);
  await asks.getByRole("link", { name: "Run again…" }).click();
  await asks.getByRole("checkbox", { name: /crane\.log/, checked: true }).waitFor();
  await asks.getByRole("button", { name: "Run", exact: true }).click();
  await asks.getByText("harbour crane").first().waitFor();
  assert.deepEqual(wrong, []);
  await asks.context().close();
});
