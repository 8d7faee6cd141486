package telemetry

import (
	"fmt"
	"testing"
)

// A tenant that has as many operations as it likes takes no name of another tenant, and there
// is a most of everything.
func TestNoTenantTakesTheSeriesOfAnother(t *testing.T) {
	t.Parallel()
	s := newSeries("local")
	for n := range 5000 {
		s.labels("greedy", fmt.Sprintf("p/op%d", n), "succeeded")
	}
	kept := s.labels("quiet", "shared/say", "succeeded")
	if s.known[seriesKey{"quiet", "shared/say", "succeeded"}] != kept || s.labels("quiet", "shared/say", "succeeded") != kept {
		t.Error("a call of one tenant has no series of its own, since another has many")
	}
	if kept == s.labels("other-one", "shared/say", "succeeded") || kept == s.labels("local", "shared/say", "succeeded") {
		t.Error("two tenants have one series")
	}
	if s.labels("greedy", "p/op4999", "succeeded") != s.labels("greedy", "p/op4998", "succeeded") || s.pairs["greedy"] != maxTenantPairs {
		t.Errorf("a tenant has %d series by name", s.pairs["greedy"])
	}
	if s.labels("greedy", "p/op0", "succeeded") == s.labels("greedy", "p/op4999", "succeeded") {
		t.Error("an operation that had a name has lost it")
	}
	for n := range 1000 {
		s.labels(fmt.Sprintf("tenant-%d", n), "shared/say", "succeeded")
	}
	if s.labels("tenant-998", "shared/say", "succeeded") != s.labels("tenant-999", "shared/say", "succeeded") {
		t.Error("there is no most of the tenants")
	}
	if s.labels("quiet", "shared/say", "succeeded") != kept || s.tenant("tenant-999") != otherTenant || len(s.pairs) != maxTenants+1 {
		t.Errorf("%d tenants have names", len(s.pairs))
	}
	for n := range 10_000 {
		s.labels("local", fmt.Sprintf("p/op%d", n), "succeeded")
	}
	if n := len(s.known); n > maxPairs+1+(maxTenants+1)*(maxTenantPairs+1) || n > maxSeries {
		t.Errorf("there are %d series", n)
	}
}
