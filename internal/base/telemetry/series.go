package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Bounds of what metrics tell apart. Each tenant has its own, so that no tenant takes the
// names of another.
const (
	maxTenants     = 100    // by name, with the site's own; all others are one
	maxPairs       = 2000   // of an operation and an outcome, of the site's own tenant
	maxTenantPairs = 200    // likewise, of each other tenant
	maxSeries      = 40_000 // of one metric: more than the bounds above let there be
)

// What stands for all that a bound leaves out. No tenant and no operation is called so.
const (
	otherTenant    = "_other"
	otherOperation = "other"
)

// series are the labels that calls are counted by: the first that come, up to a number of
// them for each tenant.
type series struct {
	site string // the site's own tenant

	mu    sync.RWMutex // guards the rest
	known map[seriesKey]metric.MeasurementOption
	pairs map[string]int // by tenant, and so the tenants that have a name
}

type seriesKey struct{ tenant, operation, outcome string }

func newSeries(site string) *series {
	return &series{site: site, known: map[seriesKey]metric.MeasurementOption{}, pairs: map[string]int{site: 0, otherTenant: 0}}
}

// labels returns the labels of a call of a tenant.
func (s *series) labels(tenant, operation, outcome string) metric.MeasurementOption {
	s.mu.RLock()
	found := s.known[seriesKey{tenant, operation, outcome}]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := seriesKey{s.named(tenant), operation, outcome}
	most := maxTenantPairs
	if key.tenant == s.site {
		most = maxPairs
	}
	if s.known[key] == nil && s.pairs[key.tenant] >= most {
		key.operation = otherOperation
	}
	if found = s.known[key]; found != nil {
		return found
	}
	if key.operation != otherOperation {
		s.pairs[key.tenant]++
	}
	found = metric.WithAttributeSet(attribute.NewSet(attrTenant.String(key.tenant), attrTool.String(key.operation), attrOutcome.String(key.outcome)))
	s.known[key] = found
	return found
}

// tenant returns the name of a tenant as a metric has it.
func (s *series) tenant(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named(name)
}

// named is tenant. The caller holds the lock.
func (s *series) named(tenant string) string {
	if _, known := s.pairs[tenant]; known {
		return tenant
	}
	if len(s.pairs) > maxTenants { // of which one is that of all others
		return otherTenant
	}
	s.pairs[tenant] = 0
	return tenant
}
