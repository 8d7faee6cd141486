package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of looking at a server.
const (
	askTime    = 15 * time.Second // for one request
	streamTime = 5 * time.Second  // for the first bytes of a stream, which the host sends at once
	serverBody = 4 << 20          // bytes of an answer
	smallCalls = 5                // that are timed
	mostSkew   = 5 * time.Second  // between the clocks
)

// The headers with which a host says who it is, on its document alone.
const (
	versionHeader = "X-Mortise-Version"
	documentPath  = "/api/v1/openapi.json"
)

// A Server is a host that is looked at over HTTP.
type Server struct {
	URL   string // http://HOST or https://HOST, without a path
	Token string // an API token with the scope read; "" for none
	Owner bool   // it is the owner's socket, where no token is needed

	// Dial reaches it in the place of the network; it may be nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// ExamineServer returns what was found of a server, up to what stands in the way of looking
// further. It changes nothing there. The error is that the address is none.
func ExamineServer(ctx context.Context, s Server) ([]Finding, error) {
	if err := CheckServer(s.URL); err != nil {
		return nil, err
	}
	over := &http.Transport{DialContext: s.Dial, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if s.Dial != nil {
		over.Proxy = nil
	}
	defer over.CloseIdleConnections()
	v := &visit{Server: s, base: strings.TrimSuffix(s.URL, "/"), over: over}
	if !v.reach(ctx) {
		return v.found, nil
	}
	v.ready(ctx)
	if v.knows(ctx) {
		v.small(ctx)
		v.stream(ctx)
	}
	return v.found, nil
}

// CheckServer refuses what is no address of a host.
func CheckServer(address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.RawQuery != "" || at.User != nil || at.Fragment != "" {
		return fmt.Errorf("%.200q is no address of a host; write one like https://mortise.example.com", address)
	}
	return nil
}

// A visit is one look at a server.
type visit struct {
	Server
	findings
	base string
	over http.RoundTripper
}

// ask sends a request. The answer's body is read whole where read is not nil.
func (v *visit) ask(ctx context.Context, path string, read *[]byte, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return nil, err
	}
	if v.Token != "" {
		r.Header.Set("Authorization", "Bearer "+v.Token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := v.over.RoundTrip(r) // which follows no redirect: a token is for the host that was named
	if err != nil || read == nil {
		return resp, err
	}
	defer resp.Body.Close()
	*read, err = io.ReadAll(io.LimitReader(resp.Body, serverBody))
	return resp, err
}

// reach looks whether the server answers, behind which certificate, and what its clock is.
func (v *visit) reach(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	token := v.Token
	v.Token = "" // until it is known who answers
	var body []byte
	sent := time.Now()
	resp, err := v.ask(ctx, "/healthz", &body)
	took := time.Since(sent)
	v.Token = token
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET /healthz is answered %s; is it a host, or a proxy before one that is down?", resp.Status)
	}
	v.add("reachable", true, err, fmt.Sprintf("%s, in %s with the connection, %s", v.base, took.Round(10*time.Microsecond), proto(resp)))
	if err != nil {
		return false
	}
	v.encrypted(resp)
	v.clock(resp, sent.Add(took/2))
	return true
}

func proto(resp *http.Response) string {
	if resp == nil {
		return ""
	}
	return resp.Proto
}

// encrypted looks at the chain of certificates, which the connection has verified.
func (v *visit) encrypted(resp *http.Response) {
	if resp.TLS == nil {
		if v.Owner {
			return
		}
		var err error
		if host, _, _ := net.SplitHostPort(resp.Request.URL.Host); !here(host) && !here(resp.Request.URL.Host) {
			err = errors.New("requests and tokens can be read on their way: give the host a certificate, or one to the proxy before it")
		}
		v.add("encryption", false, err, "none, on this machine")
		return
	}
	chain := resp.TLS.PeerCertificates
	if len(resp.TLS.VerifiedChains) > 0 {
		chain = resp.TLS.VerifiedChains[0]
	}
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	detail, err := lasts(first, time.Now())
	v.add("certificate", false, err, fmt.Sprintf("%s, chain of %d to %s, %s", tls.VersionName(resp.TLS.Version), len(chain), chain[len(chain)-1].Subject.CommonName, detail))
}

func here(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// clock compares the clocks. The server's has whole seconds.
func (v *visit) clock(resp *http.Response, at time.Time) {
	there, err := http.ParseTime(resp.Header.Get("Date"))
	skew := time.Duration(0)
	switch {
	case err != nil:
		err = errors.New("the server does not say what time it has")
	case at.Before(there):
		skew = there.Sub(at)
	case at.After(there.Add(time.Second)):
		skew = there.Add(time.Second).Sub(at)
	}
	if skew.Abs() > mostSkew {
		err = fmt.Errorf("it is %s from this machine's: signatures, sign-ins and expiries are judged by it", skew.Round(time.Second))
	}
	v.add("clock", false, err, fmt.Sprintf("within %s of this machine's", mostSkew))
}

func (v *visit) ready(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var body []byte
	resp, err := v.ask(ctx, "/readyz", &body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET /readyz is answered %s; its log says why", resp.Status)
	}
	v.add("ready", true, err, "it uses its database and writes its ledger")
}

// knows looks whether the token is good, and which host it is good for.
func (v *visit) knows(ctx context.Context) bool {
	if v.Token == "" && !v.Owner {
		v.add("token", false, errors.New("none was given, so the rest was not looked at; MORTISE_TOKEN gives one"), "")
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var body []byte
	resp, err := v.ask(ctx, documentPath, &body)
	var document struct {
		Info struct{ Title, Version string }
	}
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		err = errors.New("it is not valid there: it may be of another host, revoked or expired; 'mortise tokens create' makes one")
	case resp.StatusCode == http.StatusForbidden:
		err = errors.New("it has not the scope read, so the rest was not looked at")
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("GET %s is answered %s", documentPath, resp.Status)
	case json.Unmarshal(body, &document) != nil || document.Info.Title != "Mortise":
		err = errors.New("what answers is no host of Mortise")
	}
	detail := "it is accepted"
	if v.Owner {
		detail = "none is needed"
	}
	v.add("token", true, err, detail)
	if err != nil {
		return false
	}
	release := resp.Header.Get(versionHeader)
	var unknown error
	if release == "" {
		unknown = errors.New("it does not say which release it is")
	}
	v.add("version", false, unknown, fmt.Sprintf("Mortise %s, API %s", release, document.Info.Version))
	return true
}

// small times a request that looks at little.
func (v *visit) small(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var times []time.Duration
	var failed error
	for range smallCalls {
		var body []byte
		begin := time.Now()
		resp, err := v.ask(ctx, "/api/v1/operations?page_size=1", &body)
		times = append(times, time.Since(begin))
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("GET /api/v1/operations is answered %s", resp.Status)
		}
		failed = errors.Join(failed, err)
	}
	slices.Sort(times)
	v.add("a small request", true, failed, fmt.Sprintf("%s, the median of %d; the slowest took %s", times[len(times)/2].Round(10*time.Microsecond), len(times), times[len(times)-1].Round(10*time.Microsecond)))
}

// stream looks whether events come as they are sent. The first bytes of a stream are sent
// when it begins; what holds them back holds all of them back.
func (v *visit) stream(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(streamTime, cancel)
	defer late.Stop()
	begin := time.Now()
	resp, err := v.ask(ctx, "/api/v1/events", nil, "Accept", "text/event-stream")
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			err = fmt.Errorf("GET /api/v1/events is answered %s, %s", resp.Status, resp.Header.Get("Content-Type"))
		} else {
			_, err = bufio.NewReader(io.LimitReader(resp.Body, 1<<10)).ReadString('\n')
		}
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("nothing came in %s, though the host sends at once: a proxy before it holds answers back (proxy_buffering off in nginx)", streamTime)
	}
	v.add("events", false, err, fmt.Sprintf("the first came in %s", time.Since(begin).Round(10*time.Microsecond)))
}
