// From run() to the end of the process.

import { isatty } from "node:tty";
import { report } from "./failure.ts";
import { hasLongIntegers, parseExact } from "./json.ts";
import { OneShot } from "./oneshot.ts";
import type { Plugin } from "./plugin.ts";
import { rehearsalDelay, rehearse } from "./rehearse.ts";
import { Session } from "./session.ts";
import { claimStdout, DescriptorOutput, LineReader } from "./stdio.ts";

let serving = false;

/** Whether run() was called in this process. */
export function isServing(): boolean {
  return serving;
}

/** Serves a plugin over standard input and output; see {@link Plugin.run}. */
export function serve(plugin: Plugin): void {
  if (serving) throw new Error("run() was called twice: a process serves one plugin");
  serving = true;
  if (isatty(0)) {
    process.stdout.write(help(plugin));
    return;
  }

  const output = new DescriptorOutput(claimStdout());
  const exit = (code = 0): never => {
    output.flush();
    process.exit(code);
  };
  const fail = (thrown: unknown): never => {
    report("the conversation with the host ended", thrown);
    return exit(1);
  };
  const guard = (work: () => void): void => {
    try {
      work();
    } catch (thrown) {
      fail(thrown);
    }
  };

  let conversation: Session | OneShot | undefined;
  const lines = new LineReader(4 << 20, (text) => {
    const exact = hasLongIntegers(text);
    const frame = (exact ? parseExact(text) : JSON.parse(text)) as Readonly<Record<string, unknown>>;
    // The first line decides which version of the protocol is spoken.
    if (!conversation) {
      conversation = new (frame["type"] === "handshake" ? OneShot : Session)(plugin, output, exit);
      if (conversation instanceof Session) setTimeout(rehearse, rehearsalDelay).unref();
    }
    conversation.frame(frame, exact);
    lines.limit = conversation.frameBytes;
  });

  process.stdin.on("data", (chunk: Buffer) => guard(() => lines.push(chunk)));
  process.stdin.on("error", (error) => fail(error));
  process.stdin.on("end", () => {
    guard(() => lines.end());
    if (conversation) void conversation.end();
    else exit();
  });

  process.on("unhandledRejection", (reason) => report("a promise was rejected and not awaited", reason));
  // A Ctrl-C in the host's terminal reaches its whole group; the host ends its plugins itself.
  process.on("SIGINT", () => {});
  // Elsewhere SIGTERM ends the process even while a handler keeps it busy. The first
  // process of a container or a cage has no such default.
  if (process.pid === 1) process.on("SIGTERM", () => process.exit(0));
}

/** What a person reads who runs the plugin by hand. */
export function help(plugin: Plugin): string {
  const operations = Array.from(plugin.operations, ([name, { description }]) => `  ${name}  ${String(description["description"])}`);
  return [
    `${plugin.name} ${plugin.version} is a Mortise plugin${plugin.description && `: ${plugin.description}`}`,
    "",
    "Its operations:",
    ...operations,
    ...(plugin.hooks.size > 0 ? ["", "It hears:", ...Array.from(plugin.hooks.keys(), (event) => `  ${event}`)] : []),
    "",
    "It speaks the plugin protocol on standard input and output. Let the host run it:",
    `  mortise run ${plugin.name}/${plugin.operations.keys().next().value ?? "<operation>"}`,
    "",
  ].join("\n");
}
