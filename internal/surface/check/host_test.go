package check

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// indulgent lets agents run whatever they need.
type indulgent struct{ app.Agents }

func (indulgent) Brief(_ context.Context, _ *plugin.Target, call *plugin.Call) (json.RawMessage, error) {
	return call.Input, nil
}

// onHost puts an operation that echoes its input on trial, in a host of which
// one part was changed.
func onHost(t *testing.T, operation string, change func(*app.App) app.Variation) *trial {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	manifest := fmt.Sprintf("name: on.trial\nversion: 1.0.0\nowner: test\ndescription: It is on trial.\n"+
		"runner: {kind: process, command: [%q, plugin, echo, \"1.0.0\"], protocol: \"2\"}\nrequires: {context_fields: [student.profile]}\n"+
		"operations:\n  do: {description: Do it., %s}\n", self, operation)
	if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := openHost(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.home); err == nil {
			t.Error("the host left its directory behind")
		}
	})
	if _, err := h.Registry.Register(t.Context(), dir, registry.RegisterOptions{Dev: true, Enable: true}); err != nil {
		t.Fatal(err)
	}
	shown, err := h.Registry.Show(t.Context(), "on.trial")
	if err != nil {
		t.Fatal(err)
	}
	h.App.Kernel = h.Varied(change(h.App))
	return &trial{&checker{host: h}, shown, shown.Manifest.Operations[0], "on.trial/do", example{
		input: []byte(`{"intent":{"type":"A.B","payload":{}},"context":{"student":{"profile":{"name":"Ada"}}}}`),
	}}
}

// TestWhatTheHostGuaranteesIsCheckedToo: some checks hold for every plugin while
// the host does its part. Where it does not, they fail.
func TestWhatTheHostGuaranteesIsCheckedToo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, operation string
		change          func(*app.App) app.Variation
		check           func(ctx context.Context, one *trial) error
		want            string
	}{
		{"context", "kind: agent", func(a *app.App) app.Variation { return app.Variation{Agents: indulgent{a.Kernel.Agents}} },
			func(ctx context.Context, one *trial) error { return one.context(ctx) },
			"does not run without the context it needs: at /context: without student.profile it ended in "},
		{"permissions", "kind: operator, permissions: ['do:it']",
			func(*app.App) app.Variation {
				return app.Variation{Target: func(t *plugin.Target) { t.Operation.Permissions = nil }}
			},
			func(ctx context.Context, one *trial) error { return one.permissions(ctx) },
			"is refused to who lacks its permissions: at /permissions: it ran for a caller without the permissions"},
		{"key", "kind: operator", func(*app.App) app.Variation { return app.Variation{} },
			func(ctx context.Context, one *trial) error { // two keys, given out as one
				var both [2]answer
				for i := range both {
					r := one.request()
					r.key = fmt.Sprint("key-", i)
					var err error
					if both[i], err = one.host.call(ctx, r); err != nil {
						return err
					}
				}
				one.repeated(both[0], both[1])
				return nil
			}, "a repeated key gives the first result and runs nothing: the second call with the key ran it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one := onHost(t, c.operation, c.change)
			if err := c.check(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			results := one.report.Results
			if len(results) == 0 {
				t.Fatal("nothing was reported")
			}
			r := results[0]
			if got := r.Check + ": " + r.Detail; r.Outcome != Fail || r.Row != "KN-20" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%+v, want %q", r, c.want)
			}
		})
	}
}
