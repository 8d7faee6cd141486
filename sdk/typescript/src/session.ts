// Version 2 of the protocol: JSON-RPC in both directions, many calls in flight.

import { Context, type Call, type Level, type Link } from "./context.ts";
import { MortiseError, PluginError, ServiceError } from "./errors.ts";
import { failureData, failureOf, messageOf } from "./failure.ts";
import { isThenable } from "./hook.ts";
import { bounded, encode } from "./json.ts";
import type { Operation, Plugin } from "./plugin.ts";
import { reconciledMembers, type Effect } from "./reconciled.ts";
import { Result } from "./result.ts";

/** Where a conversation's lines go, each with its newline. */
export interface Output {
  /** Writes before the event loop turns again. */
  send(line: string): void;
  /** Writes now, unless it did a moment ago: for lines that a handler makes while it keeps the event loop busy. */
  sendSoon(line: string): void;
}

type Members = Readonly<Record<string, unknown>>;
type Method = "execute" | "hook" | Extract<keyof Operation, "preview" | "reconcile">;

/** One conversation with the host. Calls run as they come; the host sends no more than `concurrency`. */
export class Session implements Link {
  readonly #plugin: Plugin;
  readonly #output: Output;
  readonly #exit: () => void;
  readonly #calls = new Map<string, Context>();
  readonly #requests = new Map<string, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  #requested = 0;
  #idle: (() => void) | undefined;

  /** The longest line that the host takes, and that it sends. */
  frameBytes = 4 << 20;
  paths: Link["paths"] = { scratch: process.cwd(), artifacts: undefined };

  constructor(plugin: Plugin, output: Output, exit: () => void) {
    this.#plugin = plugin;
    this.#output = output;
    this.#exit = exit;
  }

  /** Takes a frame of the host; `exact` says that it may hold bigint. */
  frame(frame: Members, exact: boolean): void {
    const { method, id } = frame;
    const params = (frame["params"] ?? {}) as Members;
    switch (method) {
      case "execute":
      case "preview":
      case "reconcile":
        return this.#execute(method, id, params, exact);
      case "hook":
        return this.#hook(id, params);
      case "$/cancel":
        return this.#calls.get(params["call"] as string)?.cancel(String(params["reason"]));
      case "initialize":
        return this.#initialize(id, params);
      case "describe":
        return this.#answer(id, encode({ plugins: [this.#plugin.describe()] }));
      case "shutdown":
        return void this.#shutdown(id, params);
      case undefined:
        return this.#answered(frame);
      default:
        // What is not known is passed over, or refused where an answer is due.
        if (id !== undefined) this.#refuse(id, -32601, `there is no method ${bounded(String(method), 128)}`);
    }
  }

  /** Standard input ended: the host no longer waits for running calls. */
  async end(): Promise<void> {
    await this.#stop(1000);
    this.#exit();
  }

  #initialize(id: unknown, params: Members): void {
    const { limits, paths } = params as { limits?: { frame_bytes?: number }; paths?: { scratch?: string; artifacts?: string } };
    this.frameBytes = limits?.frame_bytes ?? this.frameBytes;
    this.paths = { scratch: paths?.scratch ?? this.paths.scratch, artifacts: paths?.artifacts };
    const { name, version, concurrency } = this.#plugin;
    this.#answer(id, encode({ protocol: "2", plugins: [{ name, version }], concurrency, features: ["cancel", "emit"] }));
  }

  // Carries a call out, or answers a question about one.
  #execute(method: Exclude<Method, "hook">, id: unknown, params: Members, exact: boolean): void {
    const name = String(params["operation"]);
    const operation = this.#plugin.operations.get(name.slice(name.lastIndexOf("/") + 1));
    if (!operation) return this.#refuse(id, -32602, `${this.#plugin.name} has no operation ${bounded(name, 256)}`);
    const answers = method === "execute" ? operation.handle : operation[method];
    if (!answers) return this.#refuse(id, -32601, `${bounded(name, 256)} has no ${method}`);
    const { call, context, deadline_ms } = params as { call: string; context?: Members; deadline_ms?: number };
    const ctx = new Context(this, { call, context: context ?? {}, deadline_ms } as Call);
    this.#calls.set(call, ctx);
    try {
      this.#settle(method, id, call, ctx, answers(operation.read(params["input"] ?? {}, exact), ctx, (params["effects"] ?? []) as readonly Effect[]));
    } catch (thrown) {
      this.#fail(id, call, ctx, thrown);
    }
  }

  // Lets the plugin hear of an event.
  #hook(id: unknown, params: Members): void {
    const { call = `hook-${String(id)}`, event, agent, session, payload, deadline_ms } = params as {
      call?: string;
      event?: string;
      agent?: string;
      session?: string;
      payload?: unknown;
      deadline_ms?: number;
    };
    const hook = this.#plugin.hooks.get(String(event));
    if (!hook) return this.#refuse(id, -32601, `${this.#plugin.name} has no hook of ${bounded(String(event), 128)}`);
    const ctx = new Context(this, { call, context: { event, agent, session }, deadline_ms } as Call);
    this.#calls.set(call, ctx);
    try {
      this.#settle("hook", id, call, ctx, hook.handle(payload, ctx));
    } catch (thrown) {
      this.#fail(id, call, ctx, thrown);
    }
  }

  #settle(method: Method, id: unknown, call: string, ctx: Context, answer: unknown): void {
    if (!isThenable(answer)) return this.#succeed(method, id, call, ctx, answer);
    answer.then(
      (value) => this.#succeed(method, id, call, ctx, value),
      (thrown: unknown) => this.#fail(id, call, ctx, thrown),
    );
  }

  #succeed(method: Method, id: unknown, call: string, ctx: Context, answer: unknown): void {
    let frame: string;
    try {
      frame = this.#fit(`{"jsonrpc":"2.0","id":${encode(id)},"result":${resultText(method, answer)}}\n`);
    } catch (thrown) {
      return this.#fail(id, call, ctx, thrown);
    }
    this.#output.send(frame);
    this.#end(call, ctx);
  }

  #fail(id: unknown, call: string, ctx: Context, thrown: unknown): void {
    const failure = failureOf(thrown, ctx.cancelled);
    const frame = (details: unknown) => {
      const error = { code: -32000, message: messageOf(failure), data: failureData(failure, details) };
      return this.#fit(`{"jsonrpc":"2.0","id":${encode(id)},"error":${encode(error)}}\n`);
    };
    let text: string;
    try {
      text = frame(failure.details);
    } catch {
      text = frame({}); // details that are too long or no JSON; the failure itself still counts
    }
    this.#output.send(text);
    this.#end(call, ctx);
  }

  #end(call: string, ctx: Context): void {
    ctx.end();
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#idle?.();
  }

  async #shutdown(id: unknown, params: Members): Promise<void> {
    const { deadline_ms } = params as { deadline_ms?: number };
    await this.#stop((deadline_ms ?? 2000) / 2);
    this.#answer(id, "{}");
    this.#exit();
  }

  // Cancels what is running and waits for it, yet not for long.
  async #stop(ms: number): Promise<void> {
    if (this.#calls.size === 0) return;
    for (const ctx of this.#calls.values()) ctx.cancel("shutdown");
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
      setTimeout(resolve, ms);
    });
  }

  /** Asks the host. Rejects with a ServiceError when it refuses. */
  request(method: string, members: Members): Promise<unknown> {
    const id = `s${this.#requested + 1}`;
    const line = this.#fit(`{"jsonrpc":"2.0","id":"${id}","method":${encode(method)},"params":${encode(members)}}\n`);
    this.#requested++;
    return new Promise((resolve, reject) => {
      this.#requests.set(id, { resolve, reject });
      this.#output.send(line);
    });
  }

  // An answer of the host to one of our requests.
  #answered(frame: Members): void {
    const id = String(frame["id"]);
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    const { error } = frame as { error?: { message?: string; data?: Members } };
    if (error) request?.reject(serviceError(error.message, error.data ?? {}));
    else request?.resolve(frame["result"]);
  }

  emit(call: string, seq: number, kind: "progress" | "content", data: unknown): void {
    this.#output.sendSoon(
      this.#fit(
        `{"jsonrpc":"2.0","method":"emit","params":{"call":${encode(call)},"seq":${seq},"kind":"${kind}","data":${encode(data)}}}\n`,
      ),
    );
  }

  log(call: string, level: Level, message: string, fields: Members | undefined): void {
    const params = (more: object) => encode({ call, level, message: bounded(String(message), 8192), ...more });
    const line = (text: string) => this.#fit(`{"jsonrpc":"2.0","method":"log","params":${text}}\n`);
    let text: string;
    try {
      text = line(params(fields ? { fields } : {}));
    } catch {
      text = line(params({})); // a log record is no reason to fail a call
    }
    this.#output.sendSoon(text);
  }

  #answer(id: unknown, result: string): void {
    this.#output.send(`{"jsonrpc":"2.0","id":${encode(id)},"result":${result}}\n`);
  }

  #refuse(id: unknown, code: number, message: string): void {
    this.#output.send(`{"jsonrpc":"2.0","id":${encode(id)},"error":${encode({ code, message })}}\n`);
  }

  // A line over the limit would cost the process its life.
  #fit(line: string): string {
    if (line.length * 3 <= this.frameBytes || Buffer.byteLength(line) <= this.frameBytes) return line;
    throw new PluginError(`a line of the protocol holds at most ${this.frameBytes} bytes`, { code: "limit_exceeded" });
  }
}

function resultText(method: Method, answer: unknown): string {
  if (method === "preview") return `{"preview":${encode(answer)}}`;
  if (method === "hook") return encode(answer);
  if (method === "reconcile") return encode(reconciledMembers(answer));
  if (!(answer instanceof Result)) return `{"status":"succeeded","data":${encode(answer)}}`;
  return encode({ status: "succeeded", data: answer.data ?? null, ...answer.fields });
}

function serviceError(message: string | undefined, data: Members): MortiseError {
  const { code, plugin_code, details, retryable, retry_after_ms } = data as {
    code?: string;
    plugin_code?: string;
    details?: Members;
    retryable?: boolean;
    retry_after_ms?: number;
  };
  return new ServiceError(message ?? "the host refused", {
    code: plugin_code || (code ?? "internal"),
    details: details ?? {},
    retryable: retryable ?? false,
    retryAfterMs: retry_after_ms ?? 0,
  });
}
