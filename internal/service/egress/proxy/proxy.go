// Package proxy lets a program in the sandbox reach the hosts that its plugin declares, as an HTTP
// proxy.
//
// The program alone reaches its listener. It knows two kinds of request: CONNECT, whose bytes it does not look into, and those of http
// with an absolute URL. The rules are those of package egress: the host must be declared, and
// every address behind its name be one that the plugin may reach. A refusal is answered with its
// code and message, logged, and told to Refused.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// Options say what a program may reach. Dialer is required.
type Options struct {
	Hosts   []string       // as a manifest declares them
	Dialer  *egress.Dialer // of the plugin
	Refused func(*plugin.Error)
	Log     *slog.Logger // discarded by default

	// Bounds, each with a default.
	Connections int           // at a time; 64. Others wait
	Header      time.Duration // how long the header of a request may take; 10 s
	Connect     time.Duration // how long a connection to a host may take; 15 s
	Idle        time.Duration // how long a connection may carry nothing; 5 min
	Bytes       int64         // of one request or tunnel, in each direction; 1 GiB
}

// Bounds that are not set.
const (
	maxHeader  = 32 << 10
	maxAnswer  = 64 << 10 // of the header of an answer
	maxRefused = 16       // different refusals that are kept and logged
	chunk      = 32 << 10
)

// A Proxy serves one program. Its goroutines have ended when Close returns.
type Proxy struct {
	opts      Options
	server    *http.Server
	transport *http.Transport
	life      context.Context // ends when Close begins
	end       context.CancelFunc
	work      sync.WaitGroup

	mu      sync.Mutex // guards the rest
	refused []string   // messages of refusals, each once
	closed  bool
}

// Serve serves a program on a listener until Close is called, which closes the listener.
func Serve(l net.Listener, o Options) *Proxy {
	set(&o.Log, slog.New(slog.DiscardHandler))
	set(&o.Connections, 64)
	set(&o.Header, 10*time.Second)
	set(&o.Connect, 15*time.Second)
	set(&o.Idle, 5*time.Minute)
	set(&o.Bytes, 1<<30)
	p := &Proxy{opts: o}
	p.life, p.end = context.WithCancel(context.Background())
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, o.Connect)
			defer cancel()
			return o.Dialer.DialContext(ctx, network, address)
		},
		DisableKeepAlives:      true, // so that no request is sent again where a connection breaks
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: o.Header, IdleTimeout: o.Header, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return p.life }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	p.work.Go(func() { _ = p.server.Serve(limit(l, o.Connections)) })
	return p
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	_ = p.server.Close()
	p.work.Wait()
}

// Refusals returns why requests were refused so far, each reason once, at most 16 of them.
func (p *Proxy) Refusals() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// A traffic is what one request carried.
type traffic struct{ in, out atomic.Int64 }

// serve answers one request.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.work.Add(1)
	p.mu.Unlock()
	defer p.work.Done()

	u, err := target(r)
	if err == nil {
		err = egress.Allow(p.opts.Hosts, u)
	}
	if err != nil {
		p.refuse(w, err)
		return
	}
	name, port := egress.Endpoint(u)
	began := time.Now()
	var t traffic
	if r.Method == http.MethodConnect {
		err = p.tunnel(w, u, &t)
	} else {
		err = p.forward(w, r, u, &t)
	}
	log := p.opts.Log.With("method", r.Method, "host", name, "port", port, "bytes_in", t.in.Load(), "bytes_out", t.out.Load(), "took", time.Since(began).Round(time.Millisecond))
	if err != nil {
		log = log.With("cause", plugin.AsError(err).Message)
	}
	log.Info("a request of a mounted server")
}

// target returns what a request is for, with the scheme https for a tunnel.
func target(r *http.Request) (*url.URL, error) {
	if r.Method != http.MethodConnect {
		if !strings.HasPrefix(strings.ToLower(r.RequestURI), "http://") {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "this is a proxy: it takes http:// with the whole address, and CONNECT for everything else")
		}
		return egress.ParseURL(r.RequestURI)
	}
	if _, _, err := net.SplitHostPort(r.RequestURI); err != nil || strings.ContainsAny(r.RequestURI, "/?#") {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "CONNECT takes a host and a port")
	}
	return egress.ParseURL("https://" + r.RequestURI)
}

// statuses are those of the codes of refusals.
var statuses = map[plugin.Code]int{
	plugin.CodeEgressDenied: http.StatusForbidden, plugin.CodeInvalidInput: http.StatusBadRequest,
	plugin.CodeTimeout: http.StatusGatewayTimeout, plugin.CodeLimitExceeded: http.StatusRequestEntityTooLarge,
}

// refuse answers a request with an error, and makes it known where it is one of the rules'.
func (p *Proxy) refuse(w http.ResponseWriter, err error) {
	e := plugin.AsError(err)
	status, known := statuses[e.Code]
	if !known {
		status = http.StatusBadGateway
	}
	if e.Code == plugin.CodeEgressDenied {
		p.note(e)
	}
	w.Header().Set("Connection", "close")
	http.Error(w, fmt.Sprintf("%s: %s", e.Code, e.Message), status)
}

// note keeps, logs and tells of a refusal.
func (p *Proxy) note(e *plugin.Error) {
	p.mu.Lock()
	fresh := len(p.refused) < maxRefused && !slices.Contains(p.refused, e.Message)
	if fresh {
		p.refused = append(p.refused, e.Message)
	}
	p.mu.Unlock()
	if fresh {
		p.opts.Log.Warn("a request of a mounted server was refused", "code", string(e.Code), "cause", e.Message)
	}
	if p.opts.Refused != nil {
		p.opts.Refused(e)
	}
}

// unanswered gives an error of a connection its code, and keeps from the program what it says of
// the network.
func unanswered(u *url.URL, err error) error {
	var typed *plugin.Error
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, context.DeadlineExceeded):
		return &plugin.Error{Code: plugin.CodeTimeout, Message: u.Host + " did not answer in time", Err: err}
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: u.Host + " did not answer", Err: err}
}

// forward sends a request on, and its answer back.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, u *url.URL, t *traffic) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	late := time.AfterFunc(p.opts.Idle, func() { cancel(context.DeadlineExceeded) })
	defer late.Stop()
	body := &metered{src: r.Body, left: p.opts.Bytes, moved: func(n int) { t.out.Add(int64(n)); late.Reset(p.opts.Idle) }}
	out := r.Clone(ctx)
	out.URL, out.Host, out.RequestURI, out.Close = u, u.Host, "", false
	out.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	if r.ContentLength == 0 {
		out.Body = nil
	}
	hop(out.Header)
	if _, there := out.Header["User-Agent"]; !there {
		out.Header["User-Agent"] = nil // and none of ours
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		err = unanswered(u, err)
		p.refuse(w, err)
		return err
	}
	defer resp.Body.Close()
	hop(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	answer := &metered{src: resp.Body, left: p.opts.Bytes, moved: func(n int) { t.in.Add(int64(n)); late.Reset(p.opts.Idle) }}
	if err := p.answer(w, answer); err != nil {
		p.opts.Log.Info("an answer to a mounted server broke off", "host", u.Hostname(), "cause", err.Error())
		panic(http.ErrAbortHandler) // the program sees that it is not whole
	}
	return nil
}

// answer copies a body to the program as it comes.
func (p *Proxy) answer(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	buffer := make([]byte, chunk)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(p.opts.Idle))
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			_ = control.Flush()
		}
		if errors.Is(err, io.EOF) {
			return control.SetWriteDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
	}
}

// hop removes the headers that are of one connection.
func hop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

// A metered is a reader that says what it moved, and ends with an error beyond a bound.
type metered struct {
	src   io.Reader
	left  int64
	moved func(n int)
}

func (m *metered) Read(b []byte) (int, error) {
	if m.left <= 0 {
		return 0, plugin.Errorf(plugin.CodeLimitExceeded, "it has more bytes than one request may carry")
	}
	n, err := m.src.Read(b[:min(int64(len(b)), m.left)])
	m.left -= int64(n)
	m.moved(n)
	return n, err
}
