// Command write_outcome is the plugin ExternalSystem.WriteOutcome: it posts
// the outcome of a request to the system that the request came from. Adapters
// ask for it, because they may not write themselves.
package main

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const (
	name    = "ExternalSystem.WriteOutcome"
	version = "1.0.0"
	scope   = "outcome:write"
)

func main() { newPlugin().Run() }

func newPlugin() *mortise.Plugin {
	p := mortise.New(name, version)
	p.Capabilities = []string{"http"}
	mortise.Operator(p, name, "Write the outcome of a request to the system that it came from.", write,
		mortise.Effects("http_write"), mortise.PolicyTags("external_write"), mortise.Permissions(scope),
		mortise.Brokered(), mortise.WithPreview(preview))
	return p
}

// An outcome is how a request ended, for the system that made it.
type outcome struct {
	Reference string         `json:"reference" doc:"what that system knows the request by"`
	Status    string         `json:"status" doc:"succeeded, failed or in_progress"`
	Text      string         `json:"text,omitempty"`
	Data      jsontext.Value `json:"data,omitzero"`
}

type input struct {
	URL     string  `json:"url"`
	Outcome outcome `json:"outcome"`
}

type written struct {
	StatusCode int    `json:"status_code"`
	Reference  string `json:"reference"`
}

// shown is what a person reads before they agree.
type shown struct {
	Request string  `json:"request"`
	Outcome outcome `json:"outcome"`
}

// write posts the outcome once. The host gives the request a key, in the header
// that the manifest names (http.idempotency): by it the other side can tell a
// repetition, so that the host may repeat what was never answered.
func write(c *mortise.Call, in input) (written, error) {
	if err := permitted(c.About().Auth.Scopes); err != nil {
		return written{}, err
	}
	answer, err := c.HTTPFetch(mortise.HTTPRequest{
		Method: "POST", URL: in.URL, JSON: in.Outcome, FollowRedirects: new(bool), MaxBytes: 64 << 10,
	})
	var refused *mortise.ServiceError
	switch {
	case errors.As(err, &refused):
		return written{}, mortise.Errorf(refused.Code, "%s", refused.Message)
	case err != nil:
		return written{}, err
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		err := mortise.Errorf("SYSTEM_REFUSED", "the system answered %d to the outcome of %s", answer.StatusCode, in.Outcome.Reference)
		err.Details = map[string]int{"status": answer.StatusCode}
		return written{}, err
	}
	return written{answer.StatusCode, in.Outcome.Reference}, nil
}

// preview shows what write would post.
func preview(c *mortise.Call, in input) (shown, error) {
	if err := permitted(c.About().Auth.Scopes); err != nil {
		return shown{}, err
	}
	return shown{"POST " + in.URL, in.Outcome}, nil
}

// permitted asks again what the host has asked already: an operator enforces
// its scopes itself (kernel contracts, 5.3.4 E).
func permitted(scopes []string) error {
	if !slices.Contains(scopes, scope) && !slices.Contains(scopes, "*") {
		return mortise.Errorf("SCOPE_DENIED", "writing an outcome needs the scope %s", scope)
	}
	return nil
}
