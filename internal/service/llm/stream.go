package llm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// most is how long an answer may be.
func (t *attempt) most() int {
	if t.stream {
		return maxStream
	}
	return maxAnswer
}

// events is a body that comes in events, with an empty line after each. It is
// bounded, and each event is. However it ends, its reader sees the end of a file
// and the attempt has the reason: of other errors one of the clients writes to the
// log by itself.
type events struct {
	io.ReadCloser
	attempt *attempt
	all     int  // bytes so far
	event   int  // of the event at hand
	words   bool // the line at hand has something in it
	ended   bool
}

func (b *events) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if b.tooLong(p[:n]) {
		b.attempt.large, b.ended = true, true
		return 0, io.EOF
	}
	if err != nil {
		b.attempt.cut, b.ended = b.attempt.cut || err != io.EOF, true
		return n, io.EOF
	}
	return n, nil
}

// tooLong counts what came.
func (b *events) tooLong(p []byte) bool {
	b.all += len(p)
	for len(p) > 0 && b.event <= maxAnswer {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		b.event += len(line)
		b.words = b.words || len(bytes.Trim(line, "\r")) > 0
		if ended {
			b.event++
			if !b.words {
				b.event = 0
			}
			b.words = false
		}
		p = rest
	}
	return b.event > maxAnswer || b.all > maxStream
}

// broke says what a stream comes down to that ended before its answer did. begun
// is whether some of the answer came, complaint what the provider said instead
// of the rest, if it did.
func (t *attempt) broke(ctx context.Context, err error, begun bool, complaint []byte) *Error {
	if complaint != nil && t.status/100 == 2 && ctx.Err() == nil && !t.large {
		e := &Error{Status: t.status, Message: "its answer broke off", Sent: true, Err: err}
		t.judge(e, likeStatus(complaint), complaint)
		return e
	}
	t.cut = t.cut || begun && err == nil
	return t.fail(ctx, err)
}

// likeStatus is the status that an answer with this complaint would have had
// before its stream began.
func likeStatus(raw []byte) int {
	body, _ := complained(raw)
	code := strings.Trim(string(body.Error.Code), `"`)
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	for _, word := range []string{body.Error.Type, body.Error.Status, code} {
		switch word {
		case "authentication_error", "permission_error", "UNAUTHENTICATED", "PERMISSION_DENIED":
			return http.StatusForbidden
		case "billing_error", "insufficient_quota":
			return http.StatusPaymentRequired
		case "rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED":
			return http.StatusTooManyRequests
		case "request_too_large":
			return http.StatusRequestEntityTooLarge
		case "invalid_request_error", "not_found_error", "INVALID_ARGUMENT", "NOT_FOUND", "content_filter", "content_policy_violation":
			return http.StatusBadRequest
		}
	}
	return http.StatusInternalServerError // it took the request, and failed at it
}
