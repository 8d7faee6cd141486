/**
 * The SDK for Mortise plugins: one typed function is one operation.
 *
 * A {@link Plugin} holds operations, {@link t} says what they take and return,
 * {@link Context} is what a handler may ask of the host. Whatever a plugin
 * prints goes to standard error: standard output belongs to the protocol.
 */

export { codes, type Code } from "./codes.ts";
export type { Auth, Cache, Context, Http, HttpFailure, HttpOptions, HttpResponse, Level, Log, Policy, Progress, SecretHeader, Trace } from "./context.ts";
export type { AgentInput, Intent, Proposable, Proposal, ProposedStep, RequiredAction, SubmitRequest, Suggestion } from "./contracts.ts";
export { Cancelled, InvalidInput, MortiseError, PluginError, ServiceError, type ErrorOptions } from "./errors.ts";
export type * from "./events.ts";
export type { EventName, HookAnswer, HookHandler, HookOptions, Verdict } from "./hook.ts";
export {
  Plugin,
  type AgentHandler,
  type AgentSpec,
  type Answer,
  type Handler,
  type Kind,
  type OperatorSpec,
  type PluginOptions,
  type Spec,
} from "./plugin.ts";
export type { Effect, Reconciled } from "./reconciled.ts";
export { result, Result, type Metrics, type ResultFields } from "./result.ts";
export {
  t,
  type ArrayOptions,
  type Fields,
  type Infer,
  type JsonSchema,
  type NumberOptions,
  type ObjectOf,
  type Options,
  type Presence,
  type RecordOptions,
  type Schema,
  type StringOptions,
} from "./schema.ts";
