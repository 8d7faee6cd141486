package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of trying again and of going on.
const (
	maxRetries   = 2 // of a whole fetch, where the plugin asks for them
	maxRedirects = 5
	maxPauses    = 5 * time.Second        // between all attempts of a fetch: a plugin that retries itself knows better
	backoff      = 250 * time.Millisecond // before the second attempt, and twice that before the third
)

// An exchange is one fetch on its way, from redirect to redirect. It belongs
// to one goroutine.
type exchange struct {
	fetch     *fetch
	hosts     []string
	transport http.RoundTripper
	wait      func(ctx context.Context, d time.Duration) error
	agent     string
	grants    egress.Grants

	credentials []credential
	hidden      *secret.Scrubber // takes them out of answers; nil where there are none
	local       bool             // the plugin may reach this machine
	left        bool             // a redirect led away from the host that the plugin addressed

	// The request that is next.
	url    *url.URL
	method string
	body   []byte
	header http.Header

	most     int // bytes of an answer as the plugin gets it
	attempts int
	paused   time.Duration // between them
	mapped   []string      // the hosts that were asked where an administrator led them
	received int
	effected int  // the status of the last answer to a request that may have changed something
	open     bool // a request that may have changed something went out and was not answered
}

// run follows redirects until there is an answer to give.
func (x *exchange) run(ctx context.Context) (*fetched, error) {
	for hops := 0; ; hops++ {
		resp, err := x.send(ctx)
		if err != nil {
			return nil, x.explained(err)
		}
		location := resp.Header.Get("Location")
		if !x.fetch.follow || !isRedirect(resp.StatusCode) || location == "" {
			res, err := x.answer(ctx, resp)
			if err != nil {
				return nil, x.explained(err)
			}
			return res, nil
		}
		discard(resp)
		if hops == maxRedirects {
			return nil, x.explained(plugin.Errorf(plugin.CodeUnavailable, "%s: more than %d redirects", fetchName, maxRedirects))
		}
		if err := x.redirect(resp.StatusCode, location); err != nil {
			return nil, x.explained(err)
		}
	}
}

func (x *exchange) reads() bool { return x.method == http.MethodGet || x.method == http.MethodHead }

// explained adds to an error that an earlier request of the exchange was
// answered, and so may have had its effect.
func (x *exchange) explained(err error) error {
	e := *plugin.AsError(err)
	e.Message = x.hidden.Text(e.Message)
	if !strings.HasPrefix(e.Message, fetchName) {
		e.Message = fetchName + ": " + e.Message
	}
	if x.effected != 0 {
		e.Retryable = false
		e.Message += fmt.Sprintf("; the request itself was answered with %d", x.effected)
		e.Details = fmt.Appendf(nil, `{"status_code":%d}`, x.effected)
	}
	return &e
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// keptHeaders may be told to a host that the plugin did not address. All
// others may be credentials, under whatever name.
var keptHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type", "Range", "User-Agent"}

// redirect makes the request that an answer asks for the next one, under the
// same rules as the first.
func (x *exchange) redirect(status int, location string) error {
	next, err := egress.Follow(x.url, location)
	if err != nil {
		return redirected(err)
	}
	if err := egress.Allow(x.hosts, next); err != nil {
		return redirected(err)
	}
	if err := x.carried(next); err != nil {
		return redirected(err)
	}
	// RFC 9110, 15.4: 307 and 308 keep the method; 303 asks for a GET, which
	// after 301 and 302 is what everybody sends.
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && !x.reads() {
		x.method, x.body = http.MethodGet, nil
		x.header.Del("Content-Type")
		x.header.Del("Content-Language")
	}
	if !sameOrigin(x.url, next) {
		x.left = true
		for name := range x.header {
			if !slices.Contains(keptHeaders, name) {
				delete(x.header, name)
			}
		}
	}
	x.url = next
	return nil
}

func redirected(err error) error {
	e := *plugin.AsError(err)
	e.Message = "a redirect is not followed: " + e.Message
	return &e
}

func sameOrigin(a, b *url.URL) bool {
	nameA, portA := egress.Endpoint(a)
	nameB, portB := egress.Endpoint(b)
	return a.Scheme == b.Scheme && nameA == nameB && portA == portB
}

// send makes the request, and again while it is safe and may help.
func (x *exchange) send(ctx context.Context) (*http.Response, error) {
	for {
		x.attempts++
		resp, retryable, err := x.once(ctx)
		if ctx.Err() != nil {
			if err == nil {
				discard(resp)
			}
			return nil, context.Cause(ctx)
		}
		pause, again := x.pause(ctx, resp, retryable)
		if !again {
			return resp, err
		}
		if err == nil {
			discard(resp)
		}
		if err := x.wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// pause decides whether to try again, and when.
func (x *exchange) pause(ctx context.Context, resp *http.Response, retryable bool) (time.Duration, bool) {
	if !x.reads() || x.attempts > x.fetch.retries {
		return 0, false
	}
	base := backoff << (x.attempts - 1)
	pause := base/2 + rand.N(base)
	if resp != nil {
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			return 0, false
		}
		if asked, given := egress.RetryAfter(resp.Header.Get("Retry-After")); given {
			pause = max(asked, pause)
		}
	} else if !retryable {
		return 0, false
	}
	if x.paused += pause; x.paused > maxPauses {
		return 0, false
	}
	deadline, _ := ctx.Deadline() // a fetch always has one
	return pause, time.Now().Add(pause).Before(deadline)
}

// once makes one request. retryable says of an error that another attempt of a
// GET may do better.
func (x *exchange) once(ctx context.Context) (resp *http.Response, retryable bool, err error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { connected = true },
		WroteRequest: func(httptrace.WroteRequestInfo) { fault.At("sent") },
	})
	var body io.Reader // a plain nil where there is none
	if x.body != nil {
		body = bytes.NewReader(x.body)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, x.url.String(), body)
	if err != nil {
		return nil, false, plugin.Errorf(plugin.CodeInvalidInput, "the request cannot be made: %w", err)
	}
	req.Header = x.header.Clone()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", x.agent)
	}
	req.Header.Set("Accept-Encoding", "gzip") // what body can inflate, whatever the plugin asked for
	if err := x.credited(req); err != nil {
		return nil, false, err
	}
	x.noteMapped()
	resp, err = x.transport.RoundTrip(req)
	fault.At("response")
	if err == nil && !x.reads() { // whatever becomes of the rest of the answer
		x.effected = resp.StatusCode
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, false, plugin.Errorf(plugin.CodeUnavailable, "%s wants to speak another protocol", x.url.Host)
	}
	if err == nil {
		return resp, false, nil
	}
	e := x.failure(err)
	if connected && !x.reads() {
		e.Retryable, x.open = false, true
		e.Message += "; whether it acted on the request is not known"
	}
	return nil, e.Retryable, e
}

// failure says what a transport's error means.
func (x *exchange) failure(err error) *plugin.Error {
	var ours *plugin.Error
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	host := x.url.Host
	switch {
	case errors.As(err, &ours): // of egress
		return &plugin.Error{Code: ours.Code, Message: ours.Message, Retryable: ours.Retryable, Err: err}
	case errors.As(err, &cert):
		return &plugin.Error{Code: plugin.CodeUnavailable, Message: host + ": its certificate is not accepted: " + clip(cert.Err.Error()), Err: err}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &plugin.Error{Code: plugin.CodeTimeout, Message: host + " did not answer in time", Retryable: true, Err: err}
	case errors.As(err, &op):
		return &plugin.Error{Code: plugin.CodeUnavailable, Message: host + " cannot be reached: " + clip(op.Err.Error()), Retryable: true, Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &plugin.Error{Code: plugin.CodeUnavailable, Message: host + " ended the connection without an answer", Retryable: true, Err: err}
	default:
		return &plugin.Error{Code: plugin.CodeUnavailable, Message: host + " did not answer properly: " + clip(err.Error()), Err: err}
	}
}

// clip keeps what another side wrote short and printable.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}

// discard reads the little that lets the connection be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}
