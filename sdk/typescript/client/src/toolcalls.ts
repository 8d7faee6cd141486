// What the adapters have in common: which operations become tools, and how a framework's tool call becomes one call at the host.
//
// A tool call is submitted under a key that is made of the scope, the operation and the framework's id of the tool call. So the
// adapter keeps no state that matters: a second submission, in this process or another, joins the call that waits or gets its
// result, and with other arguments the host refuses it. The host's record decides; what the framework was told does not count.

import { createHash, randomUUID } from "node:crypto";
import { type Client, type OperationSchemas, type Outcome, type Pending, failureOf } from "./client.ts";
import { ApprovalPending, ArgumentsChanged, MortiseError } from "./errors.ts";

export interface ToolOptions {
  /** Operations to offer: plugin/operation or plugin/*. By default all tools and operators that the token may know of. */
  only?: readonly string[];
  /** More operations than this are an error: a model chooses badly among many. 40 by default. */
  limit?: number;
  /**
   * What ids of tool calls are unique in, such as the id of the conversation. A program that goes on with a conversation that
   * another process began needs the same scope; by default each adapter has one of its own.
   */
  scope?: string;
  /** How long a tool waits for its result; 60 s by default. */
  waitMs?: number;
}

/** An operation under a name that models accept. */
export interface HostTool {
  name: string;
  description: string;
  operation: OperationSchemas;
}

/** The operations that are offered, with their schemas. */
export async function toolsOf(client: Client, options: ToolOptions = {}): Promise<HostTool[]> {
  const limit = options.limit ?? 40;
  let names: string[] = [];
  if (options.only && !options.only.some((pattern) => pattern.endsWith("/*"))) {
    names = [...new Set(options.only)];
  } else {
    const wanted = (name: string): boolean =>
      !options.only || options.only.some((pattern) => (pattern.endsWith("/*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
    for await (const found of client.operations()) {
      if ((found.kind === "tool" || found.kind === "operator") && wanted(found.name)) names.push(found.name);
      if (names.length > limit) break;
    }
  }
  if (names.length > limit) throw new MortiseError("too_many_operations", `there are more than ${limit} operations: name those to offer with only, or raise limit`);
  const operations: OperationSchemas[] = [];
  for (let at = 0; at < names.length; at += 8) {
    operations.push(...(await Promise.all(names.slice(at, at + 8).map((name) => client.operation(name)))));
  }
  return named(operations);
}

function named(operations: readonly OperationSchemas[]): HostTool[] {
  const plain = operations.map((operation) => operation.name.replace("/", "__").replace(/[^A-Za-z0-9_-]/g, "_"));
  return operations.map((operation, index) => {
    let name = plain[index] ?? "";
    if (name.length > 64 || plain.indexOf(name) !== plain.lastIndexOf(name)) name = `${name.slice(0, 55)}_${sha256(operation.name).slice(0, 8)}`;
    return { name, description: operation.description || operation.title || operation.name, operation };
  });
}

const remembered = 1000;

/** Submits tool calls. One of these belongs to one conversation. */
export class ToolCalls {
  readonly client: Client;
  readonly scope: string;
  readonly #waitMs: number;
  readonly #seen = new Map<string, string>(); // the hash of the arguments, by key

  constructor(client: Client, options: ToolOptions = {}) {
    this.client = client;
    this.scope = options.scope ?? randomUUID();
    this.#waitMs = options.waitMs ?? 60_000;
  }

  /** The idempotency key of a tool call's call. */
  key(operation: string, toolCallId: string): string {
    return `tool-${sha256(JSON.stringify([this.scope, operation, toolCallId]))}`;
  }

  /** Makes the call, joins the one that waits, or gets the result of the one that ended. */
  async submit(operation: string, toolCallId: string, input: unknown, options: { waitMs?: number; signal?: AbortSignal | undefined } = {}): Promise<Outcome> {
    const key = this.key(operation, toolCallId);
    const hash = sha256(canonical(input));
    const before = this.#seen.get(key);
    if (before !== undefined && before !== hash) throw new ArgumentsChanged(operation, toolCallId);
    try {
      const outcome = await this.client.execute(operation, input, { key, waitMs: options.waitMs ?? this.#waitMs, signal: options.signal });
      this.#remember(key, hash);
      return outcome;
    } catch (error) {
      if (error instanceof MortiseError && error.code === "key_conflict") throw new ArgumentsChanged(operation, toolCallId, error);
      throw error;
    }
  }

  /** The ids of what the tool call waits for, if it waits for a person. */
  async pending(operation: string, toolCallId: string, input: unknown, options: { signal?: AbortSignal | undefined } = {}): Promise<Pending | undefined> {
    return this.client.pending(await this.submit(operation, toolCallId, input, options));
  }

  /** The data of the tool call's result. */
  async result(operation: string, toolCallId: string, input: unknown, options: { signal?: AbortSignal | undefined } = {}): Promise<unknown> {
    const outcome = await this.submit(operation, toolCallId, input, options);
    const pending = this.client.pending(outcome);
    if (pending) throw new ApprovalPending(pending);
    const failure = failureOf(outcome);
    if (failure) throw failure;
    return plain(outcome.data ?? null);
  }

  #remember(key: string, hash: string): void {
    this.#seen.delete(key);
    this.#seen.set(key, hash);
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.keys().next().value ?? "");
  }
}

/** The codes with which the host says that no person will let a call run any more. */
const refusals = new Set(["approval_denied", "approval_expired", "approval_void", "cancelled"]);

/** Tells whether a call can no longer be approved. */
export function isRefusal(error: MortiseError): boolean {
  return refusals.has(error.code);
}

/** Tells whether an error is the host's answer to a call, and not trouble in reaching the host. The tool meets it too. */
export function isAnswer(error: unknown): error is MortiseError {
  return error instanceof MortiseError && error.status !== undefined && error.status !== 401 && !error.retryable;
}

/** What a model is told of a failure. */
export function told(error: MortiseError): string {
  return JSON.stringify({
    error: { code: error.code, ...(error.pluginCode && { plugin_code: error.pluginCode }), message: error.message, retryable: error.retryable },
    ...(error.callId && { call_id: error.callId }),
  });
}

/** One text for each JSON value, whatever the order of its members. */
function canonical(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item ?? null)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, item]) => item !== undefined);
    members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** Frameworks write results with JSON.stringify, which throws on bigint: these become their digits. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
  return value;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
