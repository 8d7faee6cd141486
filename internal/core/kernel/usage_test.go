package kernel

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestWhatTheHostCountedStandsInPlaceOfAClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said, counted, want plugin.Metrics
	}{
		"nothing counted": {plugin.Metrics{"tokens_in": 1.0}, nil, plugin.Metrics{"tokens_in": 1.0}},
		"a false claim":   {plugin.Metrics{"cost_total": 0.0, "own": 7.0}, plugin.Metrics{"cost_total": 2.5, "tokens_in": 9}, plugin.Metrics{"cost_total": 2.5, "tokens_in": 9, "own": 7.0}},
		"nothing said":    {nil, plugin.Metrics{"tokens_in": 9}, plugin.Metrics{"tokens_in": 9}},
		"the host's word": {plugin.Metrics{"http_mapped": "x", "own": 7.0}, nil, plugin.Metrics{"own": 7.0}},
	} {
		if got := metrics(c.said, c.counted); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
