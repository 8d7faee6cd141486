package kernel

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// metered are services that counted something.
type metered struct {
	plugin.Services
	counted plugin.Metrics
}

func (m metered) Metrics() plugin.Metrics { return m.counted }

func TestWhatTheHostCountedStandsInPlaceOfAClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said     plugin.Metrics
		services plugin.Services
		want     plugin.Metrics
	}{
		"nothing counted": {plugin.Metrics{"tokens_in": 1.0}, metered{}, plugin.Metrics{"tokens_in": 1.0}},
		"a false claim":   {plugin.Metrics{"cost_total": 0.0, "own": 7.0}, metered{counted: plugin.Metrics{"cost_total": 2.5, "tokens_in": 9}}, plugin.Metrics{"cost_total": 2.5, "tokens_in": 9, "own": 7.0}},
		"nothing said":    {nil, metered{counted: plugin.Metrics{"tokens_in": 9}}, plugin.Metrics{"tokens_in": 9}},
		"the host's word": {plugin.Metrics{"http_mapped": "x", "own": 7.0}, metered{}, plugin.Metrics{"own": 7.0}},
		"no meter":        {plugin.Metrics{"own": 7.0}, nil, plugin.Metrics{"own": 7.0}},
	} {
		if got := measured(c.said, c.services); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
