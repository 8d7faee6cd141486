package mortise

import "github.com/go-json-experiment/json/jsontext"

// An HTTPRequest is what [Call.HTTPFetch] asks for. Only URL is needed; JSON,
// Body and BodyBase64 exclude each other.
type HTTPRequest struct {
	Method          string            `json:"method,omitempty"` // GET where it is empty
	URL             string            `json:"url"`
	Headers         map[string]string `json:"headers,omitempty"`
	Params          map[string]any    `json:"params,omitempty"` // of the query
	JSON            any               `json:"json,omitzero"`
	Body            string            `json:"body,omitzero"`
	BodyBase64      []byte            `json:"body_base64,omitzero"`
	As              string            `json:"as,omitempty"` // auto, text or bytes
	TimeoutSeconds  float64           `json:"timeout_seconds,omitzero"`
	FollowRedirects *bool             `json:"follow_redirects,omitzero"` // true where it is nil
	MaxBytes        int64             `json:"max_bytes,omitzero"`
}

// An HTTPResponse is the answer. A status such as 404 or 500 is one too.
type HTTPResponse struct {
	StatusCode int               `json:"status_code"`
	Headers    map[string]string `json:"headers"` // names in lower case
	JSON       jsontext.Value    `json:"json"`    // one of the three
	Body       string            `json:"body"`
	BodyBase64 []byte            `json:"body_base64"`
	URL        string            `json:"url"`
	Truncated  bool              `json:"truncated"`
}

// HTTPFetch has the host make a request to a host that the manifest declares.
// It needs the capability "http" and, where it is not GET or HEAD, an operator
// with the effect "http_write".
func (c *Call) HTTPFetch(request HTTPRequest) (response HTTPResponse, err error) {
	err = c.Service("http.fetch", request, &response)
	return response, err
}

// HTTPGet fetches a URL.
func (c *Call) HTTPGet(url string) (HTTPResponse, error) {
	return c.HTTPFetch(HTTPRequest{URL: url})
}

// HTTPPost posts a value as JSON.
func (c *Call) HTTPPost(url string, value any) (HTTPResponse, error) {
	return c.HTTPFetch(HTTPRequest{Method: "POST", URL: url, JSON: value})
}
