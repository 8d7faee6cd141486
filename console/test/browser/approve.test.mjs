// Two people in two browsers: one asks, the other decides; each sees what the other did
// without loading a page again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Host, launch, missing, person, watch } from "./host.mjs";
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
  host.people(provider, "local:owner", "bob");
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
  await asks.getByRole("button", { name: "Ask for approval" }).focus();
  await asks.keyboard.press("Enter");
  await asks.getByText("A person has to decide.").waitFor();

  const rows = decides.getByRole("row").filter({ hasText: "waits" });
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
  assert.deepEqual(wrong, []);
  await asks.context().close();
  await decides.context().close();
});
