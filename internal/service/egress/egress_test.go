package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestWhichHostsAnEntryCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entry, url string
		want       bool
	}{
		{"api.example.com", "https://api.example.com/x", true},
		{"api.example.com", "http://API.EXAMPLE.COM:80/x", true},
		{"api.example.com", "http://api.example.com:443/x", true},
		{"api.example.com", "https://api.example.com:8443/x", false},
		{"api.example.com", "https://x.api.example.com/", false},
		{"api.example.com", "https://example.com/", false},
		{"api.example.com:8443", "https://api.example.com:8443/", true},
		{"api.example.com:8443", "https://api.example.com/", false},
		{"api.example.com:443", "https://api.example.com/", true},
		{"api.example.com:443", "http://api.example.com/", false},
		{".example.com", "https://a.b.example.com/", true},
		{".example.com", "https://example.com/", false},
		{".example.com", "https://badexample.com/", false},
		{".example.com", "https://example.com.evil.net/", false},
		{".example.com:8080", "http://a.example.com:8080/", true},
		{"192.0.2.1", "http://192.0.2.1/", true},
		{"192.0.2.1", "http://192.0.2.10/", false},
		{"[2001:db8::1]", "http://[2001:DB8:0::1]/", true},
		{"[2001:db8::1]:81", "http://[2001:db8::1]:81/", true},
		{"localhost:11434", "http://localhost:11434/api", true},
	} {
		u, err := ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		err = Allow([]string{"other.example.net", c.entry}, u)
		if c.want != (err == nil) || err != nil && plugin.CodeOf(err) != plugin.CodeEgressDenied {
			t.Errorf("%s, %s: %v", c.entry, c.url, err)
		}
	}
}

// TestARefusalSaysWhatToWrite takes the host that the message proposes, and
// declares it.
func TestARefusalSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://api.example.com/x", "http://api.example.com/", "http://api.example.com:80/", "https://api.example.com:8443/", "http://[2001:db8::1]:81/", "https://[2001:db8::443]/"} {
		u, err := ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		message := Allow(nil, u).Error()
		_, rest, _ := strings.Cut(message, `hosts: ["`)
		host, _, _ := strings.Cut(rest, `"`)
		if err := Allow([]string{host}, u); err != nil {
			t.Errorf("%s proposes %q: %v", raw, message, err)
		}
	}
}

func TestEveryRangeFromItsFirstToItsLast(t *testing.T) {
	t.Parallel()
	for _, r := range refused {
		first := r.prefix.Masked().Addr()
		last := lastOf(r.prefix)
		for _, addr := range []netip.Addr{first, last} {
			if Refusal(addr) == "" {
				t.Errorf("%s of %s is not refused", addr, r.prefix)
			}
			if addr.Is4() {
				mapped := netip.AddrFrom16(addr.As16())
				bytes := nat64.Addr().As16()
				four := addr.As4()
				copy(bytes[12:], four[:])
				if Refusal(mapped) == "" || Refusal(netip.AddrFrom16(bytes)) == "" {
					t.Errorf("%s is not refused inside an IPv6 address", addr)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"::ffff:8.8.8.8": "", "::ffff:127.0.0.1": "loopback", "64:ff9b::808:808": "", "64:ff9b::a00:1": "private", "2600:1::5efe:a00:1": "private", "2600:1::200:5efe:a00:1": "private",
		"2600:1::5efe:808:808": "", "fe80::1%eth0": "of this machine's own network", "2600::1%eth0": "of this machine's own network", "::8.8.8.8": "reserved",
	} {
		if got := Refusal(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if Refusal(netip.Addr{}) == "" {
		t.Error("no address at all is let through")
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// FuzzParseURL holds what is accepted to one reading: printed and read again it
// is the same, its host is a name or an address in its one form, and nothing of
// it could be taken for a host by another reader.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/a?b=c#d", "http://[2001:DB8::1]:80/", "http://1.2.3.4", "HTTP://A.b:1", "http://a@b", "http://0x7f.1", "http:/\\a", "http://a%2eb", "//a", "http://a:b@c:80",
		"http://[::ffff:1.2.3.4]", "http://a..b", "http://a.:80", "http://a?@b", "http://a#@b", "http://xn--a.b/%zz", "http://a/%", "http://a:00080",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := ParseURL(raw)
		if err != nil {
			if code := plugin.CodeOf(err); code != plugin.CodeEgressDenied && code != plugin.CodeInvalidInput {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		name, port := Endpoint(u)
		canonical, err := hostName(name)
		if err != nil || canonical != name || port == 0 || u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
			t.Errorf("%q: accepted as %s, host %q, %v", raw, u, name, err)
		}
		if name != u.Hostname() {
			t.Errorf("%q: the library dials %q, not %q", raw, u.Hostname(), name)
		}
		again, err := ParseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q: printed as %s and read as %v, %v", raw, u, again, err)
		}
		if plain, err := url.Parse(u.String()); err != nil || plain.Host != u.Host {
			t.Errorf("%q: %v, %v", raw, plain, err)
		}
	})
}

// FuzzParseHost holds an entry that is accepted to cover what it names.
func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"a.b", ".a.b", "a:1", "[::1]:1", "1.2.3.4", "a..b", ".1", "0x1", "[a]", "a.b:443"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHost(text)
		if err != nil {
			return
		}
		name := text
		if h.suffix {
			name = "x" + text
		}
		u, err := ParseURL("http://" + name)
		if err != nil {
			if !h.suffix || len(text) < 240 {
				t.Errorf("%q is an entry and no host: %v", text, err)
			}
			return
		}
		if err := Allow([]string{text}, u); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
