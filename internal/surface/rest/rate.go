package rest

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// mostCounted is how many tokens are counted at a time. It is as many as a tenant may have.
const mostCounted = 10_000

// Rates returns what counts the requests of each token: so many a second, and at once.
func Rates(rate, burst int) *ratelimit.Limiter[string] {
	return ratelimit.New[string](float64(rate), float64(burst), mostCounted)
}

// countedAs is what the requests and streams of a caller are counted by: their token, or who
// they were authenticated as.
func countedAs(c *host.Caller) string {
	if c.Token != "" {
		return c.Token
	}
	return "asker " + c.Tenant() + " " + c.Asker
}

// often refuses a token more requests than it may make, whatever they ask for.
func (s *server) often(c *host.Caller) error {
	if wait := s.Rates.Take(countedAs(c), 1, time.Now()); wait > 0 {
		rate, burst := s.Rates.Bounds()
		message := fmt.Sprintf("a token makes at most %.0f requests a second, and %.0f at once", rate, burst)
		return &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: wait}
	}
	return nil
}

// shares counts the requests of each caller that are being answered.
type shares struct {
	mu sync.Mutex
	by map[string]int
}

// share counts a request in, where its caller has room for one more: some requests wait for
// long, and no caller takes all the room that there is. Streams are counted elsewhere.
func (s *server) share(c *host.Caller, r *http.Request) (leave func(), err error) {
	if Follows(r) {
		return func() {}, nil
	}
	by, n := countedAs(c), &s.busy
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by[by] >= s.Share {
		message := fmt.Sprintf("a token has at most %d requests answered at a time", s.Share)
		return func() {}, &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: time.Second}
	}
	if n.by == nil {
		n.by = map[string]int{}
	}
	n.by[by]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.by[by]--; n.by[by] == 0 {
			delete(n.by, by)
		}
	}, nil
}
