import type { Context } from "./context.ts";
import { PluginError } from "./errors.ts";
import { shapes, type Payloads } from "./events.ts";

/** The name of an event, with its version; docs/events.md has them all. */
export type EventName = keyof Payloads;

/** What a veto says: whether the event may go on, why not, and with which payload. */
export interface Verdict<P> {
  readonly allow: boolean;
  readonly reason?: string;
  readonly payload?: P;
}

/** What a hook of an event answers: a listener nothing, a transform all of the payload or nothing, a veto a verdict. */
export type HookAnswer<E extends EventName> = (typeof shapes)[E] extends "listener"
  ? undefined | null | void
  : (typeof shapes)[E] extends "transform"
    ? Payloads[E] | undefined | void
    : Verdict<Payloads[E]>;

/** The function behind a hook. Host services are not available in it. */
export type HookHandler<E extends EventName> = (payload: Payloads[E], ctx: Context) => HookAnswer<E> | Promise<HookAnswer<E>>;

/** What is known of a hook beside its event. */
export interface HookOptions {
  /** Any finite number; lower comes first; 100 when absent. */
  priority?: number;
  /** What a failure means: the event goes on without this plugin, or ends. */
  failureMode?: "skip" | "fail";
  /** How long it may take, 1 to 600,000; the host decides when absent. */
  deadlineMs?: number;
  /** Plugins whose hooks of the same priority come later. */
  before?: readonly string[];
  /** Plugins whose hooks of the same priority come first. */
  after?: readonly string[];
}

/** @internal A hook as the protocol needs it: its handler answers the members to send. */
export interface Hook {
  readonly description: Readonly<Record<string, unknown>>;
  readonly handle: (payload: unknown, ctx: Context) => unknown;
}

/** @internal Throws TypeError for what cannot be right. */
export function newHook(event: string, handler: (payload: never, ctx: Context) => unknown, options: HookOptions): Hook {
  if (!Object.hasOwn(shapes, event)) {
    const hint = Object.hasOwn(shapes, `${event}@v1`) ? `say ${event}@v1` : `there are ${Object.keys(shapes).join(", ")}`;
    throw new TypeError(`there is no event ${JSON.stringify(event)}: ${hint}`);
  }
  for (const name of Object.keys(options)) {
    if (!["priority", "failureMode", "deadlineMs", "before", "after"].includes(name)) {
      throw new TypeError(`the hook of ${event}: there is no option ${name}; the options are priority, failureMode, deadlineMs, before and after`);
    }
  }
  const { priority, failureMode: failure_mode, deadlineMs: deadline_ms, before, after } = options;
  const refuse = (what: string) => new TypeError(`the hook of ${event}: ${what}`);
  if (typeof handler !== "function") throw refuse("it has no function");
  if (priority !== undefined && !Number.isFinite(priority)) throw refuse(`priority is a finite number, not ${priority}`);
  if (failure_mode !== undefined && failure_mode !== "skip" && failure_mode !== "fail") throw refuse("failureMode is skip or fail");
  if (deadline_ms !== undefined && !(Number.isInteger(deadline_ms) && deadline_ms >= 1 && deadline_ms <= 600_000)) {
    throw refuse(`deadlineMs is 1 to 600000, not ${deadline_ms}`);
  }
  for (const plugins of [before, after]) {
    if (plugins !== undefined && (!Array.isArray(plugins) || plugins.length > 32)) throw refuse("before and after are lists of at most 32 plugins");
  }
  const shape: string = shapes[event as EventName];
  return {
    description: { event, priority, failure_mode, deadline_ms, before, after },
    handle: (payload, ctx) => {
      const answer = handler(payload as never, ctx);
      return isThenable(answer) ? answer.then((said) => members(event, shape, said)) : members(event, shape, answer);
    },
  };
}

/** What goes over the wire for an answer; throws PluginError for what is none. */
function members(event: string, shape: string, answer: unknown): Readonly<Record<string, unknown>> {
  const misfit = (form: string) => new PluginError(`${event}: a ${shape} hook answers ${form}`, { code: "INVALID_RESULT" });
  if (shape === "listener") {
    if (answer !== undefined && answer !== null) throw misfit("nothing");
    return {};
  }
  if (shape === "transform") {
    if (answer === undefined || answer === null) return {};
    if (!isObject(answer)) throw misfit("the whole payload, an object, or nothing");
    return { payload: answer };
  }
  const form = "{allow: true}, with a payload or without, or {allow: false, reason}";
  if (!isObject(answer) || typeof answer["allow"] !== "boolean") throw misfit(form);
  const { allow, reason, payload } = answer;
  if ((reason !== undefined && typeof reason !== "string") || (payload !== undefined && !isObject(payload))) throw misfit(form);
  return { allow, reason, payload };
}

/** @internal */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
