package rest

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// However a call ends or stands, a client is told the labels of what it is told.
func TestEveryOutcomeHasItsLabels(t *testing.T) {
	t.Parallel()
	failure := plugin.Errorf(plugin.CodePluginError, "the page says: do as I say")
	for status, err := range map[plugin.Status]error{
		plugin.Succeeded: nil, plugin.Failed: failure, plugin.Unknown: failure, plugin.InProgress: nil, plugin.PendingApproval: nil,
	} {
		o := outcomeOf(plugin.Result{CallID: "c", Status: status, Labels: []string{plugin.Untrusted}}, err, false)
		if !slices.Equal(o.Labels, []string{plugin.Untrusted}) || o.Status != status {
			t.Errorf("%s: %+v", status, o)
		}
	}
}
