import type { Level, Policy, Progress } from "./context.ts";
import { PluginError } from "./errors.ts";
import { shapes, type Payloads } from "./events.ts";
import type { EventName } from "./hook.ts";
import { encode, hasLongIntegers, parseExact } from "./json.ts";
import type { Plugin } from "./plugin.ts";
import type { Effect } from "./reconciled.ts";
import type { ResultFields } from "./result.ts";
import { Session } from "./session.ts";

type Members = Readonly<Record<string, unknown>>;

/** What a test host offers to the plugin. */
export interface TestHostOptions {
  /** Services by `service.method`; each gets its args. `cache` is there already. What is missing is refused with service_denied. */
  services?: Readonly<Record<string, (args: Members) => unknown>>;
  /** Other operations by `plugin/operation`; each gets its input and answers its data. */
  operations?: Readonly<Record<string, (input: Members) => unknown>>;
}

/** What a test call may have beside its input. */
export interface TestCall {
  key?: string;
  auth?: Members;
  session?: unknown;
  policy?: Policy;
  attempt?: number;
  deadlineMs?: number;
  /** Aborting it cancels the call. */
  signal?: AbortSignal;
}

/** A result as the host would read it. */
export interface TestResult extends ResultFields {
  status: string;
  data: unknown;
}

/**
 * A stand-in for the host, in the test's own process. Calls travel as frames
 * through the same code as in a plugin's process; only the host's check of input
 * and output against their schemas is missing.
 *
 *     const host = new TestHost(plugin);
 *     const { data } = await host.call("word_count", { text: "to be" });
 *
 * A call that fails rejects with a {@link PluginError} that has its code.
 */
export class TestHost {
  /** What the plugin said so far, over all calls. */
  readonly logs: { level: Level; message: string; fields?: Members }[] = [];
  readonly progress: Progress[] = [];
  readonly content: unknown[] = [];

  readonly #plugin: Plugin;
  readonly #session: Session;
  readonly #services: TestHostOptions["services"];
  readonly #operations: TestHostOptions["operations"];
  readonly #waiting = new Map<number, (answer: Members) => void>();
  #calls = 0;

  constructor(plugin: Plugin, { services = {}, operations = {} }: TestHostOptions = {}) {
    this.#plugin = plugin;
    this.#services = { ...cache(), ...services };
    this.#operations = operations;
    const take = (line: string) => this.#take(parse(line).frame);
    this.#session = new Session(plugin, { send: take, sendSoon: take }, () => {});
  }

  async call(operation: string, input: Members = {}, options: TestCall = {}): Promise<TestResult> {
    return (await this.#ask("execute", operation, input, options)) as unknown as TestResult;
  }

  /** What an operator would show of a call. */
  async preview(operation: string, input: Members = {}, options: TestCall = {}): Promise<unknown> {
    return (await this.#ask("preview", operation, input, options))["preview"];
  }

  /** What an operator finds out of an earlier run, of which these effects are on record: outcome, data, error, evidence. */
  async reconcile(operation: string, input: Members = {}, effects: readonly Partial<Effect>[] = [], options: TestCall = {}): Promise<Members> {
    return this.#ask("reconcile", operation, input, options, { effects });
  }

  /** What a hook answers: nothing, `payload`, or `allow`, `reason` and `payload`. */
  async hook<E extends EventName>(event: E, payload: Payloads[E], { agent = "agent", session }: { agent?: string; session?: string } = {}): Promise<Members> {
    const id = ++this.#calls;
    const params = { call: id.toString(16).padStart(32, "0"), event, shape: shapes[event], payload, agent, session, deadline_ms: 5000 };
    return this.#answer(id, () => this.#send({ id, method: "hook", params }));
  }

  async #ask(method: string, operation: string, input: Members, options: TestCall, more: Members = {}): Promise<Members> {
    const id = ++this.#calls;
    const { key = "", auth = {}, session, policy, attempt = 1, deadlineMs = 30_000, signal } = options;
    const call = id.toString(16).padStart(32, "0");
    const context = { auth, trace: { correlation_id: call, workflow_id: "", step_id: "" }, policy, session, key, attempt };
    const params = { call, operation: `${this.#plugin.name}/${operation}`, input, context, deadline_ms: deadlineMs, ...more };
    const cancel = () => this.#send({ method: "$/cancel", params: { call, reason: "cancelled" } });
    try {
      return await this.#answer(id, () => {
        this.#send({ id, method, params });
        if (signal?.aborted) cancel();
        signal?.addEventListener("abort", cancel);
      });
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async #answer(id: number, send: () => void): Promise<Members> {
    const answer = await new Promise<Members>((resolve) => {
      this.#waiting.set(id, resolve);
      send();
    });
    if (answer["error"] !== undefined) throw failure(answer["error"]);
    return answer["result"] as Members;
  }

  #send(members: Members): void {
    const { frame, exact } = parse(encode({ jsonrpc: "2.0", ...members }));
    this.#session.frame(frame, exact);
  }

  #take(frame: Members): void {
    const { id, method } = frame;
    const params = (frame["params"] ?? {}) as Members;
    if (method === undefined) {
      this.#waiting.get(id as number)?.(frame);
      this.#waiting.delete(id as number);
    } else if (method === "log") {
      const { level, message, fields } = params as { level: Level; message: string; fields?: Members };
      this.logs.push(fields ? { level, message, fields } : { level, message });
    } else if (method === "emit") {
      if (params["kind"] === "progress") this.progress.push(params["data"] as Progress);
      else this.content.push(params["data"]);
    } else void this.#serve(id, String(method), params);
  }

  async #serve(id: unknown, method: string, params: Members): Promise<void> {
    const { operation, input, args } = params as { operation?: string; input?: Members; args?: Members };
    await null; // as in life, the answer comes later
    try {
      if (method === "operations.call") {
        const other = this.#operations?.[operation ?? ""];
        if (!other) throw new PluginError(`the test host has no operation ${operation}`, { code: "not_found" });
        this.#send({ id, result: { status: "succeeded", data: (await other(input ?? {})) ?? null } });
      } else {
        const service = this.#services?.[method];
        if (!service) throw new PluginError(`the test host has no service ${method}`, { code: "service_denied" });
        this.#send({ id, result: (await service(args ?? {})) ?? {} });
      }
    } catch (thrown) {
      const { message, code = "internal" } = thrown as { message?: string; code?: string };
      this.#send({ id, error: { code: -32000, message, data: { code } } });
    }
  }
}

function parse(line: string): { frame: Members; exact: boolean } {
  const exact = hasLongIntegers(line);
  return { frame: (exact ? parseExact(line) : JSON.parse(line)) as Members, exact };
}

function failure(error: unknown): PluginError {
  const { message, data } = error as { message: string; data?: Members };
  const { code, plugin_code, details, retryable, retry_after_ms } = (data ?? { code: "invalid_input" }) as {
    code: string;
    plugin_code?: string;
    details?: Members;
    retryable?: boolean;
    retry_after_ms?: number;
  };
  return new PluginError(message, {
    code: plugin_code || code,
    details: details ?? {},
    retryable: retryable ?? false,
    retryAfterMs: retry_after_ms ?? 0,
  });
}

function cache(): Record<string, (args: Members) => unknown> {
  const values = new Map<unknown, unknown>();
  return {
    "cache.get": ({ key }) => (values.has(key) ? { found: true, value: values.get(key) } : { found: false }),
    "cache.set": ({ key, value }) => void values.set(key, value),
    "cache.delete": ({ key }) => void values.delete(key),
  };
}
