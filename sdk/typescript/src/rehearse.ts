// A process that waits for its first call has time to get ready for it.

import { hasLongIntegers } from "./json.ts";
import { Plugin } from "./plugin.ts";
import { t } from "./schema.ts";
import { Session } from "./session.ts";
import { LineReader } from "./stdio.ts";

/** How long after the opening a rehearsal begins: a call that comes at once goes first. */
export const rehearsalDelay = 5;

/**
 * Takes a number of calls through the code that serves calls, with a plugin and
 * an output of its own, so that the first real one finds that code compiled.
 */
export function rehearse(): void {
  const plugin = new Plugin("rehearsal", { version: "0.0.0" });
  plugin.tool("echo", { input: { value: t.any() } }, (input) => input);
  const session = new Session(plugin, { send() {}, sendSoon() {} }, () => {});
  const lines = new LineReader(1 << 20, (text) => session.frame(JSON.parse(text) as Readonly<Record<string, unknown>>, hasLongIntegers(text)));
  const value = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`property_${i}`, "v".repeat(30)]));
  const context = { auth: { tenant_id: "", principal_id: "", scopes: [] }, trace: { correlation_id: "" }, key: "" };
  const line = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "execute",
    params: { call: "rehearsal", operation: "rehearsal/echo", input: { value }, context, deadline_ms: 1000 },
  });
  const chunk = Buffer.from(`${line}\n`);
  for (let i = 0; i < 30; i++) lines.push(chunk);
}
