// The errors of the client:
//
//   MortiseError
//   ├─ ApprovalPending    a person has to approve the call first
//   └─ ArgumentsChanged   the arguments are not those of the call that waits

import type { Pending } from "./client.ts";

export interface MortiseErrorOptions {
  retryable?: boolean;
  retryAfterMs?: number;
  status?: number;
  callId?: string | undefined;
  pluginCode?: string | undefined;
  cause?: unknown;
}

/**
 * Every error that the client throws. {@link code} is one of the host's codes (docs/codes.md), or one of the client's own:
 * approval_pending, arguments_changed, in_progress, unreachable, bad_response, too_many_operations and configuration.
 */
export class MortiseError extends Error {
  override readonly name: string = "MortiseError";
  readonly code: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** When, where that is known. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status of the answer, where there was one. */
  readonly status: number | undefined;
  readonly callId: string | undefined;
  /** The plugin's own code of a failure. */
  readonly pluginCode: string | undefined;

  constructor(code: string, message: string, options: MortiseErrorOptions = {}) {
    super(`${code}: ${message}`, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
    this.callId = options.callId;
    this.pluginCode = options.pluginCode;
  }
}

/** The host waits for a person. Whatever the framework was told, the host has no approval yet. */
export class ApprovalPending extends MortiseError {
  override readonly name = "ApprovalPending";
  readonly pending: Pending;

  constructor(pending: Pending) {
    super("approval_pending", `${pending.operation} waits for a person, who decides at ${pending.url}`, { retryable: true, callId: pending.callId });
    this.pending = pending;
  }
}

/** The arguments differ from those of the call that was made for this tool call. Nothing ran with the new ones. */
export class ArgumentsChanged extends MortiseError {
  override readonly name = "ArgumentsChanged";

  constructor(operation: string, toolCallId: string, cause?: unknown) {
    super("arguments_changed", `the tool call ${toolCallId} of ${operation} was made with other arguments, or by another caller; other arguments are another call`, { cause });
  }
}

/** Finds an error of the client in what a framework has wrapped it in. */
export function mortiseErrorOf(error: unknown): MortiseError | undefined {
  for (let depth = 0; depth < 8 && typeof error === "object" && error !== null; depth++) {
    if (error instanceof MortiseError) return error;
    const outer = error as { cause?: unknown; error?: unknown };
    error = outer.error ?? outer.cause;
  }
  return undefined;
}
