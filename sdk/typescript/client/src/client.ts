// A client of the API of a host, /api/v1/. It needs nothing but fetch.

import { randomUUID } from "node:crypto";
import { encode, hasLongIntegers, parseExact } from "../../src/json.ts";
import { MortiseError } from "./errors.ts";

export interface ClientOptions {
  /** Where the host serves, such as https://mortise.example.com. By default MORTISE_URL. */
  url?: string;
  /** An API token. By default MORTISE_TOKEN. */
  token?: string;
  /** Where people reach the host, if that is another address: pages on which to decide are there. */
  publicUrl?: string;
  /** How long an answer may take, beside the time that the host is asked to wait. */
  timeoutMs?: number;
  /** A longer answer is refused. */
  maxBytes?: number;
}

/** An operation as lists have it. */
export interface Operation {
  /** plugin/operation */
  name: string;
  version: string;
  title?: string;
  description?: string;
  kind: "tool" | "operator" | "agent" | "adapter";
  /** What it may cause, such as mail_send. */
  effects: string[];
}

/** An operation with its schemas. */
export interface OperationSchemas extends Operation {
  input_schema: Record<string, unknown>;
  output_schema?: unknown;
}

export interface Failure {
  code: string;
  message: string;
  retryable: boolean;
  plugin_code?: string;
}

export type Status = "succeeded" | "failed" | "unknown" | "in_progress" | "pending_approval";

/** What became of a call. Members that this list lacks are passed on as they come. */
export interface Outcome {
  call_id: string;
  operation: string;
  version?: string;
  status: Status;
  data?: unknown;
  summary?: string;
  error?: Failure;
  approval?: { id: string; expires_at: string };
}

/** A call as the host keeps it. */
export interface Call {
  call_id: string;
  operation: string;
  status: Status;
  /** The id of its approval. */
  approval?: string;
  /** open, approved, denied, expired, void or consumed */
  approval_state?: string;
  outcome: Outcome;
}

export interface Approval {
  id: string;
  state: "open" | "approved" | "denied" | "expired" | "void" | "consumed";
  subject: string;
  expires_at: string;
  decided_by?: string;
  reason?: string;
}

/** A call that waits for a person: names and ids alone, so that it can be stored and shown. */
export interface Pending {
  operation: string;
  callId: string;
  approvalId: string;
  /** The page on which an approver decides, after signing in there. */
  url: string;
  expiresAt: string;
}

export interface ExecuteOptions {
  /**
   * The same request with the same key gets the answer to the first, and nothing is done twice. Without one, execute makes a key of
   * its own, under which it repeats the request where an answer is lost.
   */
  key?: string;
  /** How long to wait for the result; 60 s by default. The call itself goes on. */
  waitMs?: number;
  signal?: AbortSignal | undefined;
}

const attempts = 3;
const hostStays = 30; // seconds, for which the host stays for a call by itself
const longestWait = 60; // seconds, of one request

export class Client {
  readonly url: string;
  readonly publicUrl: string;
  readonly #token: string;
  readonly #timeoutMs: number;
  readonly #maxBytes: number;

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? process.env["MORTISE_URL"];
    const token = options.token ?? process.env["MORTISE_TOKEN"];
    if (!url) throw new MortiseError("configuration", "the address of the host is missing: pass url, or set MORTISE_URL");
    if (!token) throw new MortiseError("configuration", "the token is missing: pass token, or set MORTISE_TOKEN to what `mortise tokens create` made");
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    const loopback = parsed !== undefined && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parsed.hostname);
    if (!parsed || !(parsed.protocol === "https:" || (parsed.protocol === "http:" && loopback))) {
      throw new MortiseError("configuration", `${url} is not an https address, nor an http address of this machine: a token is sent to no other`);
    }
    this.url = parsed.origin + parsed.pathname.replace(/\/+$/, "");
    this.publicUrl = (options.publicUrl ?? this.url).replace(/\/+$/, "");
    this.#token = token;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#maxBytes = options.maxBytes ?? 16 << 20;
  }

  /** Operations that the token may know of, page by page. */
  async *operations(options: { kind?: Operation["kind"]; signal?: AbortSignal } = {}): AsyncGenerator<Operation> {
    let page = "";
    do {
      const query = new URLSearchParams({ page_size: "200", ...(options.kind && { kind: options.kind }), ...(page && { page_token: page }) });
      const found = await this.#request<{ operations: Operation[]; next_page_token: string }>("GET", `operations?${query}`, options);
      if (!Array.isArray(found.operations)) throw new MortiseError("bad_response", "the host answered a list without operations");
      yield* found.operations;
      if (found.next_page_token === page) break;
      page = found.next_page_token;
    } while (page);
  }

  /** One operation, with its schemas. */
  async operation(name: string, options: { signal?: AbortSignal } = {}): Promise<OperationSchemas> {
    return this.#request<OperationSchemas>("GET", `operations/${path(name)}`, options);
  }

  /**
   * Executes an operation and waits for what becomes of it. A call that fails, that a person has to approve, or that still runs
   * when the time is over is an outcome; what the host refuses throws.
   */
  async execute(name: string, input: unknown, options: ExecuteOptions = {}): Promise<Outcome> {
    const end = Date.now() + (options.waitMs ?? 60_000);
    // Without a preference the host stays for a call that runs, and answers at once where a person has to approve. With
    // "wait" it would stay for the person too.
    const stay = end - Date.now() >= 1000 * hostStays;
    let outcome = await this.#request<Outcome>("POST", `operations/${path(name)}:execute`, {
      body: { input },
      waitS: stay ? hostStays : 0,
      prefer: stay ? undefined : "respond-async",
      key: options.key ?? randomUUID(),
      signal: options.signal,
    });
    while (outcome.status === "in_progress" && Date.now() < end) {
      outcome = (await this.call(outcome.call_id, { waitMs: end - Date.now(), signal: options.signal })).outcome;
    }
    return outcome;
  }

  /** A call as it stands, or as it ends within the time. */
  async call(id: string, options: { waitMs?: number; signal?: AbortSignal | undefined } = {}): Promise<Call> {
    const waitS = seconds(Date.now() + (options.waitMs ?? 0));
    return this.#request<Call>("GET", `calls/${encodeURIComponent(id)}${waitS > 0 ? `?wait=${waitS}s` : ""}`, { waitS, signal: options.signal });
  }

  /** How an approval stands. Deciding about it is for people, on the host's page. */
  async approval(id: string, options: { signal?: AbortSignal } = {}): Promise<Approval> {
    return this.#request<Approval>("GET", `approvals/${encodeURIComponent(id)}`, options);
  }

  /** Withdraws a call that waits, or tells one that runs to stop. */
  async cancel(id: string, reason: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#request("POST", `calls/${encodeURIComponent(id)}:cancel`, { ...options, body: { reason } });
  }

  /** The ids of a call that waits for a person. */
  pending(outcome: Outcome): Pending | undefined {
    const approval = outcome.approval;
    if (outcome.status !== "pending_approval" || !approval) return undefined;
    return {
      operation: outcome.operation,
      callId: outcome.call_id,
      approvalId: approval.id,
      url: `${this.publicUrl}/decide/${encodeURIComponent(approval.id)}`,
      expiresAt: approval.expires_at,
    };
  }

  async #request<T>(method: "GET" | "POST", route: string, options: RequestOptions): Promise<T> {
    const repeatable = method === "GET" || options.key !== undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once<T>(method, route, options);
      } catch (error) {
        const again = error instanceof MortiseError && (error.code === "unreachable" || error.status === 429 || error.status === 503);
        const pause = (error instanceof MortiseError && error.retryAfterMs) || 200 * attempt;
        if (!repeatable || !again || attempt === attempts || pause > 5_000 || options.signal?.aborted) throw error;
        await new Promise((done) => setTimeout(done, pause));
      }
    }
  }

  async #once<T>(method: string, route: string, options: RequestOptions): Promise<T> {
    const headers: Record<string, string> = { accept: "application/json", authorization: `Bearer ${this.#token}` };
    if (options.body !== undefined) headers["content-type"] = "application/json";
    if (options.key !== undefined) headers["idempotency-key"] = options.key;
    if (options.prefer !== undefined) headers["prefer"] = options.prefer;
    const deadline = AbortSignal.timeout(this.#timeoutMs + 1000 * (options.waitS ?? 0));
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}/api/v1/${route}`, {
        method,
        headers,
        redirect: "error", // a token goes to the host alone
        signal: options.signal ? AbortSignal.any([options.signal, deadline]) : deadline,
        ...(options.body !== undefined && { body: encoded(options.body) }),
      });
      text = await this.#read(response);
    } catch (cause) {
      if (cause instanceof MortiseError || options.signal?.aborted) throw cause;
      throw new MortiseError("unreachable", `${this.url} did not answer${deadline.aborted ? " in time" : ""}`, { retryable: true, cause });
    }
    let answer: unknown;
    try {
      answer = hasLongIntegers(text) ? parseExact(text) : JSON.parse(text);
    } catch (cause) {
      throw new MortiseError("bad_response", `${this.url} answered ${response.status} with what is no JSON`, { status: response.status, cause });
    }
    if (typeof answer !== "object" || answer === null) throw new MortiseError("bad_response", `${this.url} answered ${response.status} with no object`, { status: response.status });
    if (!response.ok) throw refusal(response, answer as Problem);
    return answer as T;
  }

  async #read(response: Response): Promise<string> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of response.body ?? []) {
      size += part.length;
      if (size > this.#maxBytes) throw new MortiseError("bad_response", `the answer is longer than ${this.#maxBytes} bytes`, { status: response.status });
      parts.push(part);
    }
    return Buffer.concat(parts).toString("utf8");
  }
}

interface RequestOptions {
  body?: unknown;
  key?: string;
  prefer?: string | undefined;
  /** How many seconds the host may take longer than usual. */
  waitS?: number;
  signal?: AbortSignal | undefined;
}

interface Problem {
  code?: unknown;
  detail?: unknown;
  retryable?: unknown;
  call_id?: unknown;
}

function refusal(response: Response, problem: Problem): MortiseError {
  const after = Number(response.headers.get("retry-after"));
  return new MortiseError(typeof problem.code === "string" ? problem.code : "bad_response", typeof problem.detail === "string" ? problem.detail : `the host answered ${response.status}`, {
    status: response.status,
    retryable: problem.retryable === true,
    ...(after > 0 && { retryAfterMs: after * 1000 }),
    ...(typeof problem.call_id === "string" && { callId: problem.call_id }),
  });
}

/** The error that an outcome stands for, where it is none to go on with. */
export function failureOf(outcome: Outcome): MortiseError | undefined {
  if (outcome.status === "succeeded") return undefined;
  const callId = outcome.call_id;
  if (outcome.status === "in_progress") return new MortiseError("in_progress", `${outcome.operation} still runs, as call ${callId}`, { retryable: true, callId });
  const error = outcome.error;
  if (!error) return new MortiseError(outcome.status === "unknown" ? "outcome_unknown" : "bad_response", `the call ${callId} is ${outcome.status}`, { callId });
  return new MortiseError(error.code, error.message, { retryable: error.retryable, callId, pluginCode: error.plugin_code });
}

function path(name: string): string {
  const parts = name.split("/");
  if (parts.length !== 2 || parts.some((part) => part === "" || part === "." || part === "..")) throw new MortiseError("invalid_input", `${name} is no plugin/operation`);
  return parts.map(encodeURIComponent).join("/");
}

function seconds(end: number): number {
  return Math.max(0, Math.min(longestWait, Math.ceil((end - Date.now()) / 1000)));
}

function encoded(body: unknown): string {
  try {
    return encode(body);
  } catch (cause) {
    throw new MortiseError("invalid_input", "the input cannot be written as JSON", { cause });
  }
}
