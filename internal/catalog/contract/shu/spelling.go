package shu

import (
	"net/http"

	"github.com/mortise-dev/mortise/plugin"
)

// A spelling is a code of the host in the contract's words, with the HTTP status
// beside it.
type spelling struct {
	word string
	http int
}

// executeError is what went wrong while the plugin was at work, whatever it was.
const executeError = "plugin_execute_error"

// statusClientClosed is the status of a call that its caller gave up; no client
// receives the answer, and the record has it.
const statusClientClosed = 499

// spellings are the host's codes as the contract has them. A plugin's own codes
// are passed through.
var spellings = map[plugin.Code]spelling{
	plugin.CodeInvalidInput:   {"validation_error", http.StatusUnprocessableEntity},
	plugin.CodeInvalidOutput:  {"output_validation_error", http.StatusInternalServerError},
	plugin.CodeInputTooLarge:  {"input_too_large", http.StatusRequestEntityTooLarge},
	plugin.CodeOutputTooLarge: {"output_too_large", http.StatusRequestEntityTooLarge},

	plugin.CodeNotFound:        {"not_found", http.StatusNotFound},
	plugin.CodeUnauthenticated: {"unauthenticated", http.StatusUnauthorized},
	plugin.CodePolicyDenied:    {"not_found", http.StatusNotFound},
	plugin.CodeScopeDenied:     {"insufficient_scopes", http.StatusForbidden},
	plugin.CodeSignInRequired:  {"sign_in_required", http.StatusForbidden},
	plugin.CodeMissingSecrets:  {"missing_secrets", http.StatusForbidden},
	plugin.CodeMissingIdentity: {"insufficient_scopes", http.StatusForbidden},
	plugin.CodeDisabled:        {"not_found", http.StatusNotFound},
	plugin.CodeQuarantined:     {"not_found", http.StatusNotFound},
	plugin.CodeHookVetoed:      {"vetoed", http.StatusForbidden},
	plugin.CodeHookFailed:      {"vetoed", http.StatusForbidden},

	plugin.CodeApprovalDenied:  {"approval_denied", http.StatusForbidden},
	plugin.CodeApprovalSelf:    {"approval_denied", http.StatusForbidden},
	plugin.CodeApprovalExpired: {"approval_expired", http.StatusForbidden},
	plugin.CodeApprovalVoid:    {"approval_void", http.StatusConflict},
	plugin.CodeApprovalUsed:    {"approval_void", http.StatusConflict},
	plugin.CodeKeyConflict:     {"key_conflict", http.StatusConflict},
	plugin.CodeConflict:        {"conflict", http.StatusConflict},
	plugin.CodeNeedsContext:    {"needs_context", http.StatusConflict},

	plugin.CodeBudgetExceeded:       {"quota_exceeded", http.StatusTooManyRequests},
	plugin.CodeRateLimited:          {"rate_limited", http.StatusTooManyRequests},
	plugin.CodeOverloaded:           {"overloaded", http.StatusServiceUnavailable},
	plugin.CodeUnavailable:          {"unavailable", http.StatusServiceUnavailable},
	plugin.CodeIsolationUnavailable: {"unavailable", http.StatusServiceUnavailable},
	plugin.CodeCancelled:            {"cancelled", statusClientClosed},
	plugin.CodeOutcomeUnknown:       {"outcome_unknown", http.StatusBadGateway},

	plugin.CodeTimeout:                 {"timeout", http.StatusGatewayTimeout},
	plugin.CodeInternal:                {executeError, http.StatusInternalServerError},
	plugin.CodePluginError:             {executeError, http.StatusBadGateway},
	plugin.CodeDependencyMissing:       {executeError, http.StatusBadGateway},
	plugin.CodeServiceDenied:           {executeError, http.StatusBadGateway},
	plugin.CodeEffectUndeclared:        {executeError, http.StatusBadGateway},
	plugin.CodeEgressDenied:            {executeError, http.StatusBadGateway},
	plugin.CodeLimitExceeded:           {executeError, http.StatusBadGateway},
	plugin.CodeLaunchFailed:            {executeError, http.StatusBadGateway},
	plugin.CodeHandshakeFailed:         {executeError, http.StatusBadGateway},
	plugin.CodeCrashed:                 {executeError, http.StatusBadGateway},
	plugin.CodeMalformedResponse:       {executeError, http.StatusBadGateway},
	plugin.CodeToolNotExposed:          {executeError, http.StatusBadGateway},
	plugin.CodeProtocolVersionMismatch: {executeError, http.StatusBadGateway},
	plugin.CodeCapabilityNotDeclared:   {executeError, http.StatusBadGateway},
	plugin.CodeCapabilityNotAllowed:    {executeError, http.StatusBadGateway},
}

// Spelled returns the contract's word for a code of the host, and the HTTP status
// beside it.
func Spelled(code plugin.Code) (status int, word string, known bool) {
	s, known := spellings[code]
	return s.http, s.word, known
}
