package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what comes back.
const (
	maxAnswer  = 8 << 20  // also of one event of a stream
	maxStream  = 32 << 20 // an event has some hundred bytes around a word or two
	maxFailure = 64 << 10
	maxHeader  = 64 << 10
)

// Transport is how hosts reach providers: over the proxy that the environment
// names, if it names one.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    4,
		MaxIdleConns:           16,
		IdleConnTimeout:        20 * time.Second,
	}
}

// An attempt is one HTTP request to a provider: what was sent and received. The clients of
// the providers report it in different ways. An attempt must be used once.
type attempt struct {
	over   http.RoundTripper
	key    string // that no text may repeat
	stream bool   // the answer comes in events

	began   atomic.Bool // a client has used it
	sent    atomic.Bool // something of the request was written
	status  int
	header  http.Header
	failure []byte // the body of an answer that is none
	large   bool   // the answer was longer than is read
	cut     bool   // the answer broke off
}

var (
	errTwice     = errors.New("the client sent a second request")
	errRedirect  = errors.New("the provider redirects")
	errLarge     = errors.New("the answer is too large")
	errNoAnswer  = errors.New("there is no answer in it")
	errComplaint = errors.New("the provider complains amid its answer")
)

// client returns an HTTP client for this attempt.
func (t *attempt) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}
}

// RoundTrip implements [http.RoundTripper].
func (t *attempt) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.began.CompareAndSwap(false, true) {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errTwice
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { t.sent.Store(true) }}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	resp, err := t.over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	t.status, t.header = resp.StatusCode, resp.Header
	if resp.StatusCode/100 != 2 {
		t.failure, _ = io.ReadAll(io.LimitReader(resp.Body, maxFailure))
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(t.failure))
		return resp, nil
	}
	if t.stream {
		resp.Body = &events{ReadCloser: resp.Body, attempt: t}
	} else {
		resp.Body = &bounded{resp.Body, maxAnswer, t}
	}
	return resp, nil
}

// A bounded body ends with an error where it is too long.
type bounded struct {
	io.ReadCloser
	left    int64
	attempt *attempt
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.attempt.large = true
		return 0, errLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	if b.left < 0 {
		b.attempt.large = true
		return n + int(b.left), errLarge
	}
	b.attempt.cut = b.attempt.cut || err != nil && err != io.EOF
	return n, err
}

// fail returns the error of an attempt without a reply.
func (t *attempt) fail(ctx context.Context, err error) *Error {
	e := &Error{Status: t.status, Err: err}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		e.Kind, e.Message, e.Sent = Cancelled, "the caller cancelled the request", t.sent.Load()
	case ctx.Err() != nil:
		e.Kind, e.Message, e.Sent = Timeout, "no whole answer came in time", t.sent.Load()
	case t.large:
		e.Kind, e.Message, e.Sent = TooLarge, "the answer has more than "+strconv.Itoa(t.most()>>20)+" MiB", true
	case t.status == 0:
		e.Kind, e.Message, e.Sent = Unreachable, "no answer came: "+said(cause(err), t.key), t.sent.Load()
	case t.status/100 == 2 && t.cut:
		e.Kind, e.Message, e.Sent = Unreachable, "its answer broke off", true
	case t.status/100 == 2:
		e.Kind, e.Message, e.Sent = Malformed, "what came back is no answer of this provider; look at base_url", true
	default:
		e.Message, e.RetryAfter = "it answered "+strconv.Itoa(t.status), retryAfter(t.header, time.Now())
		t.judge(e, t.status, t.failure)
	}
	return e
}

// cause is the innermost of an error: what is around it repeats the address.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// caught turns a client's panic over what came back into a failure. It is
// deferred.
func (t *attempt) caught(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		*err = t.fail(ctx, fmt.Errorf("the client panicked: %v", p))
	}
}

// A complaint is how all three providers say what went wrong.
type complaint struct {
	Error struct {
		Message string         `json:"message"`
		Type    string         `json:"type"`
		Status  string         `json:"status"` // of Gemini
		Code    jsontext.Value `json:"code"`
		Details []struct {
			Delay      string `json:"retryDelay"` // of Gemini, such as 17s
			Violations []struct {
				Quota string `json:"quotaId"`
			} `json:"violations"`
		} `json:"details"`
	} `json:"error"`
}

// complained reads a complaint.
func complained(raw []byte) (c complaint, ok bool) {
	raw = bytes.TrimSpace(raw)
	if n := len(raw); n > 1 && raw[0] == '[' && raw[n-1] == ']' { // as Gemini does now and then
		raw = raw[1 : n-1]
	}
	ok = json.Unmarshal(raw, &c, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
	return c, ok
}

// judge reads an answer whose status is no success, and adds to e what it says.
func (t *attempt) judge(e *Error, status int, raw []byte) {
	body, ok := complained(raw)
	if ok && body.Error.Message != "" {
		e.Message += ": " + said(body.Error.Message, t.key)
	}
	code, daily := strings.Trim(string(body.Error.Code), `"`), false
	for _, detail := range body.Error.Details {
		if d, err := time.ParseDuration(detail.Delay); err == nil && d > 0 && e.RetryAfter == 0 {
			e.RetryAfter = d
		}
		for _, v := range detail.Violations {
			daily = daily || strings.Contains(v.Quota, "PerDay")
		}
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind = Auth
	case status == http.StatusPaymentRequired, code == "insufficient_quota", body.Error.Type == "insufficient_quota", body.Error.Type == "billing_error", daily:
		e.Kind = Quota
	case status == http.StatusTooManyRequests:
		e.Kind = Pace
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		e.Kind = Overloaded
	case status == http.StatusRequestEntityTooLarge:
		e.Kind = TooLarge
	case code == "content_filter", code == "content_policy_violation":
		e.Kind = Refused
	case status/100 == 3:
		e.Kind, e.Message = BadRequest, e.Message+": it redirects, which is not followed; look at base_url"
	default:
		e.Kind = BadRequest
	}
}

// retryAfter reads what a provider asks to wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
