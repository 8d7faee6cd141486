import { pluginCodes } from "./codes.ts";
import { Cancelled, MortiseError, PluginError } from "./errors.ts";
import { bounded } from "./json.ts";

/**
 * Converts a thrown value to an error that can be answered with, its message
 * cut to 2 KiB. An unexpected error goes to standard error with its stack, and
 * is named after its class.
 */
export function failureOf(thrown: unknown, cancelled: boolean): MortiseError {
  if (thrown instanceof MortiseError) {
    if (thrown.cause !== undefined) report(`${thrown.name}: ${thrown.message}`, thrown.cause);
    return thrown;
  }
  // What fetch, timers and the like throw when ctx.signal is aborted.
  if (cancelled && thrown instanceof Error && thrown.name === "AbortError") return new Cancelled();
  report("a handler threw", thrown);
  return new PluginError(thrown instanceof Error ? thrown.message : safeString(thrown), { code: classOf(thrown) });
}

/** What programs read of a failure, as the wire has it. A code that is not a plugin's to use becomes its own. */
export function failureData(failure: MortiseError, details: unknown): Readonly<Record<string, unknown>> {
  const code = pluginCodes.has(failure.code) ? failure.code : "plugin_error";
  return {
    code,
    plugin_code: code === failure.code ? "" : bounded(failure.code, 128),
    details,
    retryable: failure.retryable,
    retry_after_ms: failure.retryAfterMs,
  };
}

/** The message of a failure as it may cross the wire: never empty, at most 2 KiB. */
export function messageOf(failure: MortiseError): string {
  return bounded(failure.message || failure.code, 2048);
}

/** Tells the log, standard error, about something that was thrown. Never throws. */
export function report(what: string, thrown: unknown): void {
  const stack = thrown instanceof Error ? (thrown.stack ?? thrown.message) : safeString(thrown);
  process.stderr.write(`${what}: ${stack}\n`);
}

function classOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "Error";
  return bounded(thrown.name !== "Error" ? String(thrown.name) : thrown.constructor.name, 128) || "Error";
}

function safeString(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "something that has no text";
  }
}
