package rest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// mostCounted is how many tokens are counted at a time. It is as many as a tenant may have.
const mostCounted = 10_000

// countedAs is what the requests of a caller are counted by: their token.
func countedAs(c *host.Caller) string {
	if c.Token != "" {
		return c.Token
	}
	return "asker " + c.Asker
}

// often refuses a token more requests than it may make, whatever they ask for.
func (s *server) often(c *host.Caller) error {
	if wait := s.rates.Take(countedAs(c), 1, time.Now()); wait > 0 {
		message := fmt.Sprintf("a token makes at most %d requests a second, and %d at once", s.Rate, s.Burst)
		return &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: wait}
	}
	return nil
}

// A counted answer knows its status. One that says that nothing has changed is not counted.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (c *counted) WriteHeader(status int) {
	if status >= http.StatusOK && c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
