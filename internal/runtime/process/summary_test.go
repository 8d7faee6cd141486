package process

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestASummaryIsCutForModels, and for everyone but a person at the command line.
func TestASummaryIsCutForModels(t *testing.T) {
	t.Parallel()
	const maxSummary = 2000
	mill := &plugin.Target{Manifest: &plugin.Manifest{Contract: plugin.Contract{MaxSummary: maxSummary}}}
	other := &plugin.Target{Manifest: &plugin.Manifest{}}
	whole, long := strings.Repeat("é", maxSummary), strings.Repeat("é", maxSummary+1)
	short := strings.Repeat("é", maxSummary-3) + "..."
	for _, c := range []struct {
		target     *plugin.Target
		origin     plugin.Origin
		said, want string
	}{
		{mill, plugin.OriginCLI, long, long},
		{mill, plugin.OriginAgent, long, short},
		{mill, plugin.OriginPlan, long, short},
		{mill, plugin.OriginCall, long, short},
		{mill, "", long, short},
		{mill, plugin.OriginAgent, whole, whole},
		{mill, plugin.OriginAgent, " \n", " \n"},
		{other, plugin.OriginAgent, long, long},
		{mill, plugin.OriginAPI, long, short},
	} {
		res := plugin.Result{Summary: c.said}
		if brief(&res, c.target, &plugin.Call{Origin: c.origin}); res.Summary != c.want {
			t.Errorf("%q of %d bytes became one of %d", c.origin, len(c.said), len(res.Summary))
		}
	}
	res := plugin.Result{Summary: long} // of a command line that asks a host elsewhere
	if brief(&res, mill, &plugin.Call{Origin: plugin.OriginAPI, Whole: true}); res.Summary != long {
		t.Errorf("a summary of %d bytes became one of %d", len(long), len(res.Summary))
	}
}
