package eventmill

import "github.com/mortise-dev/mortise/plugin"

// spellings are the codes of the host as the Event Mill contract spells them
// (Error Codes). What the contract has no word for is INTERNAL_ERROR, and the
// host's own code stands beside it. A plugin's own codes are passed through.
var spellings = map[plugin.Code]string{
	plugin.CodeInvalidInput: "INPUT_VALIDATION_FAILED", plugin.CodeInputTooLarge: "INPUT_VALIDATION_FAILED",
	plugin.CodeNeedsContext: "INPUT_VALIDATION_FAILED", plugin.CodeKeyConflict: "INPUT_VALIDATION_FAILED",
	plugin.CodeNotFound:       "ARTIFACT_NOT_FOUND",
	plugin.CodeMissingSecrets: "LLM_UNAVAILABLE", plugin.CodeMissingIdentity: "LLM_UNAVAILABLE",
	plugin.CodeBudgetExceeded: "LLM_QUERY_FAILED", plugin.CodeRateLimited: "LLM_QUERY_FAILED",
	plugin.CodeTimeout:           "TIMEOUT",
	plugin.CodeDependencyMissing: "DEPENDENCY_MISSING",

	plugin.CodeUnauthenticated: internalError, plugin.CodeDisabled: internalError, plugin.CodeQuarantined: internalError,
	plugin.CodeSignInRequired: internalError, plugin.CodeScopeDenied: internalError, plugin.CodePolicyDenied: internalError, plugin.CodeHookVetoed: internalError,
	plugin.CodeHookFailed: internalError, plugin.CodeInvalidOutput: internalError, plugin.CodeOutputTooLarge: internalError,
	plugin.CodeConflict: internalError, plugin.CodeOutcomeUnknown: internalError, plugin.CodeApprovalDenied: internalError, plugin.CodeApprovalExpired: internalError,
	plugin.CodeApprovalUsed: internalError, plugin.CodeApprovalSelf: internalError, plugin.CodeApprovalVoid: internalError,
	plugin.CodeServiceDenied: internalError, plugin.CodeEffectUndeclared: internalError, plugin.CodeEgressDenied: internalError,
	plugin.CodeOverloaded: internalError, plugin.CodeLimitExceeded: internalError, plugin.CodeIsolationUnavailable: internalError,
	plugin.CodeUnavailable: internalError, plugin.CodeCancelled: internalError, plugin.CodePluginError: internalError,
	plugin.CodeInternal: internalError, plugin.CodeLaunchFailed: internalError, plugin.CodeHandshakeFailed: internalError,
	plugin.CodeCrashed: internalError, plugin.CodeMalformedResponse: internalError, plugin.CodeToolNotExposed: internalError,
	plugin.CodeProtocolVersionMismatch: internalError, plugin.CodeCapabilityNotDeclared: internalError,
	plugin.CodeCapabilityNotAllowed: internalError,
}

const internalError = "INTERNAL_ERROR"

// Code returns the contract's code of an error.
func Code(err error) string {
	e := plugin.AsError(err)
	if e.Code == plugin.CodePluginError && e.PluginCode != "" {
		return e.PluginCode
	}
	return spellings[e.Code]
}
