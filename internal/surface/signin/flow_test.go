package signin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// What waits for an answer counts once, in time and in its browser; there is room for so many.
func TestAFlowCountsOnceAndInTime(t *testing.T) {
	t.Parallel()
	f := newFlows()
	f.put("late", flow{expires: time.Now().Add(-time.Second)})
	f.put("one", flow{browser: hashOf("ann's"), expires: time.Now().Add(time.Minute)})
	for _, c := range []struct {
		state, browser string
		want           bool
	}{{"late", "", false}, {"one", "", false}, {"one", "ben's", false}, {"one", "ann's", true}, {"one", "ann's", false}, {"none", "ann's", false}} {
		if _, open := f.take(c.state, c.browser); open != c.want {
			t.Errorf("%+v: %v", c, open)
		}
	}
	for i := range maxFlows + 10 {
		f.put(strconv.Itoa(i), flow{expires: time.Now().Add(time.Minute + time.Duration(i)*time.Millisecond)})
	}
	if _, open := f.take("0", ""); open || len(f.open) > maxFlows {
		t.Errorf("there are %d, and the oldest is open: %v", len(f.open), open)
	}
	if _, open := f.take(strconv.Itoa(maxFlows+9), ""); !open {
		t.Error("the newest is gone")
	}
}

// noPeople knows one session, with the secret "good".
type noPeople struct{ People }

func (noPeople) Caller(_ context.Context, secret, _ string) (host.Caller, error) {
	if secret == "good" {
		return host.Caller{}, nil
	}
	return host.Caller{}, plugin.Errorf(plugin.CodeUnauthenticated, "there is no such session")
}

// An address that guesses cookies is slowed down after a burst. Good cookies cost nothing.
func TestCookiesOfOneAddressAreCounted(t *testing.T) {
	t.Parallel()
	s, err := New(Options{People: noPeople{}, Base: "https://mortise.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for range 3 * lookBurst {
		if _, err := s.caller(r, "good"); err != nil {
			t.Fatalf("a good cookie: %v", err)
		}
	}
	guesses := 0
	for code := plugin.CodeUnauthenticated; code == plugin.CodeUnauthenticated; guesses++ {
		_, err := s.caller(r, "guess")
		code = plugin.CodeOf(err)
		if code != plugin.CodeUnauthenticated && code != plugin.CodeRateLimited {
			t.Fatalf("guess %d: %v", guesses, err)
		}
	}
	if guesses <= lookBurst {
		t.Errorf("guess %d is slowed down, want %d guesses without delay", guesses, lookBurst)
	}
}

// An address that begins as many sign-ins as are kept ends its own, and none of another's.
func TestManySignInsOfOneAddressEndNoneOfAnother(t *testing.T) {
	t.Parallel()
	f := newFlows()
	expires := time.Now().Add(time.Minute)
	f.put("ann's", flow{from: "192.0.2.1", expires: expires})
	for i := range 2 * maxFlows {
		f.put(strconv.Itoa(i), flow{from: "198.51.100.7", expires: expires.Add(time.Duration(i))})
	}
	if len(f.open) > maxFlows {
		t.Errorf("%d flows are kept, want at most %d", len(f.open), maxFlows)
	}
	if _, open := f.take("ann's", ""); !open {
		t.Error("the sign-in of another address was ended")
	}
}

// Whatever is counted by address is counted by that of the client, and once for the whole
// network of an IPv6 client. Another client behind the same proxy is not slowed down.
func TestAddressesAreThoseOfClients(t *testing.T) {
	t.Parallel()
	proxies, err := clientaddr.ParseProxies([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	from := func(client string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1000"
		r.Header.Set("X-Forwarded-For", client)
		return r
	}
	counted := map[string]func(s *Server, r *http.Request) bool{
		"sign-ins": func(s *Server, r *http.Request) bool { return s.may(httptest.NewRecorder(), r) },
		"cookies": func(s *Server, r *http.Request) bool {
			_, err := s.caller(r, "guess")
			return plugin.CodeOf(err) == plugin.CodeUnauthenticated
		},
	}
	for name, passes := range counted {
		for _, clients := range [][3]string{{"198.51.100.7", "198.51.100.7", "198.51.100.8"}, {"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:3::1"}} {
			s, err := New(Options{People: noPeople{}, Base: "https://mortise.example.com", Address: proxies.Of})
			if err != nil {
				t.Fatal(err)
			}
			for passes(s, from(clients[0])) { // until the address is slowed down
			}
			if passes(s, from(clients[1])) && passes(s, from(clients[1])) && passes(s, from(clients[1])) && passes(s, from(clients[1])) {
				t.Errorf("%s: %s passes after %s was slowed down, want one group", name, clients[1], clients[0])
			}
			if !passes(s, from(clients[2])) {
				t.Errorf("%s: %s is slowed down for %s", name, clients[2], clients[0])
			}
		}
	}
}
