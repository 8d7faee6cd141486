package rest

import (
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// Every code has a status of its own kind, and there is no other status.
func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	for _, code := range plugin.Codes {
		if status, known := statuses[code]; !known || status < 400 || status > 599 {
			t.Errorf("%s is answered with %d", code, status)
		}
	}
	if len(statuses) != len(plugin.Codes) {
		t.Errorf("%d codes have a status, of %d", len(statuses), len(plugin.Codes))
	}
	for code := range ofRun {
		if !code.Known() {
			t.Errorf("there is no code %s", code)
		}
	}
}
