package kernel

import (
	"encoding/json"
	"testing"
)

// TestAShuPluginIsToldWhichFeedCallsIt, whatever its schema knows, and by the
// host alone.
func TestAShuPluginIsToldWhichFeedCallsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ input, overlay, want string }{
		{`{"op":"sync"}`, `{"exec":{"schedule_id":"f1"}}`, `{"__schedule_id":"f1","op":"sync"}`},
		{`{"__schedule_id":"own"}`, `{"exec":{"schedule_id":"f1"}}`, `{"__schedule_id":"own"}`},
		{`{"op":"sync"}`, `{"exec":{}}`, `{"op":"sync"}`},
		{`{"op":"sync"}`, `{"exec":7}`, `{"op":"sync"}`},
		{`{"op":"sync"}`, ``, `{"op":"sync"}`},
		{`[1]`, `{"exec":{"schedule_id":"f1"}}`, `[1]`},
		{`null`, `{"exec":{"schedule_id":"f1"}}`, `null`},
	} {
		if got := scheduled("__schedule_id", json.RawMessage(c.input), json.RawMessage(c.overlay)); string(got) != c.want {
			t.Errorf("%s under %s: %s", c.input, c.overlay, got)
		}
	}
}
