package service

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// Whose call it is that a plugin asks for, in which session and with which files,
// only the host says: it is that of the plugin's own call.
func TestNoPluginSaysWhoseItsCallIs(t *testing.T) {
	t.Parallel()
	for _, member := range []string{"session", "session_id", "tenant", "principal", "actor", "asker", "agent", "origin", "parent", "depth", "labels", "overlay", "host", "__host",
		"files", "approval", "plan", "place", "effect_free", "digest", "Session", "FILES"} {
		for method, rest := range map[string]string{
			"operations.call":   `"operation":"tool/run","input":{}`,
			"scheduler.enqueue": `"operation":"tool/run","params":{}`,
		} {
			var got *plugin.Call
			note := func(_ context.Context, call plugin.Call) (plugin.Result, error) {
				got = &call
				return plugin.Result{Status: plugin.Succeeded}, nil
			}
			s := newScene(t)
			s.target.Manifest.Requires.Tools = []string{"tool"}
			s.target.Operation.Effects = []string{"schedule_write"}
			s.broker.Call, s.broker.Enqueue = note, note
			for _, value := range []string{`"x"`, `["x"]`, `{"id":"x"}`, `7`} {
				_, err := s.services().Serve(t.Context(), method, json.RawMessage(`{`+rest+`,"`+member+`":`+value+`}`))
				if plugin.CodeOf(err) != plugin.CodeInvalidInput || got != nil {
					t.Errorf("%s with %s: %v, and the call %+v", method, member, err, got)
				}
			}
		}
	}
	var got *plugin.Call
	s := newScene(t)
	s.target.Manifest.Requires.Tools = []string{"tool"}
	s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		got = &call
		return plugin.Result{Status: plugin.Succeeded}, nil
	}
	s.call.Session, s.call.Asker, s.call.Files = "sess_1", "os:1", []plugin.File{{Handle: "art_1", Path: "/x"}}
	if _, err := s.services().Serve(t.Context(), "operations.call", json.RawMessage(`{"operation":"tool/run","input":{}}`)); err != nil {
		t.Fatal(err)
	}
	if got.Session != "sess_1" || got.Asker != "os:1" || got.Tenant != s.call.Tenant || len(got.Files) != 1 || got.Overlay != nil {
		t.Errorf("%+v", got)
	}
}
