package mortise

import "github.com/go-json-experiment/json/jsontext"

// An HTTPRequest is what [Call.HTTPFetch] asks for. Only URL is needed; JSON,
// Body and BodyBase64 exclude each other. docs/services.md has the limits.
type HTTPRequest struct {
	Method          string            `json:"method,omitempty"` // GET where it is empty
	URL             string            `json:"url"`
	Headers         map[string]string `json:"headers,omitempty"`
	Secrets         map[string]Secret `json:"-"`                // headers that the host fills in
	Params          map[string]any    `json:"params,omitempty"` // of the query
	JSON            any               `json:"json,omitzero"`
	Body            string            `json:"body,omitzero"`
	BodyBase64      []byte            `json:"body_base64,omitzero"`
	As              string            `json:"as,omitempty"`              // auto, text or bytes
	TimeoutSeconds  float64           `json:"timeout_seconds,omitzero"`  // for everything, at most 600; 30 where it is 0
	FollowRedirects *bool             `json:"follow_redirects,omitzero"` // true where it is nil
	Retries         int               `json:"retries,omitzero"`          // of a GET or HEAD, at most 2
	MaxBytes        int64             `json:"max_bytes,omitzero"`        // of the body, which is cut there; 8 MiB where it is 0, and then more is an error
}

// An HTTPResponse is the answer. A status such as 404 or 500 is one too.
type HTTPResponse struct {
	StatusCode int               `json:"status_code"`
	Headers    map[string]string `json:"headers"` // names in lower case
	JSON       jsontext.Value    `json:"json"`    // one of the three
	Body       string            `json:"body"`
	BodyBase64 []byte            `json:"body_base64"`
	URL        string            `json:"url"`       // that was asked last
	Truncated  bool              `json:"truncated"` // MaxBytes of it are here
	Failure    *HTTPFailure      `json:"failure"`   // of a status of 400 and above
}

// An HTTPFailure is what a status of 400 and above comes down to.
type HTTPFailure struct {
	Category     string  `json:"category"` // auth_error, forbidden, not_found, gone, rate_limited, server_error, client_error
	Retryable    bool    `json:"retryable"`
	RetryAfterMS *int64  `json:"retry_after_ms"` // as the provider asks, at most a day; nil where it does not say
	Message      *string `json:"provider_message"`
	Code         *string `json:"provider_error_code"`
}

// A Secret is the value of a header that the host fills in, so that the plugin
// does not hold it.
type Secret struct {
	Name   string `json:"$secret"`
	Format string `json:"format,omitempty"` // "Bearer {}"; the secret alone where it is empty
}

// HTTPFetch has the host make a request to a host that the manifest declares.
// It needs the capability "http" and, where it is not GET or HEAD, an operator
// with the effect "http_write". Where there is no answer the code is unavailable
// or timeout, egress_denied for a host that may not be reached, and
// effect_undeclared for a method that the operation may not use.
func (c *Call) HTTPFetch(request HTTPRequest) (response HTTPResponse, err error) {
	headers := map[string]any{}
	for name, value := range request.Headers {
		headers[name] = value
	}
	for name, secret := range request.Secrets {
		headers[name] = secret
	}
	type plain HTTPRequest
	err = c.Service("http.fetch", struct {
		plain
		Headers map[string]any `json:"headers,omitempty"`
	}{plain(request), headers}, &response)
	return response, err
}

// HTTPGet fetches a URL; see [Call.HTTPFetch].
func (c *Call) HTTPGet(url string) (HTTPResponse, error) {
	return c.HTTPFetch(HTTPRequest{URL: url})
}

// HTTPPost posts a value as JSON; see [Call.HTTPFetch].
func (c *Call) HTTPPost(url string, value any) (HTTPResponse, error) {
	return c.HTTPFetch(HTTPRequest{Method: "POST", URL: url, JSON: value})
}
