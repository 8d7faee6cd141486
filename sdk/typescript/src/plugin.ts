import type { Context } from "./context.ts";
import type { AgentInput, Proposal } from "./contracts.ts";
import { newHook, type EventName, type Hook, type HookHandler, type HookOptions } from "./hook.ts";
import type { Effect, Reconciled } from "./reconciled.ts";
import type { Result } from "./result.ts";
import { inputReader, Schema, t, type Fields, type JsonSchema, type ObjectOf, type Presence } from "./schema.ts";
import { serve } from "./serve.ts";

/** What an operation is: a tool computes, an operator does, an agent decides, an adapter translates. */
export type Kind = "tool" | "operator" | "agent" | "adapter";

type InputSchema = Fields | Schema<unknown, Presence>;
type InputOf<I> = I extends Schema<infer T, Presence> ? T : I extends Fields ? ObjectOf<I> : never;

/** What the host and the caller know about an operation. */
export interface Spec<I extends InputSchema, O> {
  description?: string;
  /** The arguments by name, or a schema of an object. None when absent. */
  input?: I;
  /** What the data of a result are. Anything when absent. */
  output?: Schema<O, Presence>;
  /** What the operation may change outside itself, such as `fs_write`. */
  effects?: readonly string[];
  policyTags?: readonly string[];
  permissions?: readonly string[];
  /** How long a call may take, as a manifest has it: `"30s"`. */
  timeout?: string | number;
  /** What the answers are tainted with: `untrusted` for what comes from outside, `private` for what is not everybody's to see. */
  labels?: readonly ("untrusted" | "private")[];
}

/** What is known of an operator. Preview and reconcile get its input; while they run, host services only read. */
export interface OperatorSpec<I extends InputSchema, O> extends Spec<I, O> {
  /** Shows what a call would do, in at most 64 KiB: people read it before they agree to the call. */
  preview?: (input: InputOf<I>, ctx: Context) => unknown;
  /** Finds out how an earlier run of a call ended, of which only the effects are on record. */
  reconcile?: (input: InputOf<I>, ctx: Context, effects: readonly Effect[]) => Reconciled<O> | Promise<Reconciled<O>>;
  /** All its effects go through host services. */
  brokered?: boolean;
}

/** What is known of an agent. Its `output` is what it produces itself, the step_output of its proposal. */
export interface AgentSpec<O> extends Omit<Spec<Fields, O>, "input" | "effects"> {
  /** The operations that it may propose, such as `Email.GenerateDraft@1.x`. */
  allowedActions?: readonly string[];
  /** What it needs of its context, such as `student.profile`; it is told nothing else. */
  contextFields?: readonly string[];
}

/** The function behind an agent. Nothing in its proposal happens by itself. */
export type AgentHandler<O> = (input: AgentInput, ctx: Context) => Answer<Proposal<O>> | Promise<Answer<Proposal<O>>>;

/** What a handler may answer: the data, or a {@link Result} that says more. */
export type Answer<O> = O | Result<O>;

/** The function behind an operation. What it throws fails the call; see {@link MortiseError}. */
export type Handler<I extends InputSchema, O> = (input: InputOf<I>, ctx: Context) => Answer<O> | Promise<Answer<O>>;

/** @internal An operation as the protocol needs it. */
export interface Operation {
  readonly description: Readonly<Record<string, unknown>>;
  /** Turns the host's input into the handler's; throws InvalidInput. */
  readonly read: (input: unknown, exact: boolean) => unknown;
  readonly handle: (input: unknown, ctx: Context) => unknown;
  readonly preview: ((input: unknown, ctx: Context) => unknown) | undefined;
  readonly reconcile: ((input: unknown, ctx: Context, effects: readonly Effect[]) => unknown) | undefined;
}

/** What a plugin says about itself beside its name. */
export interface PluginOptions {
  version: string;
  description?: string;
  /** How many calls run at a time, 1 to 1024; 1 when absent. More only helps handlers that await. */
  concurrency?: number;
  /** The host services that the plugin wants, such as `cache`. */
  capabilities?: readonly string[];
}

/**
 * A plugin: a name, a version, its operations and its hooks.
 *
 * The constructor and the methods that add operations and hooks throw TypeError
 * for what cannot be right: a name used twice, an event that there is not.
 */
export class Plugin {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly concurrency: number;
  readonly capabilities: readonly string[];
  /** @internal */
  readonly operations = new Map<string, Operation>();
  /** @internal By event. */
  readonly hooks = new Map<string, Hook>();

  constructor(name: string, { version, description = "", concurrency = 1, capabilities = [] }: PluginOptions) {
    if (name === "" || version === "") throw new TypeError("a plugin has a name and a version");
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1024) {
      throw new TypeError(`concurrency is 1 to 1024, not ${concurrency}`);
    }
    this.name = name;
    this.version = version;
    this.description = description;
    this.concurrency = concurrency;
    this.capabilities = [...capabilities];
  }

  /** Adds an operation that computes something and changes nothing. */
  tool<const I extends InputSchema = Fields, O = unknown>(name: string, spec: Spec<I, O>, handler: Handler<I, NoInfer<O>>): this {
    return this.#add("tool", name, spec, handler);
  }

  /** Adds an operation that changes something; `effects` say what. */
  operator<const I extends InputSchema = Fields, O = unknown>(name: string, spec: OperatorSpec<I, O>, handler: Handler<I, NoInfer<O>>): this {
    return this.#add("operator", name, spec, handler, {
      preview: spec.preview !== undefined || undefined,
      reconcile: spec.reconcile !== undefined || undefined,
      brokered: spec.brokered,
    });
  }

  /** Adds an operation that decides what to do: it gets an intent, and what it may know and propose. */
  agent<O = unknown>(name: string, spec: AgentSpec<O>, handler: AgentHandler<NoInfer<O>>): this {
    const { allowedActions: allowed_actions, contextFields: context_fields } = spec;
    return this.#add("agent", name, { ...spec, input: agentInput }, handler as Handler<typeof agentInput, unknown>, {
      allowed_actions,
      context_fields,
    });
  }

  /** Adds an operation that translates between two forms, such as an event into a {@link SubmitRequest}. */
  adapter<const I extends InputSchema = Fields, O = unknown>(name: string, spec: Spec<I, O>, handler: Handler<I, NoInfer<O>>): this {
    return this.#add("adapter", name, spec, handler);
  }

  /**
   * Adds what hears of an event of the agents that have this plugin, one for an event:
   *
   *     plugin.hook("tool.before@v1", { priority: 50, failureMode: "fail" }, ({ toolName }) =>
   *       toolName === "shell" ? { allow: false, reason: "no shell here" } : { allow: true });
   *
   * What it throws is a failure of the hook.
   */
  hook<E extends EventName>(event: E, options: HookOptions, handler: HookHandler<E>): this {
    if (this.hooks.has(event)) throw new TypeError(`there are two hooks of ${event}`);
    this.hooks.set(event, newHook(event, handler, options));
    return this;
  }

  #add<I extends InputSchema, O>(kind: Kind, name: string, spec: OperatorSpec<I, O>, handler: Handler<I, O>, more: object = {}): this {
    if (name === "" || name.includes("/")) throw new TypeError(`an operation cannot be called ${JSON.stringify(name)}`);
    if (this.operations.has(name)) throw new TypeError(`there are two operations called ${name}`);
    const input = spec.input instanceof Schema ? spec.input : t.object((spec.input ?? {}) as Fields);
    this.operations.set(name, {
      description: {
        kind,
        description: spec.description ?? "",
        input: withDialect(input.json),
        output: spec.output && withDialect(spec.output.json),
        effects: spec.effects ?? [],
        policy_tags: spec.policyTags,
        permissions: spec.permissions,
        timeout: spec.timeout,
        labels: spec.labels,
        ...more,
      },
      read: inputReader(input),
      handle: handler as Operation["handle"],
      preview: spec.preview as Operation["preview"],
      reconcile: spec.reconcile as Operation["reconcile"],
    });
    return this;
  }

  /** @internal What the code knows, as `describe` answers it. */
  describe(): Readonly<Record<string, unknown>> {
    return {
      name: this.name,
      version: this.version,
      description: this.description,
      capabilities: this.capabilities.length > 0 ? this.capabilities : undefined,
      operations: Object.fromEntries(Array.from(this.operations, ([name, operation]) => [name, operation.description])),
      hooks: this.hooks.size > 0 ? Array.from(this.hooks.values(), ({ description }) => description) : undefined,
    };
  }

  /**
   * Serves the plugin to the host over standard input and output until the
   * host is done with it. Call it once, last. In a terminal it prints help.
   */
  run(): void {
    serve(this);
  }
}

// What an agent's caller gives; the host adds the rest.
const agentInput = t.json<AgentInput>({
  type: "object",
  properties: {
    intent: { type: "object", properties: { type: { type: "string" }, payload: { type: "object" } }, required: ["type"] },
    context: { type: "object" },
    constraints: { type: "object" },
  },
  required: ["intent"],
});

function withDialect(schema: JsonSchema): JsonSchema {
  return typeof schema === "boolean" ? schema : { $schema: "https://json-schema.org/draft/2020-12/schema", ...schema };
}
