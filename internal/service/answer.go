package service

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A fetched is the value of http.fetch. The body is in exactly one of JSON,
// Body and BodyBase64.
type fetched struct {
	StatusCode int               `json:"status_code"`
	Headers    map[string]string `json:"headers"` // names in lower case; several of one name are joined
	JSON       jsontext.Value    `json:"json,omitzero"`
	Body       *string           `json:"body,omitzero"`
	BodyBase64 []byte            `json:"body_base64,omitzero"`
	URL        string            `json:"url"` // of the last request
	Truncated  bool              `json:"truncated"`
}

// answer reads a response into the value for the plugin.
func (x *exchange) answer(ctx context.Context, resp *http.Response) (*fetched, error) {
	defer resp.Body.Close()
	res := &fetched{StatusCode: resp.StatusCode, Headers: map[string]string{}, URL: x.url.String()}
	body, err := x.read(resp, res)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	x.received = len(body)
	for name, values := range resp.Header {
		separator := ", "
		if name == "Set-Cookie" { // which may hold commas
			separator = "\n"
		}
		res.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, separator), "\uFFFD")
	}
	switch {
	case x.fetch.as == "auto" && !res.Truncated && isJSON(resp.Header.Get("Content-Type"), body):
		res.JSON = body
	case x.fetch.as == "bytes" || !utf8.Valid(body):
		res.BodyBase64 = body
	default:
		text := string(body)
		res.Body = &text
	}
	return res, nil
}

// read returns the body, inflated, and no more of it than was asked for.
func (x *exchange) read(resp *http.Response, res *fetched) ([]byte, error) {
	if x.method == http.MethodHead {
		return []byte{}, nil
	}
	limit := x.fetch.max
	var body io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") && resp.ContentLength != 0 {
		// Gzip makes nothing much larger than it is, so a stream that goes on
		// without giving anything is cut too.
		inflated, err := gzip.NewReader(io.LimitReader(resp.Body, limit+limit/64+4<<10))
		if err != nil {
			return nil, x.broken(err)
		}
		body = inflated
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	} else if resp.ContentLength > limit && !x.fetch.cut {
		return nil, tooLong(limit)
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case int64(len(data)) > limit && !x.fetch.cut:
		return nil, tooLong(limit)
	case int64(len(data)) > limit:
		res.Truncated = true
		return data[:limit], nil
	case err != nil:
		return nil, x.broken(err)
	}
	return data, nil
}

func tooLong(limit int64) error {
	return plugin.Errorf(plugin.CodeLimitExceeded, "the body is longer than %d bytes; with max_bytes it is cut there, and truncated is true", limit)
}

func (x *exchange) broken(err error) error {
	what := "its answer broke off"
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		what = "its answer is not the gzip that it says it is"
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: x.url.Host + ": " + what, Retryable: x.reads(), Err: err}
}

// isJSON reports whether a body is of a JSON type and strict JSON, such as
// every plugin's language reads in one way.
func isJSON(contentType string, body []byte) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return false
	}
	return jsontext.Value(body).IsValid() && !protocol.TooDeep(body)
}
