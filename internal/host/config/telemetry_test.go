package config_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestTelemetryIsChecked(t *testing.T) {
	t.Parallel()
	if c := config.Default(); c.Telemetry != (config.Telemetry{Sample: 1}) {
		t.Errorf("by default %+v", c.Telemetry)
	}
	for text, want := range map[string]string{
		"telemetry: {traces: 'http://127.0.0.1:4318', sample: 0.1, metrics: true}": "",
		"telemetry: {traces: '127.0.0.1:4318'}":                                    "telemetry.traces",
		"telemetry: {traces: 'http://me:secret@127.0.0.1:4318'}":                   "telemetry.traces",
		"telemetry: {traces: 'file:///tmp/x'}":                                     "telemetry.traces",
		"telemetry: {sample: 1.5}":                                                 "telemetry.sample",
		"telemetry: {sample: .nan}":                                                "telemetry.sample",
	} {
		_, err := config.Parse([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
