package kernel

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestACallIsKeptWithWhatTheHostDecides: who runs it again does so with the same
// account and the same schedule.
func TestACallIsKeptWithWhatTheHostDecides(t *testing.T) {
	t.Parallel()
	call := &plugin.Call{
		ID: "c", Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "ann"}, Origin: plugin.OriginFeed, Session: "s", Depth: 2,
		Labels: []string{plugin.Private}, Operation: "mail/list@=1.0.0", Input: json.RawMessage(`{"n":1}`), Key: "k", Place: "p",
		Overlay: json.RawMessage(`{"exec":{"schedule_id":"f1"}}`), Digest: "sha256:0",
	}
	r := &attempt{call: call}
	var s stored
	if err := json.Unmarshal(r.encode(), &s); err != nil {
		t.Fatal(err)
	}
	got := s.call(&store.CallRow{ID: "c", Tenant: "t", Operation: "mail/list", Version: "1.0.0", PackageDigest: "sha256:0"})
	if !reflect.DeepEqual(got, call) {
		t.Errorf("got  %+v\nwant %+v", got, call)
	}
}
