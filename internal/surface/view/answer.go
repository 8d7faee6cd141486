package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// Made shows the artifacts that a call registered.
func Made(w io.Writer, made []plugin.Artifact) {
	for i, a := range made {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if a.ID != "" {
			fmt.Fprintf(w, "artifact %s  %s  %s  %d bytes\n", a.ID, terminal.Safe(a.Type), terminal.Safe(a.Name), a.Size)
		}
	}
}

// Result shows what a call answered.
func Result(w, errs io.Writer, res plugin.Result) error {
	if res.Summary != "" {
		fmt.Fprintf(w, "%s\n\n", terminal.Safe(res.Summary))
	}
	if err := terminal.Value(w, jsontext.Value(res.Data), width(w)); err != nil {
		return err
	}
	if len(res.Diagnostics) > 0 {
		Say(errs, "diagnostics: %s", res.Diagnostics)
	}
	how := terminal.Milliseconds(res.Metrics["latency_ms"])
	switch {
	case res.Replayed:
		how = "the first answer to this key"
	case res.Cached:
		how = "an earlier answer; --fresh asks again"
	}
	Say(errs, "%s %s, call %s, %s", res.Operation, res.Version, res.CallID, how)
	return nil
}

// Failed says where the record of a call is that failed.
func Failed(errs io.Writer, res plugin.Result, err error) {
	switch {
	case res.CallID == "":
	case res.Status == plugin.Unknown || plugin.CodeOf(err) == plugin.CodeOutcomeUnknown:
		Say(errs, "'mortise calls show %s' has what is known of it", res.CallID)
	default:
		Say(errs, "call %s failed; 'mortise ledger show %s' has the record", res.CallID, res.CallID)
	}
}

// Unfinished says how to go on with a call that has not ended.
func Unfinished(res plugin.Result) string {
	if res.Status != plugin.PendingApproval {
		return fmt.Sprintf("call %s has not ended; 'mortise calls wait %s' waits for it, and runs it if no other process does", res.CallID, res.CallID)
	}
	ask := ""
	if res.Approval != nil {
		ask = fmt.Sprintf("'mortise approvals show %s' has the question, and ", res.Approval.ID)
	}
	return fmt.Sprintf("call %s waits for approval; %s'mortise calls wait %s' waits for its end", res.CallID, ask, res.CallID)
}

// Members says which members the input of an operation has, once one was refused that it
// does not have; "" where that is not what was wrong.
func Members(t *plugin.Target, err error) string {
	if t == nil || plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "additional properties") {
		return ""
	}
	var object struct {
		Properties map[string]struct{} `json:"properties"`
	}
	if json.Unmarshal(t.Operation.Input, &object) != nil || len(object.Properties) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(object.Properties))
	return fmt.Sprintf("its members are %s; 'mortise plugins show %s' describes them", terminal.OneLine(strings.Join(names, ", "), 300), t.Manifest.Name)
}
