package rest

import (
	"net/http"

	"github.com/mortise-dev/mortise/plugin"
)

// statuses maps every code to the status it is answered with; a test walks the
// codes.
var statuses = map[plugin.Code]int{
	plugin.CodeUnauthenticated: http.StatusUnauthorized,

	plugin.CodeNotFound: http.StatusNotFound, plugin.CodeDisabled: http.StatusConflict, plugin.CodeQuarantined: http.StatusConflict,

	plugin.CodeScopeDenied: http.StatusForbidden, plugin.CodePolicyDenied: http.StatusForbidden, plugin.CodeHookVetoed: http.StatusForbidden,
	plugin.CodeServiceDenied: http.StatusForbidden, plugin.CodeEffectUndeclared: http.StatusForbidden, plugin.CodeEgressDenied: http.StatusForbidden,
	plugin.CodeApprovalDenied: http.StatusForbidden, plugin.CodeApprovalExpired: http.StatusForbidden, plugin.CodeApprovalUsed: http.StatusForbidden,
	plugin.CodeSignInRequired: http.StatusForbidden, plugin.CodeApprovalSelf: http.StatusForbidden, plugin.CodeApprovalVoid: http.StatusForbidden,

	plugin.CodeInvalidInput: http.StatusUnprocessableEntity, plugin.CodeNeedsContext: http.StatusUnprocessableEntity,
	plugin.CodeMissingSecrets: http.StatusUnprocessableEntity, plugin.CodeMissingIdentity: http.StatusUnprocessableEntity,
	plugin.CodeInputTooLarge: http.StatusRequestEntityTooLarge,

	plugin.CodeKeyConflict: http.StatusConflict, plugin.CodeOutcomeUnknown: http.StatusConflict, plugin.CodeCancelled: http.StatusConflict,
	plugin.CodeConflict: http.StatusPreconditionFailed,

	plugin.CodeBudgetExceeded: http.StatusTooManyRequests, plugin.CodeRateLimited: http.StatusTooManyRequests,

	plugin.CodeOverloaded: http.StatusServiceUnavailable, plugin.CodeUnavailable: http.StatusServiceUnavailable,
	plugin.CodeIsolationUnavailable: http.StatusServiceUnavailable, plugin.CodeDependencyMissing: http.StatusServiceUnavailable,

	plugin.CodeTimeout: http.StatusGatewayTimeout,

	plugin.CodeInternal: http.StatusInternalServerError, plugin.CodeHookFailed: http.StatusInternalServerError,

	plugin.CodeInvalidOutput: http.StatusBadGateway, plugin.CodeOutputTooLarge: http.StatusBadGateway, plugin.CodePluginError: http.StatusBadGateway,
	plugin.CodeLimitExceeded: http.StatusBadGateway, plugin.CodeLaunchFailed: http.StatusBadGateway, plugin.CodeHandshakeFailed: http.StatusBadGateway,
	plugin.CodeCrashed: http.StatusBadGateway, plugin.CodeMalformedResponse: http.StatusBadGateway, plugin.CodeToolNotExposed: http.StatusBadGateway,
	plugin.CodeProtocolVersionMismatch: http.StatusBadGateway, plugin.CodeCapabilityNotDeclared: http.StatusBadGateway,
	plugin.CodeCapabilityNotAllowed: http.StatusBadGateway,
}

// StatusOf returns the status that a code is answered with, wherever the host answers
// over HTTP.
func StatusOf(code plugin.Code) int {
	if status, found := statuses[code]; found {
		return status
	}
	return http.StatusInternalServerError
}

// ofRun are the codes of calls that ran and failed, or whose plugin could not run: the
// answer is the outcome of the call. All other codes are refusals of the host.
var ofRun = map[plugin.Code]bool{
	plugin.CodePluginError: true, plugin.CodeTimeout: true, plugin.CodeCancelled: true, plugin.CodeCrashed: true,
	plugin.CodeInvalidOutput: true, plugin.CodeOutputTooLarge: true, plugin.CodeLimitExceeded: true, plugin.CodeMalformedResponse: true,
	plugin.CodeServiceDenied: true, plugin.CodeEffectUndeclared: true, plugin.CodeEgressDenied: true,
	plugin.CodeLaunchFailed: true, plugin.CodeHandshakeFailed: true, plugin.CodeToolNotExposed: true,
	plugin.CodeProtocolVersionMismatch: true, plugin.CodeCapabilityNotDeclared: true, plugin.CodeCapabilityNotAllowed: true,
}
