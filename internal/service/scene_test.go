package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	connections "github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// A scene is one call of one plugin, an operator that may write, on a network
// that is made up: every name there is has the address 93.184.215.14, and every
// connection ends at one server.
type scene struct {
	t      *testing.T
	broker *Broker
	target *plugin.Target
	call   *plugin.Call
	server *httptest.Server
	names  names

	mu       sync.Mutex // guards the rest
	dialled  []netip.AddrPort
	refusals []Refusal
	uses     []Use
	waits    []time.Duration
}

// names are the addresses of names; of those not in it, one of the Internet.
type names map[string]func(ctx context.Context) ([]netip.Addr, error)

func (n names) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if answer := n[host]; answer != nil {
		return answer(ctx)
	}
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

func addresses(list ...string) func(context.Context) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, text := range list {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return func(context.Context) ([]netip.Addr, error) { return addrs, nil }
}

// connected are accounts as a host has them.
type connected struct{ a *connections.Accounts }

// Resolve implements [Accounts].
func (c connected) Resolve(ctx context.Context, t *plugin.Target, call *plugin.Call, ask AccountAsk) (AccountToken, error) {
	answer, err := c.a.Resolve(ctx, connections.Use{Tenant: call.Tenant, Subject: "user::" + call.Principal.ID, Name: t.Name(),
		Operation: t.Operation.Auth, Identities: t.Manifest.Identities, Overlay: call.Overlay}, connections.Ask(ask))
	return AccountToken(answer), err
}

// Connected implements [Accounts].
func (connected) Connected(context.Context, *plugin.Call) ([]ConnectedAccount, error) {
	return nil, nil
}

var oneServer = sync.OnceValue(func() *httptest.Server { return httptest.NewServer(http.NotFoundHandler()) })

func newScene(t *testing.T) *scene {
	s := &scene{t: t, broker: New(), names: names{}}
	s.target = &plugin.Target{
		Manifest: &plugin.Manifest{
			Name: "sample", Version: "1.0.0", Capabilities: []string{"http", "cache", "session", "artifacts", "reference_data", "llm",
				"storage", "cursor", "secrets", "rate_limit", "identity", "auth", "audit", "kb", "query", "ocr", "scheduler"},
			HTTP:     plugin.HTTP{Hosts: []string{"api.example.com", ".example.org", "api.example.com:8443"}},
			Requires: plugin.Requires{Tools: []string{"other"}},
		},
		Operation: &plugin.Operation{Name: "op", Kind: plugin.Operator, Effects: []string{httpWrite},
			Secrets: map[string]plugin.SecretNeed{"api_key": {AllowedScope: plugin.SecretOfSystemOrUser}}},
	}
	s.target.Manifest.Operations = []*plugin.Operation{s.target.Operation}
	s.call = &plugin.Call{ID: "call-1", Tenant: "t", Principal: plugin.Principal{ID: "user:ada"}}
	s.broker.Version = "0.1.0"
	s.broker.Kind = func(context.Context, *plugin.Call) (plugin.Kind, error) { return plugin.Operator, nil }
	s.broker.Refused = func(r Refusal) { s.mu.Lock(); s.refusals = append(s.refusals, r); s.mu.Unlock() }
	s.broker.Used = func(u Use) { s.mu.Lock(); s.uses = append(s.uses, u); s.mu.Unlock() }
	s.broker.web.resolver = s.names
	s.broker.web.own = func() []netip.Addr { return nil }
	s.broker.web.connect = s.connectTo(oneServer().Listener.Addr().String())
	s.broker.web.wait = func(ctx context.Context, d time.Duration) error {
		s.mu.Lock()
		s.waits = append(s.waits, d)
		s.mu.Unlock()
		return ctx.Err()
	}
	s.broker.Store, s.broker.Secrets = oneStore(), safeOf(oneVault())
	s.broker.Accounts = connected{connections.New(connections.Options{})}
	s.broker.Knowledge, s.broker.Files = oneKnowledge(), plainFiles
	t.Cleanup(func() { _ = s.broker.Close() })
	return s
}

// serve gives the scene a server of its own.
func (s *scene) serve(handler http.HandlerFunc) *scene {
	s.server = httptest.NewServer(handler)
	s.t.Cleanup(s.server.Close)
	s.broker.web.connect = s.connectTo(s.server.Listener.Addr().String())
	return s
}

func (s *scene) services() plugin.Services { return s.broker.For(s.target, s.call, nil) }

func (s *scene) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.dialled)
}

func (s *scene) fail(method, args string) error {
	s.t.Helper()
	value, err := s.services().Serve(s.t.Context(), method, json.RawMessage(args))
	if err == nil {
		s.t.Errorf("%s %.200s: it was answered %.200s", method, args, value)
	}
	return err
}

// fetch asks for http.fetch; args are alternating names and values.
func (s *scene) fetch(url string, args ...any) (map[string]any, error) {
	s.t.Helper()
	return s.fetchWithin(s.t.Context(), url, args...)
}

func (s *scene) fetchWithin(ctx context.Context, url string, args ...any) (map[string]any, error) {
	s.t.Helper()
	in := map[string]any{"url": url}
	for i := 0; i < len(args); i += 2 {
		in[args[i].(string)] = args[i+1]
	}
	raw, err := json2.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	value, err := s.services().Serve(ctx, fetchName, raw)
	if err != nil {
		return nil, err
	}
	var res map[string]any
	if err := json2.Unmarshal(value, &res); err != nil {
		s.t.Fatal(err)
	}
	return res, nil
}

// must is fetch where nothing may go wrong.
func (s *scene) must(url string, args ...any) map[string]any {
	s.t.Helper()
	res, err := s.fetch(url, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", url, err)
	}
	return res
}

// A canary is a listener on every address of this machine that counts who
// comes.
type canary struct {
	port  string
	count func() int
}

func newCanary(t *testing.T) canary {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
			_, _ = conn.Read(make([]byte, 4096))
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary")
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return canary{port, func() int { mu.Lock(); defer mu.Unlock(); return n }}
}

// real makes the scene use the network there is, but for names.
func (s *scene) real() *scene {
	s.broker.web.connect = func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
		s.mu.Lock()
		s.dialled = append(s.dialled, to) // before it is checked: none should come this far
		s.mu.Unlock()
		return egress.Connect(ctx, to, check)
	}
	s.broker.web.own = nil
	return s
}
