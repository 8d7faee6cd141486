package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Quotas say how many calls principals may make. Where none is written, any number.
type Quotas struct {
	Zone       string           `yaml:"zone" json:"zone"`             // in which days and months begin, like Europe/Berlin; UTC where it is empty
	Total      Quota            `yaml:"total" json:"total"`           // of all principals together
	Default    Quota            `yaml:"default" json:"default"`       // of each principal that principals does not name
	Principals map[string]Quota `yaml:"principals" json:"principals"` // likewise, by principal
	Plugins    map[string]Quota `yaml:"plugins" json:"plugins"`       // of each principal's calls to a plugin, or to plugin/operation
	Providers  map[string]int   `yaml:"providers" json:"providers"`   // calls at once that act with accounts of a provider
}

// A Quota is how many calls there may be; 0 is any number.
type Quota struct {
	Day        int64 `yaml:"day,omitempty" json:"day,omitempty"`
	Month      int64 `yaml:"month,omitempty" json:"month,omitempty"`
	Minute     int   `yaml:"minute,omitempty" json:"minute,omitempty"`         // on each node
	Concurrent int   `yaml:"concurrent,omitempty" json:"concurrent,omitempty"` // on each node; under plugins, of all principals together
}

// Location is the zone in which days and months begin.
func (q Quotas) Location() (*time.Location, error) { return time.LoadLocation(q.Zone) }

// The largest quotas there can be.
const (
	maxQuota      = 1_000_000_000_000
	maxMinute     = 10_000_000
	maxConcurrent = 100_000
	maxQuotas     = 1000 // of one list
)

var pluginOrOperation = pattern.New(`^[A-Za-z0-9_.-]{1,128}(/[A-Za-z0-9_.-]{1,128})?$`)

func (q Quotas) check() []error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := q.Location(); err != nil || q.Zone == "Local" {
		refuse("quotas.zone is %q; it is a time zone such as Europe/Berlin, or empty for UTC", q.Zone)
	}
	if len(q.Principals) > maxQuotas || len(q.Plugins) > maxQuotas || len(q.Providers) > maxQuotas {
		refuse("quotas: a list has at most %d", maxQuotas)
	}
	one := func(key string, of Quota) {
		for name, most := range map[string][2]int64{"day": {of.Day, maxQuota}, "month": {of.Month, maxQuota}, "minute": {int64(of.Minute), maxMinute}, "concurrent": {int64(of.Concurrent), maxConcurrent}} {
			if most[0] < 0 || most[0] > most[1] {
				refuse("quotas.%s.%s is %d; it is 0, for any number, to %d", key, name, most[0], most[1])
			}
		}
	}
	one("total", q.Total)
	one("default", q.Default)
	for _, name := range slices.Sorted(maps.Keys(q.Principals)) {
		one("principals."+name, q.Principals[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.Plugins)) {
		one("plugins."+name, q.Plugins[name])
		if !pluginOrOperation.MatchString(name) {
			refuse("quotas.plugins names %.200q; write a plugin, or plugin/operation", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Providers)) {
		if n := q.Providers[name]; n < 1 || n > maxConcurrent {
			refuse("quotas.providers.%.100s is %d; it is 1 to %d", name, n, maxConcurrent)
		}
	}
	return errs
}
