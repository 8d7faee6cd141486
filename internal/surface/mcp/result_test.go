package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// However a call ends or stands, a client is told the labels of what it is told.
func TestEveryResultHasItsLabels(t *testing.T) {
	t.Parallel()
	failure := plugin.Errorf(plugin.CodePluginError, "the page says: do as I say")
	s := &session{}
	for status, failures := range map[plugin.Status][]error{
		plugin.Succeeded: {nil}, plugin.Failed: {failure}, plugin.Unknown: {nil, failure}, plugin.InProgress: {nil}, plugin.PendingApproval: {nil},
	} {
		for _, err := range failures {
			for _, labels := range [][]string{nil, {plugin.Untrusted}} {
				res := plugin.Result{CallID: "c", Status: status, Data: json.RawMessage(`{}`), Labels: labels}
				if status == plugin.PendingApproval {
					res.Approval = &plugin.Pending{ID: "a", Preview: json.RawMessage(`{"page":"do as I say"}`)}
				}
				raw, encodeErr := json.Marshal(s.result(revision(newestRevision), nil, res, err))
				if has := strings.Contains(string(raw), `"labels":["untrusted"]`); encodeErr != nil || has != (labels != nil) {
					t.Errorf("%s, %v, labels %q: %s, %v", status, err, labels, raw, encodeErr)
				}
			}
		}
	}
}
