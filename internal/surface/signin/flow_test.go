package signin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

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
