package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
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
	heard := hearsStderr(func() bool { return strings.Contains(out.String(), "of stderr") })
	if _, err := r.Run(t.Context(), target("good", "talk"), c, heard); err != nil {
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
	if _, err := r.Run(t.Context(), target("good", "talk", warnings), call(`{}`), hearsStderr(nil)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil { // all that the process wrote is read then
		t.Fatal(err)
	}
	if said := out.String(); !strings.Contains(said, "a record") || strings.Contains(said, "of stderr") {
		t.Errorf("a warning is missing, or a line below warning is there: %s", said)
	}
}

// hearsStderr are the services of the tool talk: they answer it once the line that
// it wrote to standard error has arrived, or at once if heard is nil.
type hearsStderr func() bool

func (heard hearsStderr) Serve(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	for heard != nil && !heard() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return json.RawMessage(`{}`), nil
}

// await returns when text was written to the buffer.
func (b *lockedBuffer) await(t testing.TB, text string) {
	t.Helper()
	testwait.Until(t, "the log has "+text, func() bool { return strings.Contains(b.String(), text) })
}

// when calls do, in another goroutine, once text was written to the buffer. It does
// not if the test ends before.
func (b *lockedBuffer) when(t testing.TB, text string, do func()) {
	go func() {
		for !strings.Contains(b.String(), text) {
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				return
			}
		}
		do()
	}()
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
