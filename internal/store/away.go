package store

import "errors"

// ErrAway means that the database cannot be used now: its server is away or overloaded, its disk
// fails, or another process holds it for too long. It is wrapped with its cause. The same
// question may be answered later. A store marks its errors with it in one place, so that callers
// tell an outage from a fault of the host.
var ErrAway = errors.New("the database cannot be used now")

// outages are all reasons why a store cannot be used.
var outages = []error{ErrAway, ErrFull, ErrFailed, ErrClosed, ErrLapsed}

// IsOutage reports whether an error says that the store could not be used.
func IsOutage(err error) bool {
	for _, outage := range outages {
		if errors.Is(err, outage) {
			return true
		}
	}
	return false
}
