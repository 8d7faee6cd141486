/**
 * Every code a failed call can have, as protocol/codes.json lists them with
 * their meaning. Codes are added, never renamed or reused.
 */
export const codes = [
  "unauthenticated",
  "not_found",
  "disabled",
  "quarantined",
  "scope_denied",
  "policy_denied",
  "hook_vetoed",
  "hook_failed",
  "invalid_input",
  "input_too_large",
  "invalid_output",
  "output_too_large",
  "needs_context",
  "missing_secrets",
  "missing_identity",
  "key_conflict",
  "outcome_unknown",
  "approval_denied",
  "approval_expired",
  "approval_void",
  "service_denied",
  "effect_undeclared",
  "egress_denied",
  "budget_exceeded",
  "rate_limited",
  "overloaded",
  "limit_exceeded",
  "isolation_unavailable",
  "dependency_missing",
  "unavailable",
  "cancelled",
  "plugin_error",
  "internal",
  "launch_failed",
  "handshake_failed",
  "timeout",
  "crashed",
  "malformed_response",
  "tool_not_exposed",
  "protocol_version_mismatch",
  "capability_not_declared",
  "capability_not_allowed",
] as const;

/** One of the host's {@link codes}. */
export type Code = (typeof codes)[number];

/** The codes a plugin may report as they are; any other is its own and shown as plugin_code. */
export const pluginCodes: ReadonlySet<string> = new Set<Code>([
  "plugin_error",
  "invalid_input",
  "needs_context",
  "dependency_missing",
  "rate_limited",
  "timeout",
  "cancelled",
  "limit_exceeded",
  "unavailable",
]);
