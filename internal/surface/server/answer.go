package server

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

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
	plugin.CodeApprovalSelf: http.StatusForbidden, plugin.CodeApprovalVoid: http.StatusForbidden,

	plugin.CodeInvalidInput: http.StatusUnprocessableEntity, plugin.CodeNeedsContext: http.StatusUnprocessableEntity,
	plugin.CodeMissingSecrets: http.StatusUnprocessableEntity, plugin.CodeMissingIdentity: http.StatusUnprocessableEntity,
	plugin.CodeInputTooLarge: http.StatusRequestEntityTooLarge,

	plugin.CodeKeyConflict: http.StatusConflict, plugin.CodeOutcomeUnknown: http.StatusConflict, plugin.CodeCancelled: http.StatusConflict,

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

// statusOf returns the status that an error is answered with.
func statusOf(err error) int {
	var own refusal
	if errors.As(err, &own) {
		return own.status
	}
	if status, found := statuses[plugin.CodeOf(err)]; found {
		return status
	}
	return http.StatusInternalServerError
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	e, status := plugin.AsError(err), statusOf(err)
	message := e.Message
	if status >= http.StatusInternalServerError && e.Code != plugin.CodeOverloaded {
		message = "the host cannot take this now; its log says why" // to the people who may know
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(math.Ceil(e.RetryAfter.Seconds())), 10))
	}
	write(w, status, errorBody(e.Code, message))
}

func errorBody(code plugin.Code, message string) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": message}}
}

// write writes one JSON object. Its headers forbid caching and content sniffing.
func write(w http.ResponseWriter, status int, body map[string]any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":""}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client may be gone
}
