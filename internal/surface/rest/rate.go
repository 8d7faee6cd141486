package rest

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// mostCounted is how many tokens are counted at a time. It is as many as a tenant may have.
const mostCounted = 10_000

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
	if wait := s.rates.Take(countedAs(c), 1, time.Now()); wait > 0 {
		message := fmt.Sprintf("a token makes at most %d requests a second, and %d at once", s.Rate, s.Burst)
		return &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: wait}
	}
	return nil
}
