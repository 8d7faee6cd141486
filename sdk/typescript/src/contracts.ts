// What agents and adapters take and answer, as the kernel contracts have it (5.2.2, 5.5.1).

type Members = Readonly<Record<string, unknown>>;

/** What a user wants, such as `Funding.Outreach.Email.Generate`. */
export interface Intent {
  readonly type: string;
  readonly payload?: Members;
}

/** An operation that an agent may propose. */
export interface Proposable {
  /** As it is proposed. */
  readonly name: string;
  readonly operation: string;
  readonly version: string;
  readonly kind: string;
  readonly description: string;
  readonly effects: readonly string[];
  readonly policy_tags: readonly string[];
  readonly input_schema: unknown;
  /** human_apply where a person will be asked. */
  readonly gate: string;
}

/** All that an agent learns. */
export interface AgentInput {
  readonly intent: Intent;
  readonly context: Members;
  /** What policy said of what may be proposed, by plugin/operation. */
  readonly policy_snapshot: { readonly version: string; readonly operations: Readonly<Record<string, "allow" | "allow_with_approval" | "deny">> };
  readonly tool_registry: readonly Proposable[];
  readonly constraints: Members;
  readonly runtime: { readonly deadline_ms: number; readonly max_actions: number; readonly max_input_bytes: number };
}

/** An operation with its input. */
export interface RequiredAction {
  operator: string;
  payload?: Members;
  policy_tags?: readonly string[];
  idempotency_hint?: string;
}

/** One step of a plan. */
export interface ProposedStep {
  step_id: string;
  action: string;
  /** human_apply: a person agrees before it runs. */
  gate?: "none" | "human_apply";
  /** In place of the required action's. */
  payload?: Members;
  /** Steps that must have succeeded; the one before where it is absent. */
  needs?: readonly string[];
}

/** An agent's answer: a plan, an output of its own, or suggestions. Nothing in it happens by itself. */
export type Proposal<O = unknown> = {
  agent_name: string;
  agent_version: string;
  /** 0 to 1 */
  confidence: number;
  /** Why. Signals are facts of the input: `intent_type:X`, `has_y`, `context:student.profile`. */
  rationale: { short: string; signals: readonly string[] };
  required_actions?: readonly RequiredAction[];
  randomness_disclosure?: unknown;
} & (
  | { kind: "plan_proposal"; proposed_plan: { steps: readonly ProposedStep[] }; suggestions?: readonly Suggestion[] }
  | { kind: "step_output"; step_output: O; suggestions?: readonly Suggestion[] }
  | { kind: "next_step_suggestions"; suggestions: readonly Suggestion[] }
);

/** Something for a person. */
export interface Suggestion {
  type: string;
  text: string;
}

/** What an adapter makes of an event that happened elsewhere (KernelSubmitRequest). It cannot name rights. */
export interface SubmitRequest {
  intent: { type: string; payload: Members };
  /** Who the other system says it was. */
  principal: { provider: string; external_id: string };
  context?: Members;
  constraints?: Members;
  /** The same for every delivery of the same event. */
  idempotency_key?: string;
  metadata?: Members;
}
