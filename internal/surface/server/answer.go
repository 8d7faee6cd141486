package server

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// statusOf returns the status that an error is answered with.
func statusOf(err error) int {
	var own refusal
	if errors.As(err, &own) {
		return own.status
	}
	return rest.StatusOf(host.AsError(err).Code)
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	e, status := host.AsError(err), statusOf(err)
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
