package clientaddr_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
)

// The address of a client is what the nearest proxy that is not trusted, or the connection,
// says; nothing that the client writes changes it.
func TestTheAddressIsReadOnlyAsFarAsItIsTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted   []string
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                    {nil, "192.0.2.1:1000", nil, "192.0.2.1"},
		"no proxy is trusted":         {nil, "10.0.0.1:1000", []string{"198.51.100.7"}, "10.0.0.1"},
		"not from the proxy":          {[]string{"10.0.0.0/8"}, "192.0.2.1:1000", []string{"198.51.100.7"}, "192.0.2.1"},
		"one proxy":                   {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"198.51.100.7"}, "198.51.100.7"},
		"a single address":            {[]string{"10.0.0.1"}, "10.0.0.1:1000", []string{"198.51.100.7"}, "198.51.100.7"},
		"another address":             {[]string{"10.0.0.1"}, "10.0.0.2:1000", []string{"198.51.100.7"}, "10.0.0.2"},
		"what the client wrote":       {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		"in a header of its own":      {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"1.1.1.1", "198.51.100.7"}, "198.51.100.7"},
		"the client names a proxy":    {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"10.0.0.9, 198.51.100.7"}, "198.51.100.7"},
		"two proxies":                 {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"1.1.1.1, 198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		"a client in that network":    {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"10.0.0.7"}, "10.0.0.7"},
		"no header":                   {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", nil, "10.0.0.1"},
		"an empty header":             {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{""}, "10.0.0.1"},
		"no address":                  {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"1.1.1.1, unknown"}, "10.0.0.1"},
		"no address further left":     {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"unknown, 10.0.0.2"}, "10.0.0.2"},
		"a port":                      {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"198.51.100.7:5000"}, "198.51.100.7"},
		"IPv6":                        {[]string{"fd00::/8"}, "[fd00::1]:1000", []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 with a port":            {[]string{"fd00::/8"}, "[fd00::1]:1000", []string{"[2001:db8::7]:5000"}, "2001:db8::7"},
		"IPv4 as IPv6":                {[]string{"10.0.0.0/8"}, "[::ffff:10.0.0.1]:1000", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		"a socket":                    {[]string{"10.0.0.0/8"}, "@", []string{"198.51.100.7"}, "@"},
		"more proxies than are read":  {[]string{"10.0.0.0/8"}, "10.0.0.1:1000", []string{"198.51.100.7" + strings.Repeat(", 10.0.0.3", 50)}, "10.0.0.3"},
		"no address of a connection":  {nil, "", nil, ""},
		"a name of a local transport": {nil, "pipe", []string{"198.51.100.7"}, "pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			proxies, err := clientaddr.ParseProxies(c.trusted)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			r.Header["X-Forwarded-For"] = c.forwarded
			if got := proxies.Of(r); got != c.want {
				t.Errorf("the client is %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsNoNetworkIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "proxy", "10.0.0.0/33", "0.0.0.0/0", "::/0", "10.0.0.0/-1", "fe80::1%eth0", "::ffff:10.0.0.0/104"} {
		if got, err := clientaddr.ParseProxies([]string{text}); err == nil {
			t.Errorf("%q was read as %v, want an error", text, got)
		}
	}
}

// A machine counts once, whichever of its addresses it takes.
func TestTheAddressesOfOneMachineAreOneGroup(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2::1": "2001:db8:1:2::/64", "2001:db8:1:2:ffff::9": "2001:db8:1:2::/64",
		"2001:db8:1:3::1": "2001:db8:1:3::/64", "::1": "::/64", "fe80::1%eth0": "fe80::/64", "@": "@", "": "", "a name": "a name",
	} {
		if got := clientaddr.Group(address); got != want {
			t.Errorf("Group(%q) = %q, want %q", address, got, want)
		}
	}
}
