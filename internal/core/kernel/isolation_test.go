package kernel_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// byPlugin is a runner that isolates each plugin in its own way.
type byPlugin struct {
	kernel.Runner
	levels map[string]string
}

func (r byPlugin) Isolation(t *plugin.Target) string { return r.levels[t.Manifest.Name] }

// A script in process is not recorded with the level of processes.
func TestACallIsRecordedWithTheIsolationOfItsPlugin(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "script", "words"), target(t, "process", "words"))
	b.Runner = byPlugin{b, map[string]string{"script": "full", "process": "partial"}}
	for _, name := range []string{"script", "process"} {
		if _, err := b.Call(t.Context(), asking(name+"/words", `{"n":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	_, recs := b.records(t)
	for _, rec := range recs {
		if want := map[string]string{"script": "full", "process": "partial"}[rec.Plugin]; rec.Isolation != want {
			t.Errorf("%s is recorded with the isolation %q, and ran with %q", rec.Plugin, rec.Isolation, want)
		}
	}
	if len(recs) != 2 {
		t.Errorf("%d calls are recorded", len(recs))
	}
}
