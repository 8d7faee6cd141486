package service

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of connections.
const (
	maxClients     = 256 // that keep connections at a time
	maxAtOnce      = 16  // requests of one plugin for one tenant
	keepIdle       = 20 * time.Second
	answerHeader   = 64 << 10
	handshakeLimit = 10 * time.Second
)

// A web is the one way out. Connections are kept apart for each tenant and
// plugin, because what was allowed to one was not allowed to another.
type web struct {
	broker *Broker

	// For tests; what the network says where they are nil.
	resolver egress.Resolver
	connect  egress.ConnectFunc
	own      func() []netip.Addr
	tls      *tls.Config // also for mapped hosts, with the authorities of the configuration
	wait     func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex // guards clients
	clients map[clientKey]*client
}

type clientKey struct{ tenant, plugin string }

// A client is the connections of one plugin for one tenant.
type client struct {
	transport paths
	slots     chan struct{} // one for each request under way
}

// paths are the ways to hosts: those that an administrator mapped may be vouched
// for by other authorities, and connections to them are apart.
type paths struct {
	plain, mapped way
	grants        egress.Grants
}

// A way is how requests go out. What only reads uses connections again. A request
// that may change something has one of its own, over HTTP/1.1: where a connection
// that was used before breaks, and where HTTP/2 refuses a stream, [http.Transport]
// sends a request again that it takes for repeatable, by its method or because it
// has an idempotency key, and the journal would not know. Over a connection of its
// own it goes out once.
type way struct{ reads, effects *http.Transport }

func newWay(t *http.Transport) way {
	once := t.Clone()
	once.MaxIdleConnsPerHost = -1 // none is kept
	once.ForceAttemptHTTP2 = false
	once.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	if once.TLSClientConfig == nil {
		once.TLSClientConfig = &tls.Config{}
	}
	once.TLSClientConfig.NextProtos = []string{"http/1.1"} // Clone has added HTTP/2
	return way{t, once}
}

// RoundTrip implements [http.RoundTripper].
func (p paths) RoundTrip(req *http.Request) (*http.Response, error) {
	way := p.plain
	if name, _ := egress.Endpoint(req.URL); p.grants.Mapped(name) {
		way = p.mapped
	}
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return way.reads.RoundTrip(req)
	}
	return way.effects.RoundTrip(req)
}

func (p paths) closeIdle() {
	p.plain.reads.CloseIdleConnections()
	p.mapped.reads.CloseIdleConnections()
}

func newWeb(b *Broker) *web {
	return &web{broker: b, wait: wait, clients: map[clientKey]*client{}}
}

// client returns the connections of a plugin for a tenant.
func (w *web) client(tenant, name string) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := clientKey{tenant, name}
	if c := w.clients[key]; c != nil {
		return c
	}
	if len(w.clients) >= maxClients {
		for other, c := range w.clients { // any; its requests under way end by themselves
			c.transport.closeIdle()
			delete(w.clients, other)
			break
		}
	}
	dialer := &egress.Dialer{Plugin: name, Grants: w.broker.Egress, Resolver: w.resolver, Connect: w.connect, Own: w.own}
	plain := &http.Transport{
		Proxy:                  nil, // HTTP_PROXY and its like are not asked
		DialContext:            dialer.DialContext,
		TLSClientConfig:        w.tls,
		TLSHandshakeTimeout:    handshakeLimit,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // inflating is counted, see body
		MaxResponseHeaderBytes: answerHeader,
		MaxIdleConnsPerHost:    4,
		MaxIdleConns:           16,
		IdleConnTimeout:        keepIdle,
	}
	mapped := plain.Clone()
	if w.broker.Roots != nil {
		if mapped.TLSClientConfig == nil {
			mapped.TLSClientConfig = &tls.Config{}
		}
		mapped.TLSClientConfig.RootCAs = w.broker.Roots
	}
	c := &client{slots: make(chan struct{}, maxAtOnce), transport: paths{newWay(plain), newWay(mapped), w.broker.Egress}}
	w.clients[key] = c
	return c
}

// enter waits until fewer requests than allowed are under way.
func (c *client) enter(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *client) leave() { <-c.slots }

// close gives up the connections that are kept.
func (w *web) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, c := range w.clients {
		c.transport.closeIdle()
		delete(w.clients, key)
	}
}

// wait sleeps, unless ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hosts are those that the plugin may reach.
func (g *grant) hosts() []string {
	return g.broker.Egress.HostsOf(g.target.Manifest.Name, g.target.Manifest.HTTP.Hosts)
}

// fetch carries out a request that the call may make. The error of one that may change
// something says whether that is known not to have been sent, or its outcome is unknown.
func (w *web) fetch(ctx context.Context, g *grant, f *fetch) (*fetched, error) {
	res, x, err := w.exchange(ctx, g, f)
	switch {
	case err == nil:
		return res, nil
	case x != nil && x.open:
		return nil, unanswered{err}
	case !f.reads() && (x == nil || x.effected == 0):
		return nil, notSent{err}
	}
	return nil, err
}

// exchange carries out a request; x is nil if it was refused before it began.
func (w *web) exchange(ctx context.Context, g *grant, f *fetch) (res *fetched, x *exchange, err error) {
	hosts := g.hosts()
	if err := egress.Allow(hosts, f.url); err != nil {
		return nil, nil, err
	}
	credentials, err := g.credentials(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout,
		&plugin.Error{Code: plugin.CodeTimeout, Message: fetchName + ": no whole answer came within " + f.timeout.String(), Retryable: f.reads()})
	defer cancel()
	c := w.client(g.call.Tenant, g.target.Manifest.Name)
	if err := c.enter(ctx); err != nil {
		return nil, nil, plugin.AsError(err)
	}
	defer c.leave()

	g.used.Store(true)
	x = &exchange{
		fetch: f, hosts: hosts, transport: c.transport, wait: w.wait,
		agent: "mortise/" + w.broker.Version + " (" + g.target.Manifest.Name + ")",
		url:   f.url, method: f.method, body: f.body, header: f.header.Clone(),
		most: w.broker.maxAnswer(), grants: w.broker.Egress, credentials: credentials, hidden: secretive(credentials),
		local: slices.Contains(w.broker.Egress.Loopback, g.target.Manifest.Name),
	}
	began := time.Now()
	res, err = x.run(ctx)
	if x.open {
		g.unsettled.Store(true)
	}
	g.wentMapped(x.mapped)
	if w.broker.Used != nil {
		use := Use{
			Target: g.target, Call: g.call, Method: fetchName, Request: f.method + " " + f.url.Host,
			Mapped: x.mapped, Attempts: x.attempts, Sent: len(f.body), Took: time.Since(began),
		}
		if !f.reads() {
			use.Effect = httpWrite
		}
		if err != nil {
			use.Outcome = string(plugin.CodeOf(err))
		} else {
			use.Outcome, use.Received = strconv.Itoa(res.StatusCode), x.received
		}
		w.broker.Used(use)
	}
	return res, x, err
}
