package registry

import (
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// A built-in plugin is resolved by its name, and registering another one under that
// name is refused.
func TestBuiltinPlugins(t *testing.T) {
	t.Parallel()
	op := &plugin.Operation{Name: "turn", Kind: plugin.Tool, Input: json.RawMessage(`{"type":"object"}`)}
	own := &plugin.Manifest{Name: "agent.chat", Version: "1.2.3", Operations: []*plugin.Operation{op}}
	b, err := newBuiltin([]*plugin.Manifest{own})
	if err != nil {
		t.Fatal(err)
	}
	for ref, found := range map[string]bool{
		"agent.chat/turn": true, "agent.chat/turn@=1.2.3": true, "agent.chat/turn@1.2.3": true, "agent.chat/turn@=1.2.4": false, "agent.chat/other": false, "agent": false,
	} {
		if got := b.find(ref); (got != nil) != found {
			t.Errorf("%s: %v", ref, got)
		}
	}
	if b.refuse("Agent.Chat") == nil || b.refuse("Mortise.ledger") == nil || b.refuse("agent") != nil || b.refuse("mortises.ledger") != nil {
		t.Error("the names it owns are wrong")
	}
	if _, err := newBuiltin([]*plugin.Manifest{{Name: "x", Operations: []*plugin.Operation{{Name: "y", Input: json.RawMessage(`{"type":7}`)}}}}); err == nil {
		t.Error("a schema that is none was taken")
	}
}
