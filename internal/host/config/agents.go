package config

import (
	"fmt"
	"time"
)

// Agents says for how long what is of agents is kept.
type Agents struct {
	Idle       Duration `yaml:"idle" json:"idle"`             // after which a conversation ends in which nothing happens, and plugins of an agent that is not started are closed
	Deliveries Duration `yaml:"deliveries" json:"deliveries"` // for which a delivery of a channel is known again
}

// Bounds of what is kept of agents. Platforms send a delivery again for up to three days.
const (
	minIdle       = time.Minute
	minDeliveries = 72 * time.Hour
	maxAgentTime  = 10 * 365 * 24 * time.Hour
)

func (a Agents) check() (errs []error) {
	for _, period := range []struct {
		name  string
		is    Duration
		least time.Duration
	}{{"agents.idle", a.Idle, minIdle}, {"agents.deliveries", a.Deliveries, minDeliveries}} {
		if is := time.Duration(period.is); is < period.least || is > maxAgentTime {
			errs = append(errs, fmt.Errorf("%s is %s; it is at least %s and at most %s", period.name, is, period.least, maxAgentTime))
		}
	}
	return errs
}
