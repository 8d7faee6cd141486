package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Retention says after which time data is removed. A period that is not written keeps it for
// good.
type Retention struct {
	Bodies        Period `yaml:"bodies" json:"bodies"`               // inputs, results, previews and answers of calls that have ended; their hashes stay
	Calls         Period `yaml:"calls" json:"calls"`                 // calls that have ended, but for those with a key of their caller's
	Sessions      Period `yaml:"sessions" json:"sessions"`           // sessions with their artifacts, in which nothing happened
	Conversations Period `yaml:"conversations" json:"conversations"` // closed conversations with agents, and their messages
	Deliveries    Period `yaml:"deliveries" json:"deliveries"`       // marks of what channels delivered, and events that no webhook took
	Cache         Period `yaml:"cache" json:"cache"`                 // what plugins cached
	Packages      Period `yaml:"packages" json:"packages"`           // files of removed plugins that a PostgreSQL database holds for its nodes
}

// A Period is a time in days, weeks or years, or a duration.
type Period time.Duration

const day = 24 * time.Hour

var periodUnits = map[string]time.Duration{"d": day, "w": 7 * day, "y": 365 * day}

// UnmarshalYAML reads a period.
func (p *Period) UnmarshalYAML(raw []byte) error {
	var text string
	if err := yaml.Unmarshal(raw, &text); err != nil {
		return err
	}
	for unit, size := range periodUnits {
		if n, found := strings.CutSuffix(text, unit); found {
			count, err := strconv.Atoi(n)
			if err != nil || count < 0 || count > 36500 || time.Duration(count) > 100*365*day/size {
				return fmt.Errorf("%q is no period; write one like 30d, 8w or 2y, at most 100y", text)
			}
			*p = Period(time.Duration(count) * size)
			return nil
		}
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return fmt.Errorf("%q is no period; write one like 30d, 8w, 2y or 36h", text)
	}
	*p = Period(value)
	return nil
}

// String returns a period as it is read: in days where it is of whole ones.
func (p Period) String() string {
	if d := time.Duration(p); d >= day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return time.Duration(p).String()
}

// MarshalJSON writes a period as it is read.
func (p Period) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// The shortest periods. What is removed sooner could be asked for again by what goes on: a
// delivery that comes a second time would be taken for a new one.
const (
	shortestPeriod   = time.Minute
	shortestDelivery = 2 * day
	shortestPackage  = time.Hour // while a package is being registered, no row needs it yet
)

func (r Retention) check() []error {
	var errs []error
	for _, one := range []struct {
		key   string
		value Period
		least time.Duration
	}{
		{"bodies", r.Bodies, shortestPeriod}, {"calls", r.Calls, shortestPeriod}, {"sessions", r.Sessions, shortestPeriod},
		{"conversations", r.Conversations, shortestPeriod}, {"deliveries", r.Deliveries, shortestDelivery}, {"cache", r.Cache, shortestPeriod}, {"packages", r.Packages, shortestPackage},
	} {
		if one.value != 0 && time.Duration(one.value) < one.least {
			errs = append(errs, fmt.Errorf("retention.%s is %s; it is at least %s, or 0 to keep all", one.key, one.value, Period(one.least)))
		}
	}
	return errs
}
