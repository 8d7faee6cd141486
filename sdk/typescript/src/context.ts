import { Cancelled, ServiceError } from "./errors.ts";

/** Who asks, as the host knows them. */
export interface Auth {
  readonly tenant_id: string;
  readonly principal_id: string;
  readonly principal: { readonly type: string; readonly id: string };
  readonly scopes: readonly string[];
  readonly [member: string]: unknown;
}

/** What a call belongs to. */
export interface Trace {
  readonly correlation_id: string;
  readonly workflow_id: string;
  readonly step_id: string;
  /** The span that the call is below, as W3C Trace Context writes it, where the host is traced. */
  readonly traceparent?: string;
  readonly [member: string]: unknown;
}

/** What policy decided about the call, as it stood then. */
export interface Policy {
  readonly version: string;
  readonly verdict: "allow" | "allow_with_approval";
  readonly reasons: readonly string[];
}

/** What a request may have beside its URL; see docs/services.md. One of json, body and body_base64 at most. */
export interface HttpOptions {
  method?: string;
  /** Text, or a secret that the host fills in: `{ $secret: "api_key", format: "Bearer {}" }`. */
  headers?: Readonly<Record<string, string | SecretHeader>>;
  params?: Readonly<Record<string, unknown>>;
  json?: unknown;
  body?: string;
  body_base64?: string;
  as?: "auto" | "text" | "bytes";
  timeout_seconds?: number;
  follow_redirects?: boolean;
  max_bytes?: number;
}

/** An answer; a status such as 404 is one too. It has one of json, body and body_base64. */
export interface HttpResponse {
  readonly status_code: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: string;
  readonly body_base64?: string;
  readonly url: string;
  readonly truncated: boolean;
  /** Of a status of 400 and above. */
  readonly failure?: HttpFailure;
}

/** What a status of 400 and above comes down to. */
export interface HttpFailure {
  readonly category: "auth_error" | "forbidden" | "not_found" | "gone" | "rate_limited" | "server_error" | "client_error";
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** As the provider asks, at most a day; null where it does not say. */
  readonly retry_after_ms: number | null;
  readonly provider_message: string | null;
  readonly provider_error_code: string | null;
}

/** The value of a header that the host fills in, so that the plugin does not hold it. */
export interface SecretHeader {
  readonly $secret: string;
  /** With {} where the secret stands; the secret alone where it is missing. */
  readonly format?: string;
}

/**
 * Requests that the host makes, to hosts that the manifest declares. It takes the capability `http` and, for what is not
 * GET or HEAD, an operator with the effect `http_write`. Every method rejects with a {@link ServiceError}.
 */
export interface Http {
  fetch(url: string, options?: HttpOptions): Promise<HttpResponse>;
  get(url: string, options?: HttpOptions): Promise<HttpResponse>;
  /** Posts a value as JSON. */
  post(url: string, json: unknown, options?: HttpOptions): Promise<HttpResponse>;
}

/** How far a call has come. */
export interface Progress {
  message?: string;
  done?: number;
  total?: number;
  unit?: string;
}

export type Level = "debug" | "info" | "warning" | "error";

/** Writes log records of the call. Messages over 8 KiB are cut. */
export type Log = Record<Level, (message: string, fields?: Readonly<Record<string, unknown>>) => void>;

/** The host's cache, as far as this call may use it. Every method rejects with a {@link ServiceError}. */
export interface Cache {
  /** The value stored under the key, or undefined. */
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown, options?: { ttlSeconds?: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/** What a call is, as the host's request says it. @internal */
export interface Call {
  readonly call: string;
  readonly context: Readonly<Record<string, unknown>>;
  readonly deadline_ms?: number;
}

/** The way from a call to the host; one for each protocol version. @internal */
export interface Link {
  readonly paths: { readonly scratch: string; readonly artifacts: string | undefined };
  request(method: string, members: Readonly<Record<string, unknown>>): Promise<unknown>;
  emit(call: string, seq: number, kind: "progress" | "content", data: unknown): void;
  log(call: string, level: Level, message: string, fields: Readonly<Record<string, unknown>> | undefined): void;
}

/**
 * What a handler knows about its call and may ask of the host while it lasts.
 *
 * It ends with the call: services then reject with a {@link ServiceError}, and
 * what is emitted or logged is left unsaid.
 */
export class Context {
  readonly #link: Link;
  readonly #call: Call;
  #seq = 0;
  #ended = false;
  #cancelled: Cancelled | undefined;
  #controller: AbortController | undefined;
  #rejects: Set<(error: unknown) => void> | undefined;
  #log: Log | undefined;

  /** @internal */
  constructor(link: Link, call: Call) {
    this.#link = link;
    this.#call = call;
  }

  /** Who asks. Empty in version 1 of the protocol. */
  get auth(): Auth {
    return (this.#call.context["auth"] ?? {}) as Auth;
  }

  /** What the call belongs to. Empty in version 1. */
  get trace(): Trace {
    return (this.#call.context["trace"] ?? {}) as Trace;
  }

  /** The session the call is part of, where there is one. */
  get session(): unknown {
    return this.#call.context["session"];
  }

  /** In a hook, the agent whose event it is; else empty. */
  get agent(): string {
    const { agent } = this.#call.context;
    return typeof agent === "string" ? agent : "";
  }

  /** The idempotency key, empty where there is none. */
  get key(): string {
    const { key } = this.#call.context;
    return typeof key === "string" ? key : "";
  }

  /** What policy decided about the call, where it was asked. */
  get policy(): Policy | undefined {
    return this.#call.context["policy"] as Policy | undefined;
  }

  /** Which run of the call this is: 1, and one more each time the host runs it again. */
  get attempt(): number {
    return Number(this.#call.context["attempt"] ?? 1);
  }

  /** The context as the host sent it; version 1 has workspace_id and repo_root here. */
  get raw(): Readonly<Record<string, unknown>> {
    return this.#call.context;
  }

  /** How long the call may take, from its start. The host enforces it; a handler may plan by it. */
  get deadlineMs(): number | undefined {
    return this.#call.deadline_ms;
  }

  /** The process's own directory. */
  get scratch(): string {
    return this.#link.paths.scratch;
  }

  /** Where files lie that the process may read, if there are any. */
  get artifactsDir(): string | undefined {
    return this.#link.paths.artifacts;
  }

  /** Whether the caller gave up. News of it can only arrive while the handler awaits something. */
  get cancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  /** Throws {@link Cancelled} once the caller gave up. */
  check(): void {
    if (this.#cancelled) throw this.#cancelled;
  }

  /** Aborted, with a {@link Cancelled} as its reason, when the caller gives up. For fetch, timers and the like. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  /** Tells how far the work has come. May be dropped when it comes too fast. */
  progress({ message, done, total, unit }: Progress): void {
    if (!this.#ended) this.#link.emit(this.#call.call, ++this.#seq, "progress", { message, done, total, unit });
  }

  /** Hands out a piece of content before the result. Never dropped; a call that emits too much fails with limit_exceeded. */
  emit(data: unknown): void {
    if (!this.#ended) this.#link.emit(this.#call.call, ++this.#seq, "content", data);
  }

  get log(): Log {
    const at = (level: Level) => (message: string, fields?: Readonly<Record<string, unknown>>) => {
      if (!this.#ended) this.#link.log(this.#call.call, level, message, fields);
    };
    return (this.#log ??= { debug: at("debug"), info: at("info"), warning: at("warning"), error: at("error") });
  }

  get cache(): Cache {
    return {
      get: async (key) => {
        const answer = (await this.service("cache.get", { key })) as { found?: boolean; value?: unknown } | null;
        return answer?.found === true ? answer.value : undefined;
      },
      set: async (key, value, { ttlSeconds = 300 } = {}) => {
        await this.service("cache.set", { key, value, ttl_seconds: ttlSeconds });
      },
      delete: async (key) => {
        await this.service("cache.delete", { key });
      },
    };
  }

  get http(): Http {
    const fetch = async (url: string, options: HttpOptions = {}) => (await this.service("http.fetch", { ...options, url })) as HttpResponse;
    return { fetch, get: fetch, post: (url, json, options) => fetch(url, { method: "POST", json, ...options }) };
  }

  /** Asks the host for `service.method`. Rejects with a {@link ServiceError}, or {@link Cancelled} when the caller gives up. */
  service(method: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    return this.#request(method, { args });
  }

  /**
   * Calls another operation, `plugin/operation`, with the caller's principal.
   * The manifest declares it under requires.tools. Resolves to the result of
   * that call; rejects as {@link service} does.
   */
  call(operation: string, input: Readonly<Record<string, unknown>>, { key }: { key?: string } = {}): Promise<unknown> {
    return this.#request("operations.call", key === undefined ? { operation, input } : { operation, input, key });
  }

  async #request(method: string, members: Readonly<Record<string, unknown>>): Promise<unknown> {
    this.check();
    if (this.#ended) throw new ServiceError(`${method}: the call has ended`, { code: "not_found" });
    const rejects = (this.#rejects ??= new Set());
    let reject!: (error: unknown) => void;
    try {
      return await new Promise((resolve, no) => {
        rejects.add((reject = no));
        this.#link.request(method, { call: this.#call.call, ...members }).then(resolve, reject);
      });
    } finally {
      rejects.delete(reject);
    }
  }

  /** @internal The caller gave up. */
  cancel(reason: string): void {
    if (this.#cancelled) return;
    const cancelled = (this.#cancelled = new Cancelled(reason));
    this.#controller?.abort(cancelled);
    this.#rejects?.forEach((reject) => reject(cancelled));
  }

  /** @internal The call has its answer. */
  end(): void {
    this.#ended = true;
  }
}
