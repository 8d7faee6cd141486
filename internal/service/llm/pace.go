package llm

import (
	"time"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
)

// A pace bounds how many queries a tenant makes in a minute, of this host. A
// query that is too soon is refused with the time to wait.
type pace struct {
	perMinute int // 0 for no bound
	now       func() time.Time
	made      *ratelimit.Limiter[string] // by tenant; each has room for a minute's queries
}

// maxTenants is how many tenants are remembered.
const maxTenants = 1024

func newPace(perMinute int, now func() time.Time) *pace {
	return &pace{perMinute, now, ratelimit.New[string](float64(perMinute)/60, float64(perMinute), maxTenants)}
}

func (p *pace) take(tenant string) *Error {
	if p.perMinute == 0 {
		return nil
	}
	wait := p.made.Take(tenant, 1, p.now())
	if wait == 0 {
		return nil
	}
	e := errorf(Pace, "this host makes at most %d queries a minute for a tenant; ask again in %s", p.perMinute, wait.Round(time.Millisecond))
	e.RetryAfter = wait
	return e
}
