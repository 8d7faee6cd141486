package service

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// What a plugin has run later is a call of its own, one deeper, that has no waiting
// caller.
func TestAnOperationIsEnqueued(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, test := range []struct {
		name, args string
		want       string // the operation, or a code
		after      time.Time
	}{
		{"one of its own", `{"operation":"op","params":{"n":1}}`, "sample/op", time.Time{}},
		{"one of its own, in full", `{"operation":"sample/op","params":{"n":1}}`, "sample/op", time.Time{}},
		{"a declared one, later", `{"operation":"other/op","params":{"n":1},"run_at":"` + at.Format(time.RFC3339) + `"}`, "other/op", at},
		{"one that is not declared", `{"operation":"third/op"}`, "service_denied", time.Time{}},
		{"nothing", `{}`, "service_denied", time.Time{}},
		{"no time", `{"operation":"op","run_at":"tomorrow"}`, "invalid_input", time.Time{}},
		{"too far away", `{"operation":"op","run_at":"2999-01-01T00:00:00Z"}`, "invalid_input", time.Time{}},
		{"something unknown", `{"operation":"op","every":"1h"}`, "invalid_input", time.Time{}},
	} {
		s := newScene(t)
		s.target.Manifest.Operations = []*plugin.Operation{s.target.Operation}
		s.target.Operation.Effects = []string{"schedule_write"}
		s.call.Labels, s.call.Depth, s.call.Overlay = []string{"private"}, 3, json.RawMessage(`{"exec":{"schedule_id":"f"}}`)
		var got *plugin.Call
		s.broker.Enqueue = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
			got = &call
			return plugin.Result{CallID: "later", Status: plugin.InProgress}, nil
		}
		answer, err := s.services().Serve(t.Context(), "scheduler.enqueue", json.RawMessage(test.args))
		if code := plugin.CodeOf(err); code != "" {
			if string(code) != test.want || got != nil {
				t.Errorf("%s: %v, and the call %+v", test.name, err, got)
			}
			continue
		}
		switch {
		case string(answer) != `{"id":"later"}` || got == nil || got.Operation != test.want || !got.After.Equal(test.after) || !got.NoWait:
			t.Errorf("%s: %s, and the call %+v", test.name, answer, got)
		case strings.HasPrefix(test.want, "other/") != (got.Overlay == nil):
			t.Errorf("%s: what was decided for one plugin went to another: %s", test.name, got.Overlay)
		case got.Principal.ID != s.call.Principal.ID || got.Parent != s.call.ID || got.Depth != 4 || len(got.Labels) != 1 || got.Actor != "plugin:sample" ||
			string(got.Input) != `{"n":1}` || got.Overlay != nil && string(got.Overlay) != string(s.call.Overlay) || got.Origin != plugin.OriginCall:
			t.Errorf("%s: the call is %+v", test.name, got)
		}
	}
	s := newScene(t)
	s.target.Manifest.Operations = []*plugin.Operation{s.target.Operation}
	s.target.Operation.Effects = []string{"schedule_write"}
	s.call.Depth = plugin.MaxDepth
	if _, err := s.services().Serve(t.Context(), "scheduler.enqueue", json.RawMessage(`{"operation":"op"}`)); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Errorf("one that enqueues itself for ever: %v", err)
	}
}
