// The errors of the SDK:
//
//   MortiseError
//   ├─ PluginError    a failure in the plugin's own words
//   ├─ InvalidInput   the input is not what the operation takes
//   ├─ Cancelled      the caller gave up
//   └─ ServiceError   the host refused or failed a service
//
// Thrown from a handler, each of them fails the call with its code. Anything
// else that is thrown fails it as plugin_error, named after the error's class.

/** What an error tells the caller beside its message. */
export interface ErrorOptions {
  /** Upper case by custom (`FILE_NOT_FOUND`), or one of the codes a plugin may use, such as `rate_limited`. */
  code?: string;
  /** For the caller to read by program. Anything that JSON can carry. */
  details?: Readonly<Record<string, unknown>>;
  /** Whether the same call may succeed later. */
  retryable?: boolean;
  /** The earliest sensible time to try again. */
  retryAfterMs?: number;
  /** Kept for the log on standard error; it never crosses the wire. */
  cause?: unknown;
}

/** Every error that the SDK throws or understands. */
export class MortiseError extends Error {
  override readonly name: string = "MortiseError";
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;
  readonly retryAfterMs: number;

  constructor(message: string, options: ErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = options.code ?? "plugin_error";
    this.details = options.details ?? {};
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** A failure in the plugin's own words: `throw new PluginError("no such file: a.log", { code: "FILE_NOT_FOUND" })`. */
export class PluginError extends MortiseError {
  override readonly name = "PluginError";
}

/** The input is not what the operation takes, beyond what its schema can say. */
export class InvalidInput extends MortiseError {
  override readonly name = "InvalidInput";

  constructor(message: string, options: Omit<ErrorOptions, "code"> = {}) {
    super(message, { ...options, code: "invalid_input" });
  }
}

/** The call was cancelled; {@link reason} is `timeout`, `cancelled` or `shutdown`. Let it pass. */
export class Cancelled extends MortiseError {
  override readonly name = "Cancelled";
  readonly reason: string;

  constructor(reason = "cancelled") {
    super(`the call was cancelled: ${reason}`, { code: "cancelled" });
    this.reason = reason;
  }
}

/** The host refused a service or failed in it; `code` is the host's, such as `service_denied` or `not_found`. */
export class ServiceError extends MortiseError {
  override readonly name = "ServiceError";
}
