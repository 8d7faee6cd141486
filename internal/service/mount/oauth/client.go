package oauth

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is asked of servers.
const (
	askTime   = 15 * time.Second
	maxAnswer = 1 << 20 // bytes
)

// Client returns a client for what signing in and renewing ask, on behalf of a plugin: over
// https, or to what an administrator granted the plugin on this machine or mapped; to no other
// address that is not public; without redirects, within bounds.
func Client(name string, grants egress.Grants, roots *x509.CertPool) *http.Client {
	dialer := &egress.Dialer{Plugin: name, Grants: grants}
	transport := func() *http.Transport {
		return &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
		}
	}
	r := &reach{name: name, grants: grants, public: transport(), mapped: transport()}
	if roots != nil {
		r.mapped.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return &http.Client{Transport: r, Timeout: askTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// A reach is the transport of a [Client].
type reach struct {
	name           string
	grants         egress.Grants
	public, mapped *http.Transport
}

// RoundTrip implements [http.RoundTripper].
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := egress.ParseURL(req.URL.String())
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !r.grants.Inside(r.name, u) {
		return nil, plugin.Errorf(plugin.CodeEgressDenied, "%s is asked over https alone; an administrator may allow this machine with egress: {loopback: [%s]} in mortise.yaml", u.Host, r.name)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "mortise/"+version.Host+" ("+r.name+")")
	next := r.public
	if name, _ := egress.Endpoint(u); r.grants.Mapped(name) {
		next = r.mapped
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" { // whatever the client above would do
		_ = resp.Body.Close()
		return nil, plugin.Errorf(plugin.CodeEgressDenied, "%s sends elsewhere, and redirects are not followed", u.Host)
	}
	resp.Body = &body{resp.Body, maxAnswer}
	return resp, nil
}

// A body is one of which only so many bytes are read.
type body struct {
	io.ReadCloser
	left int
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, plugin.Errorf(plugin.CodeOutputTooLarge, "an answer has more than %d MiB", maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
