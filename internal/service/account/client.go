package account

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Bounds of what is asked of a provider.
const (
	askTime   = 15 * time.Second // one request
	maxAnswer = 1 << 20          // bytes
	maxToken  = 16 << 10         // bytes
)

// newClient returns a client that follows no redirect, since what it sends are
// secrets, and reads no more than maxAnswer.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &http.Client{
		Transport:     bounded{transport},
		Timeout:       askTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type bounded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: maxAnswer}
	}
	return resp, err
}

var errLong = errors.New("the answer is longer than is read")

type body struct {
	io.ReadCloser
	left int
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// asking returns a context with which both libraries ask through the client.
func (a *Accounts) asking(ctx context.Context) context.Context {
	return context.WithValue(oidc.ClientContext(ctx, a.client), oauth2.HTTPClient, a.client)
}
