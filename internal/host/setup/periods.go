package setup

import (
	"cmp"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// Periods returns after which time data is removed, by its kind; 0 is never. What ledger.keep
// says of answers holds for all bodies where retention says nothing of them.
func Periods(c config.Config) map[string]time.Duration {
	r := c.Retention
	return map[string]time.Duration{
		"bodies": cmp.Or(time.Duration(r.Bodies), time.Duration(c.Ledger.Keep)), "calls": time.Duration(r.Calls), "sessions": time.Duration(r.Sessions),
		"conversations": time.Duration(r.Conversations), "deliveries": time.Duration(r.Deliveries), "cache": time.Duration(r.Cache), "packages": time.Duration(r.Packages),
	}
}
