package signin_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// Where the clocks of the host and a provider differ by less than a minute a sign-in counts.
// What is of the future beyond that, or has ended, signs no one in.
func TestClocksThatDiffer(t *testing.T) {
	b := begin(t)
	b.person("ann", "ann's account")
	for what, c := range map[string]struct {
		claim  string
		off    time.Duration
		status int
	}{
		"made a moment ahead":       {"iat", 40 * time.Second, 303},
		"made too far ahead":        {"iat", 80 * time.Second, 403},
		"in force in a moment":      {"nbf", 40 * time.Second, 303},
		"in force in an hour":       {"nbf", time.Hour, 403},
		"ended":                     {"exp", -time.Second, 403},
		"asked for a moment ahead":  {"auth_time", 40 * time.Second, 303},
		"asked for too far ahead":   {"auth_time", 80 * time.Second, 403},
		"made long ago, and counts": {"iat", -time.Hour, 303},
	} {
		b.forge(func(s *accounttest.Server) { s.Claims = map[string]any{c.claim: time.Now().Add(c.off).Unix()} })
		one := b.browser()
		a := one.signIn("ann's account", "")
		if known := one.whoami() == http.StatusOK; a.status != c.status || known != (c.status == 303) {
			t.Errorf("an ID token that is %s: %d %s", what, a.status, a.text)
		}
	}
	b.forge(func(s *accounttest.Server) { s.Claims = nil })
	// A step-up that was answered with a sign-in of before is none, up to what clocks differ by.
	b.forge(func(s *accounttest.Server) {
		s.Claims = map[string]any{"auth_time": time.Now().Add(-80 * time.Second).Unix()}
	})
	if a := b.browser().signIn("ann's account", "&prompt=login"); a.status != 403 {
		t.Errorf("a step-up of 80 s ago: %d %s", a.status, a.text)
	}
}

// A stream that was opened with a cookie ends when its session does.
func TestAStreamEndsWithItsSession(t *testing.T) {
	b := begin(t)
	ann := b.person("ann", "ann's account")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := (&http.Client{Jar: ann.jar}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stuck := time.AfterFunc(testwait.Limit, func() { resp.Body.Close() })
	defer stuck.Stop()
	if status, out := b.mortise("users", "disable", "ann"); status != 0 {
		t.Fatal(out)
	}
	last := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text := strings.TrimPrefix(lines.Text(), ":"); text != "" {
			last = text
		}
	}
	if resp.StatusCode != http.StatusOK || last != "the token is not valid any more" {
		t.Errorf("%d, it ends with %q", resp.StatusCode, last)
	}
}
