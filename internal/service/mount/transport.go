package mount

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/egress/proxy"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what a server sends.
const (
	maxMessageBytes = 16 << 20 // of one message
	maxAnswerBytes  = 64 << 20 // of one answer over HTTP, which may be a stream of messages

	resumes    = 2   // attempts to go on with a stream that ended before its answer, which sends no call again
	maxResumes = 100 // streams that are gone on with between two messages of the host
)

// transport returns the way to the server, and what ends it.
func (s *server) transport(ctx context.Context) (sdk.Transport, func(), error) {
	if s.manifest.Runner.URL != "" {
		return s.overHTTP(ctx)
	}
	return s.overStdio(ctx)
}

// overStdio starts the server's program in the sandbox.
func (s *server) overStdio(ctx context.Context) (sdk.Transport, func(), error) {
	var env []string
	s.secrets = nil
	for name, value := range s.manifest.Runner.Env {
		text := value.Text
		if value.Secret != "" {
			var err error
			if text, err = s.secret(ctx, value.Secret); err != nil {
				return nil, nil, err
			}
			if text != "" {
				s.secrets = append(s.secrets, text)
			}
		}
		if strings.ContainsRune(text, 0) {
			return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "the value of %s has a zero byte", name)
		}
		env = append(env, name+"="+text)
	}
	hosts := s.runner.opts.Egress.HostsOf(s.manifest.Name, s.manifest.HTTP.Hosts)
	if len(hosts) > 0 {
		for name, value := range networked() {
			if _, set := s.manifest.Runner.Env[name]; !set {
				env = append(env, name+"="+value)
			}
		}
	}
	slices.Sort(env)
	log := s.runner.opts.Log.With("plugin", s.manifest.Name+"@"+s.manifest.Version)
	p, err := s.runner.opts.Processes.Program(ctx, s.pkg, s.manifest, process.Foreign{
		Env: env, Proxy: len(hosts) > 0, Log: func(line string) { log.Info(s.without(line)) },
	})
	if err != nil {
		return nil, nil, err
	}
	s.program, s.proxy = p, nil
	stop := p.Close
	if p.Proxy != nil {
		serving := proxy.Serve(p.Proxy, proxy.Options{
			Hosts: hosts, Dialer: &egress.Dialer{Plugin: s.manifest.Name, Grants: s.runner.opts.Egress}, Refused: s.refused, Log: log,
		})
		s.proxy, stop = serving, func() { p.Close(); serving.Close() }
	}
	return &sdk.IOTransport{Reader: io.NopCloser(p.Stdout), Writer: p.Stdin, MaxLineLength: maxMessageBytes}, stop, nil
}

// overHTTP returns the way to a server at a URL. Its session's requests go through the rules
// of egress, and redirects are not followed.
func (s *server) overHTTP(ctx context.Context) (sdk.Transport, func(), error) {
	m := s.manifest
	hosts := s.runner.opts.Egress.HostsOf(m.Name, m.HTTP.Hosts)
	u, err := egress.ParseURL(m.Runner.URL)
	if err == nil {
		err = egress.Allow(hosts, u)
	}
	if err != nil {
		return nil, nil, err
	}
	name, _ := egress.Endpoint(u)
	dialer := &egress.Dialer{Plugin: m.Name, Grants: s.runner.opts.Egress}
	base := &http.Transport{
		Proxy:                  nil, // HTTP_PROXY and its like are not asked
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an answer is as large as it is
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        time.Minute,
	}
	if s.runner.opts.Egress.Mapped(name) && s.runner.opts.Roots != nil {
		base.TLSClientConfig = &tls.Config{RootCAs: s.runner.opts.Roots}
	}
	client := &http.Client{
		Transport:     &outgoing{server: s, base: base, hosts: hosts},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &sdk.StreamableClientTransport{Endpoint: u.String(), HTTPClient: client, MaxRetries: resumes, MaxEventSize: maxMessageBytes, DisableStandaloneSSE: true}, base.CloseIdleConnections, nil
}

// An outgoing is the transport of the requests to one server: it inserts credentials and
// bounds what comes back.
type outgoing struct {
	server *server
	base   http.RoundTripper
	hosts  []string

	resumed atomic.Int32 // streams since the last message
}

// RoundTrip implements [http.RoundTripper].
func (o *outgoing) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := egress.Allow(o.hosts, req.URL); err != nil {
		return nil, &fate{err, false}
	}
	if req.Method != http.MethodGet {
		o.resumed.Store(0)
	} else if o.resumed.Add(1) > maxResumes {
		return nil, &fate{plugin.Errorf(plugin.CodeLimitExceeded, "its server ended a stream before its answer more than %d times", maxResumes), true}
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "mortise/"+version.Host+" ("+o.server.manifest.Name+")")
	for _, in := range o.server.manifest.HTTP.Inject {
		if err := o.insert(req, in); err != nil {
			return nil, &fate{err, false}
		}
	}
	var resp *http.Response
	var err error
	signs := o.server.manifest.Runner.OAuth != nil
	if signs {
		resp, err = o.signed(req, o.send)
	} else {
		resp, err = o.send(req)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		_ = resp.Body.Close()
		next := "http.inject in the manifest says which secret it gets, and runner.oauth that someone signs in"
		if signs {
			next = "who signed in may not do that there"
		}
		return nil, &fate{plugin.Errorf(plugin.CodeUnavailable, "its server answered %d: it takes a credential, or another one; %s", resp.StatusCode, next), false}
	}
	if resp.StatusCode == http.StatusNotFound && req.Method == http.MethodPost && req.Header.Get(sessionHeader) != "" {
		_ = resp.Body.Close()
		return nil, &fate{errSessionLost, false}
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswerBytes}
	return resp, nil
}

// sessionHeader has the id that a server gave a session. A server that has ended a session
// answers requests with its id with 404, whatever the body says, and takes none of them.
const sessionHeader = "Mcp-Session-Id"

var errSessionLost = &plugin.Error{Code: plugin.CodeUnavailable, Retryable: true, RetryAfter: time.Second, Message: "its server no longer knows the session that it gave out (404)"}

// send sends a request. Its error is a [fate].
func (o *outgoing) send(req *http.Request) (*http.Response, error) {
	var written atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }}
	resp, err := o.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, &fate{err, written.Load()}
	}
	return resp, nil
}

// insert puts a credential into a request, where it belongs to its host.
func (o *outgoing) insert(req *http.Request, in plugin.Injection) error {
	if in.Header == "" || in.Secret == "" || egress.Allow([]string{in.Host}, req.URL) != nil {
		return nil
	}
	if req.URL.Scheme != "https" && !o.inside(req.URL) {
		return plugin.Errorf(plugin.CodeEgressDenied, "a credential for %s is sent over https alone, or to a host that an administrator mapped", req.URL.Host)
	}
	value, err := o.server.secret(req.Context(), in.Secret)
	if plugin.CodeOf(err) == plugin.CodeMissingSecrets && in.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	if in.Format != "" {
		value = strings.Replace(in.Format, "{}", value, 1)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return plugin.Errorf(plugin.CodeUnavailable, "the secret %s has a control character and cannot be sent; set it again", in.Secret)
	}
	req.Header.Set(in.Header, value)
	return nil
}

// inside reports whether the way to a URL does not leave what the administrator answers for.
func (o *outgoing) inside(u *url.URL) bool {
	return o.server.runner.opts.Egress.Inside(o.server.manifest.Name, u)
}

// secret returns a secret that was set for this plugin.
func (s *server) secret(ctx context.Context, name string) (string, error) {
	value, found, err := s.runner.opts.Secret(ctx, s.tenant, s.manifest.Name, name)
	if err == nil && !found {
		err = plugin.Errorf(plugin.CodeMissingSecrets, "the secret %s, which its server gets, is not set; 'mortise secrets set %s --system --plugin %s' sets it", name, name, s.manifest.Name)
	}
	return value, err
}

// A bounded is a body of which only so many bytes are read.
type bounded struct {
	io.ReadCloser
	left  int64
	ended atomic.Bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, plugin.Errorf(plugin.CodeOutputTooLarge, "its server's answer has more than %d MiB", maxAnswerBytes>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}

// Bounds of what is read of a stream after its answer, so that the connection can be used again.
const (
	restBytes = 4 << 10
	restTime  = 100 * time.Millisecond
)

// Close ends a stream that has had its answer. The server ends it too, a moment later.
func (b *bounded) Close() error {
	if b.ended.Load() {
		return b.ReadCloser.Close()
	}
	go func() {
		late := time.AfterFunc(restTime, func() { _ = b.ReadCloser.Close() })
		_, _ = io.CopyN(io.Discard, b.ReadCloser, restBytes)
		late.Stop()
		_ = b.ReadCloser.Close()
	}()
	return nil
}
