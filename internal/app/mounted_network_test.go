package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// mcpFetcher is a server on standard input and output that tries the network in the ways that
// programs have.
func mcpFetcher() {
	if at := os.Getenv("AT_START"); at != "" {
		client := http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(os.Getenv("HTTP_PROXY")) }}}
		if resp, err := client.Get(at); err == nil { //nolint:noctx // the call ends with its server
			_ = resp.Body.Close()
		}
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "fetcher", Version: "1"}, nil)
	type asked struct {
		What string `json:"what"`
		At   string `json:"at"`
	}
	type got struct {
		Text string `json:"text"`
	}
	ways := map[string]func(at string) (string, error){
		"get": func(at string) (string, error) {
			proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
			if err != nil {
				return "", err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(os.Getenv("ROOT")))
			client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}}}
			defer client.CloseIdleConnections()
			resp, err := client.Get(at) //nolint:noctx // the call ends with its server
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return fmt.Sprintf("%d %s", resp.StatusCode, body), err
		},
		"dial": func(at string) (string, error) {
			network, address, _ := strings.Cut(at, " ")
			conn, err := net.DialTimeout(network, address, time.Minute)
			if err != nil {
				return "", err
			}
			return "connected", conn.Close()
		},
		"listen": func(at string) (string, error) {
			l, err := net.Listen("tcp", at) //nolint:noctx // likewise
			if err != nil {
				return "", err
			}
			return "listening", l.Close()
		},
		"say": func(text string) (string, error) { // to the proxy, byte by byte as given
			conn, err := net.Dial("tcp", strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://")) //nolint:noctx // likewise
			if err != nil {
				return "", err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(conn, text); err != nil {
				return "", err
			}
			return bufio.NewReader(conn).ReadString('\n')
		},
		"environment": func(name string) (string, error) { return os.Getenv(name), nil },
	}
	sdk.AddTool(server, &sdk.Tool{Name: "try", Description: "Try something."}, func(_ context.Context, _ *sdk.CallToolRequest, in asked) (*sdk.CallToolResult, got, error) {
		text, err := ways[in.What](in.At)
		if err != nil {
			text = "error: " + err.Error()
		}
		return nil, got{text}, nil
	})
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
	os.Exit(0)
}

// fetcher is a manifest of that server, which declares hosts.
func fetcher(t *testing.T, name string, root []byte, hosts ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: X.\nrunner: {kind: mcp, command: [%q, mcp-fetcher], env: {ROOT: %q}}\noperations: {try: {kind: tool}}\n", name, self, root)
	if hosts != nil {
		text += fmt.Sprintf("http: {hosts: %s}\n", list)
	}
	return text
}

// try calls its tool.
func try(t *testing.T, a *app.App, name, what, at string) string {
	t.Helper()
	input, err := json.Marshal(map[string]string{"what": what, "at": at})
	if err != nil {
		t.Fatal(err)
	}
	res, err := call(t, a, name+"/try", string(input))
	var got struct {
		Text string `json:"text"`
	}
	if err != nil || json.Unmarshal(res.Data, &got) != nil {
		t.Fatalf("%s: %s %s: %s, %v", name, what, at, res.Data, err)
	}
	return got.Text
}

// A program that declares hosts reaches them through the host's proxy, by http and https, and
// nothing else: not by another name, address or port, not past the proxy, and not on the word of
// its manifest alone where an address is of this machine.
func TestAServerOnStdioReachesTheHostsItDeclares(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 100)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		_, _ = io.WriteString(w, "welcome")
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	plainAt, secureAt := plain.Listener.Addr().String(), secure.Listener.Addr().String()

	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+fmt.Sprintf("egress:\n  loopback: [granted]\n  map: {mapped.example.com: %q, example.com: %q}\n", plainAt, secureAt))
	a := open(t, home)
	needsFullSandbox(t, a)
	mount(t, a, fetcher(t, "granted", root, plainAt, secureAt, "mapped.example.com", "example.com"))
	mount(t, a, fetcher(t, "alone", root, plainAt, "localhost", "10.1.2.3"))
	mount(t, a, fetcher(t, "closed", root))

	for _, url := range []string{"http://" + plainAt, "https://" + secureAt, "http://mapped.example.com/x?y=z", "https://example.com"} {
		if got := try(t, a, "granted", "get", url); got != "200 welcome" {
			t.Errorf("%s, which is declared, answered %q", url, got)
		}
	}
	for range 2 {
		<-seen
	}
	if r := <-seen; r.Host != "mapped.example.com" || r.URL.String() != "/x?y=z" || r.Header.Get("Proxy-Connection") != "" {
		t.Errorf("a request came as %s %s %v", r.Host, r.URL, r.Header)
	}
	for name, c := range map[string]struct{ plugin, what, at, want string }{
		"an undeclared host":              {"granted", "get", "http://other.example.com", "403 egress_denied: other.example.com on port 80 is not among the hosts"},
		"by https":                        {"granted", "get", "https://other.example.com", "error: Get \"https://other.example.com\": Forbidden"},
		"a declared one on another port":  {"granted", "get", "http://mapped.example.com:8080", "403 egress_denied"},
		"an address":                      {"granted", "get", "http://192.0.2.1", "403 egress_denied: 192.0.2.1 on port 80 is not among"},
		"the address behind a name":       {"granted", "get", "http://127.0.0.1:1", "403 egress_denied"},
		"an address in other digits":      {"granted", "say", "CONNECT 2130706433:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 Forbidden"},
		"a declared address, not granted": {"alone", "get", "http://" + plainAt, "403 egress_denied: 127.0.0.1 leads to this machine (loopback)"},
		"a name of this machine":          {"alone", "get", "http://localhost", "403 egress_denied: localhost leads to this machine (loopback)"},
		"a private address":               {"alone", "get", "http://10.1.2.3", "403 egress_denied: 10.1.2.3 leads to an address that is private"},
		"no proxy request":                {"granted", "say", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a path behind CONNECT":           {"granted", "say", "CONNECT example.com:443/x HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a header without end":            {"granted", "say", "GET http://mapped.example.com HTTP/1.1\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "HTTP/1.1 431"},
		"past the proxy":                  {"granted", "dial", "tcp " + plainAt, "error: dial tcp " + plainAt + ": connect: permission denied"},
		"past it by UDP":                  {"granted", "dial", "udp 127.0.0.1:53", "operation not permitted"},
		"past it by IPv6":                 {"granted", "dial", "tcp [::1]:3128", "error: "},
		"past it by a Unix socket":        {"granted", "dial", "unix /tmp/x", "operation not permitted"},
		"listening":                       {"granted", "listen", "127.0.0.1:0", "operation not permitted"},
		"without hosts, the proxy":        {"closed", "dial", "tcp 127.0.0.1:3128", "operation not permitted"},
		"without hosts, a variable":       {"closed", "environment", "HTTP_PROXY", ""},
		"with hosts, a variable":          {"granted", "environment", "https_proxy", "http://127.0.0.1:3128"},
	} {
		if got := try(t, a, c.plugin, c.what, c.at); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	if len(seen) > 1 {
		t.Errorf("the servers were asked %d times more than they should", len(seen)-1)
	}

	// The refusals are on record, each with its call.
	all, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for _, entry := range all {
		var e plugin.CallRecord
		if entry.Kind == plugin.EntryServiceRefused && json.Unmarshal(entry.Body, &e) == nil {
			refusals++
			if e.Error == nil || e.Error.Code != plugin.CodeEgressDenied || e.CallID == "" || !strings.HasPrefix(e.Error.Message, "network: ") {
				t.Errorf("an entry of a refusal has %+v", e)
			}
		}
	}
	if refusals != 9 {
		t.Errorf("%d refusals are on record, not 9", refusals)
	}
}

// The hosts of a command are in its package: one more is a change that waits for a person, and
// what cannot be declared is refused.
func TestTheHostsOfAServerOnStdioAreApproved(t *testing.T) {
	t.Parallel()
	a := mountHome(t)
	needsFullSandbox(t, a)
	mount(t, a, fetcher(t, "notes", nil, "api.example.com"))
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", strings.Replace(fetcher(t, "notes", nil, "api.example.com", "evil.example.com"), "1.0.0", "1.0.1", 1))
	if _, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	review, err := a.Registry.Review(t.Context(), "notes", false)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(review.Difference); err != nil || !strings.Contains(string(text), "evil.example.com") {
		t.Errorf("the difference does not show the host: %s, %v", text, err)
	}
	if got := try(t, a, "notes", "get", "http://evil.example.com"); !strings.HasPrefix(got, "403 egress_denied") {
		t.Errorf("a host that waits for approval answered %q", got)
	}

	// Nor is it reached when the host lists the tools of what is to wait: it is once that is approved.
	var reached atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(s.Close)
	at := s.Listener.Addr().String()
	write(t, dir, "manifest.yaml", strings.NewReplacer("1.0.0", "1.0.2", "env: {", "env: {AT_START: 'http://"+at+"', ").Replace(fetcher(t, "notes", nil, "api.example.com", at)))
	if _, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	if reached.Load() != 0 {
		t.Error("a host was reached before it was approved")
	}
	if review, err = a.Registry.Review(t.Context(), "notes@1.0.2", true); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Registry.Approve(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if got := try(t, a, "notes", "environment", "AT_START"); got == "" || reached.Load() != 1 {
		t.Errorf("an approved host was reached %d times, by %q", reached.Load(), got)
	}
	refusedMount(t, a, fetcher(t, "other", nil, "*.example.com"), "write .example.com for all hosts below")
	refusedMount(t, a, fetcher(t, "other", nil, "https://example.com"), "is no host")
}
