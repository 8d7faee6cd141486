package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/egress/proxy"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A table resolves names.
type table map[string]string

func (t table) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for text := range strings.FieldsSeq(t[host]) {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

// serve starts a proxy and returns its address.
func serve(t *testing.T, o proxy.Options) (at string, p *proxy.Proxy) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Dialer.Plugin = "test"
	p = proxy.Serve(l, o)
	t.Cleanup(p.Close)
	return l.Addr().String(), p
}

// open sends a request and returns the connection, and the first line of the answer.
func open(t *testing.T, at, request string) (*bufio.Reader, net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return r, conn, strings.TrimSpace(line)
}

func connect(host string) string {
	return fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
}

// A listener that hands connections to a test.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// A name is one that its own addresses decide about: of several, a private one refuses it, and the
// one that was looked up is the one that is dialled.
func TestADeclaredNameLeadsToPublicAddressesAlone(t *testing.T) {
	t.Parallel()
	var dialled, refused atomic.Int32
	o := proxy.Options{
		Hosts: []string{"inside.example.com", "both.example.com", "metadata.example.com", "out.example.com", "slow.example.com"},
		Dialer: &egress.Dialer{
			Resolver: table{"inside.example.com": "10.0.0.7", "both.example.com": "8.8.8.8 192.168.1.1", "metadata.example.com": "169.254.169.254", "out.example.com": "8.8.8.8", "slow.example.com": "8.8.4.4"},
			Own:      func() []netip.Addr { return nil },
			Connect: func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
				if dialled.Add(1); to.Addr().String() == "8.8.4.4" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, fmt.Errorf("no route to %s", to)
			},
		},
		Refused: func(e *plugin.Error) {
			if e.Code == plugin.CodeEgressDenied {
				refused.Add(1)
			}
		},
	}
	at, p := serve(t, o)
	for _, name := range []string{"inside", "both", "metadata"} {
		for _, request := range []string{connect(name + ".example.com:443"), "GET http://" + name + ".example.com/ HTTP/1.1\r\nHost: x\r\n\r\n"} {
			if _, _, line := open(t, at, request); line != "HTTP/1.1 403 Forbidden" {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	if dialled.Load() != 0 || refused.Load() != 6 || len(p.Refusals()) != 3 {
		t.Errorf("%d were dialled, %d refused: %q", dialled.Load(), refused.Load(), p.Refusals())
	}
	r, _, line := open(t, at, connect("out.example.com:443"))
	if rest, _ := io.ReadAll(r); line != "HTTP/1.1 502 Bad Gateway" || strings.Contains(string(rest), "8.8.8.8") {
		t.Errorf("a host that does not answer: %s %s", line, rest)
	}
	o.Connect = 50 * time.Millisecond
	hasty, _ := serve(t, o)
	if _, _, line := open(t, hasty, connect("slow.example.com:443")); line != "HTTP/1.1 504 Gateway Timeout" {
		t.Errorf("a host that does not answer in time: %s", line)
	}
}

// What a program may have of the proxy is bounded.
func TestBoundsOfAProxy(t *testing.T) {
	t.Parallel()
	local := func() *egress.Dialer { return &egress.Dialer{Grants: egress.Grants{Loopback: []string{"test"}}} }
	t.Run("connections", func(t *testing.T) {
		t.Parallel()
		to := echo(t)
		at, _ := serve(t, proxy.Options{Hosts: []string{to}, Dialer: local(), Connections: 2})
		_, first, line := open(t, at, connect(to))
		if line != "HTTP/1.1 200 Connection established" {
			t.Fatal(line)
		}
		open(t, at, connect(to))
		third, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer third.Close()
		_, _ = io.WriteString(third, connect(to))
		_ = third.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := third.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("a third of two was served: %d, %v", n, err)
		}
		_ = first.Close()
		_ = third.SetReadDeadline(time.Now().Add(testwait.Limit))
		if _, err := third.Read(make([]byte, 1)); err != nil {
			t.Errorf("it is not served once there is room: %v", err)
		}
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		to := echo(t)
		const idle = 3 * time.Second // a tunnel in use may pause for almost as long on a busy machine
		at, _ := serve(t, proxy.Options{Hosts: []string{to}, Dialer: local(), Idle: idle})
		r, conn, _ := open(t, at, connect(to))
		_, _ = r.ReadString('\n')
		tick := time.NewTicker(idle / 30)
		defer tick.Stop()
		for range 40 { // longer than that in all
			<-tick.C
			_, _ = io.WriteString(conn, "x")
			if b, err := r.ReadByte(); b != 'x' || err != nil {
				t.Fatalf("a tunnel that is used: %c, %v", b, err)
			}
		}
		if _, err := r.ReadByte(); err == nil {
			t.Error("it is open still")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		to := echo(t)
		at, _ := serve(t, proxy.Options{Hosts: []string{to}, Dialer: local(), Bytes: 1000})
		r, conn, _ := open(t, at, connect(to)+strings.Repeat("e", 100)) // some came early
		_, _ = r.ReadString('\n')
		_, _ = io.WriteString(conn, strings.Repeat("x", 5000))
		if got, _ := io.ReadAll(r); len(got) > 1000 || len(got) > 0 && got[0] != 'e' {
			t.Errorf("%d bytes went through a tunnel of 1000", len(got))
		}
	})
	t.Run("bytes of an answer", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5000)) }))
		defer s.Close()
		to := s.Listener.Addr().String()
		at, _ := serve(t, proxy.Options{Hosts: []string{to}, Dialer: local(), Bytes: 1000})
		r, _, _ := open(t, at, "GET http://"+to+"/ HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), r)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err == nil || n > 1000 {
			t.Errorf("%d bytes of an answer, %v", n, err)
		}
	})
	t.Run("a slow header", func(t *testing.T) {
		t.Parallel()
		at, _ := serve(t, proxy.Options{Dialer: local(), Header: 100 * time.Millisecond})
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "CONNECT ")
		_ = conn.SetReadDeadline(time.Now().Add(testwait.Limit))
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("it is open still: %v", err)
		}
	})
	t.Run("the end", func(t *testing.T) {
		t.Parallel()
		to := echo(t)
		at, p := serve(t, proxy.Options{Hosts: []string{to}, Dialer: local()})
		r, _, _ := open(t, at, connect(to))
		_, _ = r.ReadString('\n')
		p.Close()
		if _, err := io.ReadAll(r); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("a tunnel outlives its proxy: %v", err)
		}
		if conn, err := net.Dial("tcp", at); err == nil {
			_ = conn.Close()
			t.Error("it listens still")
		}
	})
}

// A request goes to its host as the program made it, without what is between the program and the
// proxy, and is sent once.
func TestRequestsAreForwarded(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s %s %s %s %v", r.Method, r.URL, r.Host, body, r.Header)
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
		w.Header().Set("Keep-Alive", "x")
		_, _ = io.WriteString(w, "answer")
	}))
	defer s.Close()
	to := s.Listener.Addr().String()
	at, _ := serve(t, proxy.Options{Hosts: []string{to}, Dialer: &egress.Dialer{Grants: egress.Grants{Loopback: []string{"test"}}}})
	_, _, line := open(t, at, "POST http://"+to+"/a?b=c HTTP/1.1\r\nHost: elsewhere.example.com\r\nProxy-Authorization: x\r\nConnection: X-One\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 4\r\n\r\nbody")
	if want, sent := "POST /a?b=c "+to+" body map[Connection:[close] Content-Length:[4] X-Two:[2]]", <-got; line != "HTTP/1.1 200 OK" || sent != want {
		t.Errorf("%s, %s, not %s", line, sent, want)
	}
	if _, _, line := open(t, at, "GET http://"+to+"/redirect HTTP/1.1\r\nHost: x\r\n\r\n"); line != "HTTP/1.1 302 Found" || len(got) != 1 {
		t.Errorf("a redirect is the program's to follow: %s, %d requests", line, len(got))
	}
	for _, request := range []string{"GET https://" + to + "/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT " + strings.Split(to, ":")[0] + " HTTP/1.1\r\nHost: x\r\n\r\n"} {
		if _, _, line := open(t, at, request); line != "HTTP/1.1 400 Bad Request" {
			t.Errorf("%q: %s", request, line)
		}
	}
}
