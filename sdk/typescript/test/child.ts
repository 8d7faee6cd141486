// A plugin as a real process, as the host would run it.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { afterEach } from "node:test";
import { fileURLToPath } from "node:url";
import { parseExact } from "../src/json.ts";

/** The folder of the SDK; tests run from its build folder. */
export const root = fileURLToPath(new URL("..", import.meta.url));

export interface Frame {
  id?: unknown;
  method?: string;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
  params?: Record<string, unknown>;
}

export const initialize =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"2","host":{"name":"mortise","version":"0.1.0"},"services":[],"limits":{"frame_bytes":4194304,"in_flight":64},"paths":{"scratch":"/scratch"}}}';

// A test that fails leaves its plugin waiting.
const running = new Set<Child>();
afterEach(() => running.forEach((child) => child.process.kill("SIGKILL")));

export class Child {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<number | null>;
  stderr = "";
  #rest = "";
  #lines: string[] = [];
  #wake: () => void = () => {};
  #ended = false;

  constructor(plugin: string) {
    this.process = spawn(process.execPath, [`${root}build/plugins/${plugin}.mjs`], { env: {} });
    running.add(this);
    this.exited = once(this.process, "close").then(([code]) => {
      running.delete(this);
      return code as number | null;
    });
    this.process.stdin.on("error", () => {});
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      this.#lines.push(...lines);
      this.#wake();
    });
    this.process.stdout.on("end", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  send(line: string): void {
    this.process.stdin.write(`${line}\n`);
  }

  execute(id: number, operation: string, input: unknown, call = `c${id}`): void {
    const params = { call, operation: `x/${operation}`, input, context: {}, deadline_ms: 1000 };
    this.send(JSON.stringify({ jsonrpc: "2.0", id, method: "execute", params }));
  }

  /** The next line that the plugin wrote, or undefined at the end. */
  async line(): Promise<string | undefined> {
    while (this.#lines.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#lines.shift();
  }

  async frame(): Promise<Frame> {
    const line = await this.line();
    if (line === undefined) throw new Error(`the plugin ended: ${this.stderr}`);
    return parseExact(line) as Frame;
  }

  /** Ends the input and answers the exit code. */
  async end(): Promise<number | null> {
    this.process.stdin.end();
    return this.exited;
  }
}
