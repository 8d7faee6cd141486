package process_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// What a plugin logs, and what it writes to standard error while it works on
// one call, are records of the host's own log that name the call and what it
// belongs to.
func TestLogRecordsNameTheirCall(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	r := newRunner(t, process.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	c := call(`{}`)
	c.ID, c.Tenant, c.Trace = "call-1", "acme", plugin.Trace{Correlation: "corr-1"}
	if _, err := run(t, r, target("good", "talk"), c); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a record": "WARN", "of stderr": "INFO"}
	for line := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		var record struct {
			Level, Msg, Plugin, Tenant string
			CallID                     string `json:"call_id"`
			Correlation                string `json:"correlation_id"`
			Fields                     map[string]any
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for message, level := range want {
			if !strings.Contains(record.Msg, message) {
				continue
			}
			delete(want, message)
			if record.Level != level || record.CallID != "call-1" || record.Correlation != "corr-1" || record.Tenant != "acme" || record.Plugin != "test.plugin@1.0.0" {
				t.Errorf("%s", line)
			}
			if message == "a record" && record.Fields["n"] != 1.0 {
				t.Errorf("the fields are missing from %s", line)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no record of %v in\n%s", want, out.String())
	}
}

// A manifest says from which level its plugin's log is kept (kernel contracts, 5.1.1).
func TestALogBeginsAtTheManifestsLevel(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	r := newRunner(t, process.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	warnings := func(m *plugin.Manifest) { m.Observability.LogLevel = "warning" }
	if _, err := run(t, r, target("good", "talk", warnings), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	if said := out.String(); !strings.Contains(said, "a record") || strings.Contains(said, "of stderr") {
		t.Errorf("a warning is missing, or a line below warning is there: %s", said)
	}
}

// A lockedBuffer may be written to by many.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
