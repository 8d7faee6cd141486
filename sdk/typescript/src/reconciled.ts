import { PluginError, type MortiseError } from "./errors.ts";
import { failureData, messageOf } from "./failure.ts";

/** One effect of an earlier run of a call, as the host has it on record. */
export interface Effect {
  /** The service that was asked, such as `http.fetch`. */
  readonly method: string;
  readonly effect: string;
  readonly request_hash: string;
  /** Which of several equal requests of the call it is, from 0. */
  readonly occurrence: number;
  /** intent: it may have been sent, and no answer is known; late: it was answered after the call had stopped waiting. */
  readonly state: "intent" | "done" | "late";
  /** The key that the other side was given, empty where it takes none. */
  readonly provider_key: string;
  /** The service's answer, where there is one and it was not too long to send. */
  readonly response?: unknown;
}

/**
 * What an operator found out about an earlier run: it succeeded, with the data it
 * would have returned; it failed; it never happened and may be done now; the
 * outcome is not known yet. Evidence is whatever shows it, at most 64 KiB.
 */
export type Reconciled<O = unknown> = { readonly evidence?: unknown } & (
  | { readonly outcome: "succeeded"; readonly data: O }
  | { readonly outcome: "failed"; readonly error?: MortiseError }
  | { readonly outcome: "not_done" | "unknown" }
);

const outcomes: readonly unknown[] = ["succeeded", "failed", "not_done", "unknown"];

/** What goes over the wire for it; throws PluginError for an answer that is none. */
export function reconciledMembers(answer: unknown): Readonly<Record<string, unknown>> {
  const { outcome, data, error, evidence } = (answer ?? {}) as { outcome?: unknown; data?: unknown; error?: MortiseError; evidence?: unknown };
  if (!outcomes.includes(outcome)) {
    throw new PluginError(`reconcile answers an outcome of ${outcomes.join(", ")}, not ${String(outcome)}`, { code: "INVALID_RESULT" });
  }
  return {
    outcome,
    data: outcome === "succeeded" ? (data ?? null) : undefined,
    error: outcome === "failed" && error ? { ...failureData(error, error.details), message: messageOf(error) } : undefined,
    evidence,
  };
}
