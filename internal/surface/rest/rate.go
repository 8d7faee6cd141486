package rest

import (
	"fmt"
	"net/http"
	"slices"
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

// A tally counts what callers have at hand, by who they are and by their tenant.
type tally struct {
	mu  sync.Mutex
	all int
	by  map[string]int
}

// add counts one in, and returns what counts it out. The caller holds the lock.
func (t *tally) add(names ...string) (leave func()) {
	if t.by == nil {
		t.by = map[string]int{}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	t.all++
	for _, name := range names {
		t.by[name]++
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		for _, name := range names {
			if t.by[name]--; t.by[name] == 0 {
				delete(t.by, name)
			}
		}
	}
}

// tenantOf is what requests and streams are counted by beside their caller: the tenant where
// it is not the site's own, which has no bound as a whole.
func (s *server) tenantOf(c *host.Caller) string {
	if name := c.Tenant(); name != "" && name != s.Host.Guard().Tenant {
		return "tenant " + name
	}
	return ""
}

// share counts a request in, where its caller has room for one more: some requests wait for
// long, and no caller takes all the room that there is. Streams are counted elsewhere.
func (s *server) share(c *host.Caller, r *http.Request) (leave func(), err error) {
	if Follows(r) {
		return func() {}, nil
	}
	by, tenant, n := countedAs(c), s.tenantOf(c), &s.busy
	n.mu.Lock()
	defer n.mu.Unlock()
	most, of := s.Share, "a token"
	if n.by[by] < most && tenant != "" && n.by[tenant] >= s.Share*3/2 {
		most, of = s.Share*3/2, "a tenant"
	} else if n.by[by] < most {
		return n.add(by, tenant), nil
	}
	message := fmt.Sprintf("%s has at most %d requests answered at a time", of, most)
	return func() {}, &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: time.Second}
}
