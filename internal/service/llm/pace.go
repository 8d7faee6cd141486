package llm

import (
	"sync"
	"time"
)

// A pace bounds how many queries a tenant makes in a minute, of this host. A
// query that is too soon is refused with the time to wait.
type pace struct {
	perMinute int // 0 for no bound
	now       func() time.Time

	mu   sync.Mutex
	made map[string]*bucket // by tenant
}

// A bucket has room for a minute's queries and empties at the pace.
type bucket struct {
	level float64
	at    time.Time
}

// maxTenants is how many tenants are remembered; beyond it those that have made
// no query in a minute are forgotten.
const maxTenants = 1024

func (p *pace) take(tenant string) *Error {
	if p.perMinute == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	b := p.made[tenant]
	if b == nil {
		if len(p.made) >= maxTenants {
			for name, old := range p.made {
				if now.Sub(old.at) > time.Minute {
					delete(p.made, name)
				}
			}
		}
		b = &bucket{at: now}
		p.made[tenant] = b
	}
	rate := float64(p.perMinute) / 60
	b.level = max(0, b.level-now.Sub(b.at).Seconds()*rate)
	b.at = now
	if b.level+1 > float64(p.perMinute) {
		wait := time.Duration((b.level + 1 - float64(p.perMinute)) / rate * float64(time.Second))
		e := errorf(Pace, "this host makes at most %d queries a minute for a tenant; ask again in %s", p.perMinute, wait.Round(time.Millisecond))
		e.RetryAfter = wait
		return e
	}
	b.level++
	return nil
}
