// Version 1 of the protocol: one handshake, one request, one response, exit.

import { Context, type Level, type Link } from "./context.ts";
import { PluginError, ServiceError } from "./errors.ts";
import { failureOf, messageOf } from "./failure.ts";
import { encode } from "./json.ts";
import type { Plugin } from "./plugin.ts";
import { Result } from "./result.ts";
import type { Output } from "./session.ts";

type Members = Readonly<Record<string, unknown>>;

const versions: readonly unknown[] = ["rterm.plugin.v1", "1"];

/** One call. There are no services, and events have no receiver; log records go to standard error. */
export class OneShot implements Link {
  readonly #plugin: Plugin;
  readonly #output: Output;
  readonly #exit: () => void;
  #asked = false;

  readonly frameBytes = 1 << 20;
  readonly paths: Link["paths"] = { scratch: process.cwd(), artifacts: undefined };

  constructor(plugin: Plugin, output: Output, exit: () => void) {
    this.#plugin = plugin;
    this.#output = output;
    this.#exit = exit;
  }

  frame(frame: Members, exact: boolean): void {
    if (frame["type"] === "handshake") this.#handshake(frame["protocol_version"]);
    else if (frame["type"] === "request" && !this.#asked) {
      this.#asked = true;
      void this.#execute(frame, exact);
    }
  }

  /** Standard input ended; an answer that is being worked on is still awaited. */
  end(): void {
    if (!this.#asked) this.#exit();
  }

  #handshake(asked: unknown): void {
    this.#send({
      type: "handshake",
      manifest: {
        plugin_id: this.#plugin.name,
        plugin_version: this.#plugin.version,
        protocol_version: versions.includes(asked) ? asked : versions[0],
        exposed_tools: [...this.#plugin.operations.keys()],
        capabilities: [],
      },
    });
  }

  async #execute(request: Members, exact: boolean): Promise<void> {
    const response = { type: "response", request_id: request["request_id"] };
    try {
      const name = String(request["tool_name"]);
      const operation = this.#plugin.operations.get(name.slice(name.lastIndexOf("/") + 1));
      if (!operation) throw new PluginError(`${this.#plugin.name} has no tool ${name}`, { code: "tool_not_exposed" });
      const ctx = new Context(this, { call: "", context: (request["context"] ?? {}) as Members });
      const answer = await operation.handle(operation.read(request["input"] ?? {}, exact), ctx);
      const output = answer instanceof Result ? answer.data : answer;
      this.#send({ ...response, status: "ok", output: output ?? null, metadata: {} });
    } catch (thrown) {
      const failure = failureOf(thrown, false);
      this.#send({ ...response, status: "error", error: { code: failure.code, message: messageOf(failure) } });
    }
    this.#exit();
  }

  #send(frame: Members): void {
    const line = `${encode(frame)}\n`;
    if (Buffer.byteLength(line) > this.frameBytes) throw new PluginError("the answer is over 1 MiB", { code: "limit_exceeded" });
    this.#output.send(line);
  }

  request(method: string): Promise<unknown> {
    return Promise.reject(new ServiceError(`${method}: version 1 of the protocol has no services`, { code: "service_denied" }));
  }

  emit(): void {}

  log(_call: string, level: Level, message: string, fields: Members | undefined): void {
    process.stderr.write(`${level}: ${message}${fields ? ` ${encode(fields)}` : ""}\n`);
  }
}
