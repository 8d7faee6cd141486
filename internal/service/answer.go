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

	"github.com/mortise-dev/mortise/internal/base/budget"
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
	Failure    *httpFailure      `json:"failure,omitzero"` // of an answer of 400 and above
}

// answer reads a response into the value for the plugin.
func (x *exchange) answer(ctx context.Context, resp *http.Response) (*fetched, error) {
	defer resp.Body.Close()
	res := &fetched{StatusCode: resp.StatusCode, Headers: map[string]string{}, URL: x.hidden.Text(x.url.String())}
	ctx, cancel := context.WithCancelCause(ctx) // a reader that does not get on must not keep others waiting
	defer cancel(nil)
	body, err := x.read(ctx, cancel, resp, res)
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
		res.Headers[strings.ToLower(name)] = x.hidden.Text(strings.ToValidUTF8(strings.Join(values, separator), "\uFFFD"))
	}
	if resp.StatusCode >= http.StatusBadRequest {
		res.Failure = failureOf(resp.StatusCode, resp.Header, body)
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
func (x *exchange) read(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, res *fetched) ([]byte, error) {
	if x.method == http.MethodHead {
		return []byte{}, nil
	}
	// What is behind the end is read as well where it may be the rest of a
	// credential that the other side repeats.
	limit := x.fetch.max + x.margin()
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
	} else if resp.ContentLength > x.fetch.max && !x.fetch.cut {
		return nil, tooLong(x.fetch.max)
	}
	whole := resp.ContentLength // what it has at most
	if body != resp.Body || whole < 0 || whole > limit {
		whole = limit + 1
	}
	in := &intake{ctx: ctx, cancel: cancel, body: resp.Body, most: x.most}
	data, err := in.read(io.LimitReader(body, limit+1), int(whole))
	switch {
	case in.refused != nil:
		return nil, in.refused
	case int64(len(data)) > x.fetch.max && !x.fetch.cut:
		return nil, tooLong(x.fetch.max)
	case int64(len(data)) > x.fetch.max:
		res.Truncated = true
	case err != nil:
		return nil, x.broken(err)
	}
	if x.hidden == nil {
		return data[:min(int64(len(data)), x.fetch.max)], nil
	}
	complete := int64(len(data)) <= limit
	data = x.withoutCredentials(resp.Header.Get("Content-Type"), data)
	if !complete { // of what stands at its very end the rest is not known
		data = data[:max(0, int64(len(data))-x.margin())]
	}
	return data[:min(int64(len(data)), x.fetch.max)], nil
}

// margin is how many bytes behind the end of a body may belong to a credential
// that began before it, in whatever spelling.
func (x *exchange) margin() int64 {
	most := 0
	for _, c := range x.credentials {
		most = max(most, 12*len(c.value)) // as JSON in UTF-16
	}
	return int64(most)
}

// withoutCredentials takes out of a body what the other side repeats of the
// request.
func (x *exchange) withoutCredentials(contentType string, body []byte) []byte {
	if isJSON(contentType, body) {
		return x.hidden.JSON(body)
	}
	return []byte(x.hidden.Text(string(body)))
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
	weight := len(body)
	if weight > smallArgs {
		weight = budget.Weigh(body).Read()
	}
	strict := false // what has more names than can be compared is text as well
	_ = budget.Do(weight, func() error { strict = jsontext.Value(body).IsValid() && !protocol.TooDeep(body); return nil })
	return strict
}
