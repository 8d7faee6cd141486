package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// refusedAddresses are one or more of every range that is not the Internet.
var refusedAddresses = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.254", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.0.0.53", "127.255.255.254",
	"168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.254", "192.0.0.192", "192.0.2.1",
	"192.88.99.1", "192.168.0.1", "192.168.255.254", "198.18.0.1", "198.19.255.254", "198.51.100.7", "203.0.113.9", "224.0.0.1",
	"239.255.255.250", "240.0.0.1", "255.255.255.255",
}

var refusedAddresses6 = []string{
	"::", "::1", "::2", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001::1", "2001:10::1", "2001:db8::1", "3fff::1", "4000::1", "64:ff9b:1::a00:1", "100::1",
}

// spellings write an IPv4 address in every way that some program reads.
var spellings = map[string]func(a [4]byte, n uint32) string{
	"plain":         func(a [4]byte, _ uint32) string { return fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3]) },
	"decimal":       func(_ [4]byte, n uint32) string { return fmt.Sprint(n) },
	"hex":           func(_ [4]byte, n uint32) string { return fmt.Sprintf("0x%x", n) },
	"HEX":           func(_ [4]byte, n uint32) string { return fmt.Sprintf("0X%08X", n) },
	"octal":         func(_ [4]byte, n uint32) string { return fmt.Sprintf("0%o", n) },
	"dotted hex":    func(a [4]byte, _ uint32) string { return fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", a[0], a[1], a[2], a[3]) },
	"dotted octal":  func(a [4]byte, _ uint32) string { return fmt.Sprintf("%#o.%#o.%#o.0%o", a[0], a[1], a[2], a[3]) },
	"leading zeros": func(a [4]byte, _ uint32) string { return fmt.Sprintf("%03d.%03d.%03d.%04d", a[0], a[1], a[2], a[3]) },
	"short":         func(a [4]byte, n uint32) string { return fmt.Sprintf("%d.%d", a[0], n&0xffffff) },
	"three":         func(a [4]byte, n uint32) string { return fmt.Sprintf("%d.%d.%d", a[0], a[1], n&0xffff) },
	"overflow":      func(a [4]byte, _ uint32) string { return fmt.Sprintf("%d.%d.%d.%d", int(a[0])+256, a[1], a[2], a[3]) },
	"dot at end":    func(a [4]byte, _ uint32) string { return fmt.Sprintf("%d.%d.%d.%d.", a[0], a[1], a[2], a[3]) },
	"mapped":        func(a [4]byte, _ uint32) string { return fmt.Sprintf("[::ffff:%d.%d.%d.%d]", a[0], a[1], a[2], a[3]) },
	"mapped hex":    func(_ [4]byte, n uint32) string { return fmt.Sprintf("[::ffff:%x:%x]", n>>16, n&0xffff) },
	"compatible":    func(_ [4]byte, n uint32) string { return fmt.Sprintf("[::%x:%x]", n>>16, n&0xffff) },
	"translated":    func(_ [4]byte, n uint32) string { return fmt.Sprintf("[::ffff:0:%x:%x]", n>>16, n&0xffff) },
	"NAT64":         func(_ [4]byte, n uint32) string { return fmt.Sprintf("[64:ff9b::%x:%x]", n>>16, n&0xffff) },
	"6to4":          func(_ [4]byte, n uint32) string { return fmt.Sprintf("[2002:%x:%x::1]", n>>16, n&0xffff) },
	"Teredo": func(_ [4]byte, n uint32) string {
		return fmt.Sprintf("[2001:0:5db8:d70e:0:0:%x:%x]", ^n>>16, ^n&0xffff)
	},
	"ISATAP":       func(_ [4]byte, n uint32) string { return fmt.Sprintf("[2600:1::5efe:%x:%x]", n>>16, n&0xffff) },
	"wide digits":  func(a [4]byte, _ uint32) string { return wide(fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3])) },
	"wide dots":    func(a [4]byte, _ uint32) string { return fmt.Sprintf("%d。%d。%d。%d", a[0], a[1], a[2], a[3]) },
	"escaped dots": func(a [4]byte, _ uint32) string { return fmt.Sprintf("%d%%2e%d%%2e%d%%2e%d", a[0], a[1], a[2], a[3]) },
	"escaped":      func(a [4]byte, _ uint32) string { return fmt.Sprintf("%%3%d.%d.%d.%d", a[0]%10, a[1], a[2], a[3]) },
	"after a name": func(a [4]byte, _ uint32) string {
		return fmt.Sprintf("api.example.com@%d.%d.%d.%d", a[0], a[1], a[2], a[3])
	},
	"after a slash": func(a [4]byte, _ uint32) string {
		return fmt.Sprintf(`api.example.com\@%d.%d.%d.%d`, a[0], a[1], a[2], a[3])
	},
	"before a name": func(a [4]byte, _ uint32) string {
		return fmt.Sprintf(`%d.%d.%d.%d\api.example.com`, a[0], a[1], a[2], a[3])
	},
	"by its name": func(_ [4]byte, n uint32) string { return fmt.Sprintf("ip-%08x.example.org", n) },
}

func wide(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r - '0' + '０'
		}
		return r
	}, text)
}

// TestAddressesThatNoPluginMayReach asks for every spelling of every range with both
// schemes, on the port of a listener that is on every address of this machine,
// with a manifest that declares whatever can be declared.
func TestAddressesThatNoPluginMayReach(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	s := newScene(t).real()
	hosts := []string{".example.org:" + canary.port, "api.example.com:" + canary.port, "localhost:" + canary.port}
	var urls []string
	add := func(host string) {
		entry := host + ":" + canary.port
		if _, err := egress.ParseHost(entry); err == nil {
			hosts = append(hosts, entry)
		}
		urls = append(urls, "http://"+entry+"/x", "https://"+entry+"/x")
	}
	for _, text := range refusedAddresses {
		addr := netip.MustParseAddr(text)
		a := addr.As4()
		n := binary.BigEndian.Uint32(a[:])
		for spelling, write := range spellings {
			host := write(a, n)
			if spelling == "by its name" {
				s.names[host] = addresses(text)
			}
			add(host)
		}
	}
	for _, text := range refusedAddresses6 {
		add("[" + text + "]")
		add("[" + text + "%25eth0]")
		add("[" + netip.MustParseAddr(text).StringExpanded() + "]")
		name := "v6-" + strconv.Itoa(len(urls)) + ".example.org"
		s.names[name] = addresses(text)
		add(name)
	}
	s.names["localhost"] = addresses("127.0.0.1", "::1")
	for _, host := range []string{"localhost", "LOCALHOST", "localhost.", "localhost%00.example.org", "api.example.com\t", "api..example.com", ".example.org", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "api.example.com#@localhost", "xn--.example.org:80"} {
		add(host)
	}
	own, _ := net.InterfaceAddrs()
	for i, addr := range own {
		name := "own-" + strconv.Itoa(i) + ".example.org"
		s.names[name] = addresses(netip.MustParsePrefix(addr.String()).Addr().WithZone("").String())
		add(name)
	}
	for _, scheme := range []string{"file", "ftp", "gopher", "dict", "ldap", "jar:http", "ws", "unix", "data", "javascript", "httpx", "", "http+unix"} {
		urls = append(urls, scheme+"://api.example.com:"+canary.port+"/", scheme+":/etc/passwd", scheme+"://127.0.0.1:"+canary.port)
	}
	urls = append(urls, "", "/", "//127.0.0.1:"+canary.port, "http:", "http://", "http:///x", "http:127.0.0.1:"+canary.port, "http://:"+canary.port, "http://[::1", "http://]["+canary.port,
		"http://user:pass@api.example.com:"+canary.port, "http://@api.example.com:"+canary.port, "http://api.example.com:", "http://api.example.com:0", "http://api.example.com:65536",
		"http://api.example.com:080", "http://api.example.com:+80", "http://api.example.com:８０", "http://api.example.com:22", "http://api.example.com\r\nX: y", " http://api.example.com", "http://undeclared.example.net",
		"http://example.org:"+canary.port, "http://xexample.org:"+canary.port, "http://api.example.com.evil.net:"+canary.port, "http://"+strings.Repeat("a", 9000)+".example.org")

	s.target.Manifest.HTTP.Hosts = hosts
	seen := map[string]bool{}
	for _, url := range urls {
		seen[url] = true
		_, err := s.fetch(url)
		if code := plugin.CodeOf(err); code != plugin.CodeEgressDenied && code != plugin.CodeInvalidInput {
			t.Errorf("%q: %v", url, err)
		}
	}
	if len(seen) < 400 {
		t.Errorf("only %d URLs", len(seen))
	}
	if n := canary.count(); n != 0 || s.connections() != 0 {
		t.Errorf("%d connections came, %d were begun", n, s.connections())
	}
	t.Logf("%d URLs, %d hosts declared", len(seen), len(hosts))
}

func TestWhereEverybodyMayGo(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	public := []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "93.184.215.14", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1", "151.101.1.69",
		"169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.0.3.1", "192.167.255.255", "192.169.0.1", "198.17.255.255", "198.20.0.1",
		"203.0.112.1", "203.0.114.1", "223.255.255.255", "2600::1", "2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "2003::1", "64:ff9b::808:808",
		"::ffff:8.8.8.8",
	}
	var urls []string
	for i, text := range public {
		name := "public-" + strconv.Itoa(i) + ".example.org"
		s.names[name] = addresses(text)
		urls = append(urls, "http://"+name+"/", "http://"+strings.ToUpper(name)+":80/a%20b?q=%41&r=a+b#part")
		literal := text
		if strings.Contains(text, ":") {
			literal = "[" + netip.MustParseAddr(text).String() + "]"
		}
		s.target.Manifest.HTTP.Hosts = append(s.target.Manifest.HTTP.Hosts, literal)
		urls = append(urls, "http://"+literal+"/x")
	}
	urls = append(urls,
		"http://api.example.com", "HTTP://API.example.com/", "http://api.example.com?q", "http://api.example.com:8443/", "http://api.example.com/a;b=c/d,e?f=g&h[]=i&j=%7B%7D",
		"http://a.b.c.example.org/", "http://x_y.example.org/~u/", "http://xn--bcher-kva.example.org/", "http://1.example.org/", "http://0x7f.example.org/",
		"http://api.example.com//double//slash/../up", "http://api.example.com/@user:pass", "http://api.example.com/?u=http://127.0.0.1/",
	)
	if len(urls) < 100 {
		t.Fatalf("only %d URLs", len(urls))
	}
	for _, url := range urls {
		if res, err := s.fetch(url); err != nil || res["body"] != "ok" {
			t.Errorf("%s: %v, %v", url, res, err)
		}
	}
	if len(s.refusals) != 0 {
		t.Errorf("%d refusals", len(s.refusals))
	}
}

func TestNamesThatLie(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	hosts := plugin.HTTP{Hosts: []string{".example.org:" + canary.port}}
	var lookups atomic.Int32
	for name, c := range map[string]struct {
		answer func(context.Context) ([]netip.Addr, error)
		code   plugin.Code
	}{
		"public first, then this machine": {func(context.Context) ([]netip.Addr, error) {
			if lookups.Add(1) > 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		}, plugin.CodeUnavailable},
		"public and private":      {addresses("93.184.215.14", "127.0.0.1"), plugin.CodeEgressDenied},
		"private and public":      {addresses("10.0.0.1", "93.184.215.14"), plugin.CodeEgressDenied},
		"an alias of a private":   {addresses("192.168.1.1"), plugin.CodeEgressDenied}, // what a CNAME comes down to
		"AAAA with IPv4 in it":    {addresses("::ffff:127.0.0.1"), plugin.CodeEgressDenied},
		"AAAA through NAT64":      {addresses("64:ff9b::7f00:1"), plugin.CodeEgressDenied},
		"an address with a zone":  {addresses("fe80::1%lo"), plugin.CodeEgressDenied},
		"no address":              {addresses(), plugin.CodeUnavailable},
		"no address that is one":  {func(context.Context) ([]netip.Addr, error) { return []netip.Addr{{}}, nil }, plugin.CodeEgressDenied},
		"no such name":            {dnsError(net.DNSError{IsNotFound: true}), plugin.CodeUnavailable},
		"a lookup that times out": {dnsError(net.DNSError{IsTimeout: true}), plugin.CodeTimeout},
		"a lookup that fails":     {dnsError(net.DNSError{IsTemporary: true}), plugin.CodeUnavailable},
		"a lookup that never ends": {func(ctx context.Context) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, plugin.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).real()
			s.target.Manifest.HTTP = hosts
			s.names["lies.example.org"] = c.answer
			if c.code == plugin.CodeUnavailable {
				s.broker.web.connect = func(_ context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
					if err := check(to); err != nil {
						return nil, err
					}
					return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
				}
			}
			_, err := s.fetch("http://lies.example.org:"+canary.port, "timeout_seconds", 0.3, "method", "POST")
			if plugin.CodeOf(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
	t.Cleanup(func() {
		if n := canary.count(); n != 0 {
			t.Errorf("%d connections came", n)
		}
		if n := lookups.Load(); n != 1 {
			t.Errorf("a name was looked up %d times for one connection", n)
		}
	})
}

func dnsError(e net.DNSError) func(context.Context) ([]netip.Addr, error) {
	return func(context.Context) ([]netip.Addr, error) { return nil, &e }
}

// TestTheDialledAddressIsCheckedAgain leads the socket astray after everything
// was checked, as a name server that answers twice would.
func TestTheDialledAddressIsCheckedAgain(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	s := newScene(t)
	s.target.Manifest.HTTP.Hosts = []string{"api.example.com:" + canary.port}
	s.broker.web.connect = func(ctx context.Context, _ netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
		return egress.Connect(ctx, netip.MustParseAddrPort("127.0.0.1:"+canary.port), check)
	}
	if _, err := s.fetch("http://api.example.com:" + canary.port); plugin.CodeOf(err) != plugin.CodeEgressDenied {
		t.Error(err)
	}
	if n := canary.count(); n != 0 {
		t.Errorf("%d connections came", n)
	}
	if len(s.refusals) != 1 || s.refusals[0].Method != fetchName {
		t.Errorf("refusals: %+v", s.refusals)
	}
}

func TestWhatAnAdministratorGrants(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	ask := func(grants egress.Grants, url string, hosts ...string) error {
		s := newScene(t).real()
		s.broker.Egress = grants
		s.target.Manifest.HTTP.Hosts = hosts
		s.names["localhost"] = addresses("127.0.0.1")
		s.names["api.example.com"] = addresses("10.1.2.3")
		_, err := s.fetch(url, "timeout_seconds", 5)
		return err
	}
	local := "localhost:" + canary.port
	granted := egress.Grants{Loopback: []string{"sample"}}
	named := func(name string) egress.Grants {
		return egress.Grants{Loopback: []string{"sample"}, Hosts: map[string][]string{name: {local}}}
	}
	mapped := egress.Grants{Map: map[string]string{"api.example.com": "127.0.0.1:" + canary.port}}
	for _, c := range []struct {
		name string
		err  error
		want plugin.Code
	}{
		{"loopback without a grant", ask(egress.Grants{}, "http://"+local, local), plugin.CodeEgressDenied},
		{"loopback for another plugin", ask(egress.Grants{Loopback: []string{"other"}}, "http://"+local, local), plugin.CodeEgressDenied},
		{"loopback", ask(granted, "http://"+local, local), ""},
		{"a host that only the administrator names", ask(named("sample"), "http://"+local), ""},
		{"the same for another plugin", ask(named("other"), "http://"+local), plugin.CodeEgressDenied},
		{"another host than it names", ask(named("sample"), "http://api.example.com/"), plugin.CodeEgressDenied},
		{"loopback by its address", ask(granted, "http://127.0.0.1:"+canary.port, "127.0.0.1:"+canary.port), ""},
		{"loopback that the manifest does not declare", ask(granted, "http://"+local), plugin.CodeEgressDenied},
		{"private in spite of loopback", ask(granted, "http://api.example.com", "api.example.com"), plugin.CodeEgressDenied},
		{"a mapped host", ask(mapped, "http://api.example.com", "api.example.com"), ""},
		{"a mapped host on another port", ask(mapped, "http://api.example.com:8443", "api.example.com:8443"), ""},
		{"a mapped host that the manifest does not declare", ask(mapped, "http://api.example.com", "other.example.com"), plugin.CodeEgressDenied},
		{"a host below a mapped one", ask(mapped, "http://x.api.example.com:"+canary.port, "localhost"), plugin.CodeEgressDenied},
	} {
		if plugin.CodeOf(c.err) != c.want {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	if n := canary.count(); n != 5 {
		t.Errorf("%d connections came", n)
	}
}

func TestNoProxyIsAsked(t *testing.T) {
	canary := newCanary(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+canary.port)
	}
	s := newScene(t).serve(func(http.ResponseWriter, *http.Request) {})
	s.must("http://api.example.com/", "timeout_seconds", (5 * time.Second).Seconds())
	if canary.count() != 0 {
		t.Error("the proxy was asked")
	}
}
