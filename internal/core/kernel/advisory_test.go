package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// Schemas that are advice refuse nothing: what does not fit is in the log. The
// same schemas of another operation refuse.
func TestSchemasThatAreAdviceRefuseNothing(t *testing.T) {
	t.Parallel()
	promise := func(advisory bool) func(*plugin.Target) {
		return func(t *plugin.Target) {
			t.Operation.Advisory = advisory
			t.Output, _ = schema.Compile([]byte(`{"type":"array"}`))
		}
	}
	b := newBundle(t, policy.Default, target(t, "advised", "advised", promise(true)), target(t, "bound", "bound", promise(false)))
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	b.do = func(_ context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"said":` + string(call.Input) + `}`)}, nil
	}
	res, err := b.Call(t.Context(), asking("advised/advised", `{"n":"one"}`))
	if err != nil || string(res.Data) != `{"said":{"n":"one"}}` {
		t.Fatalf("%s, %v", res.Data, err)
	}
	for _, want := range []string{"level=INFO", "part=input", "part=output", "operation=advised/advised", res.CallID, "/n"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, &log)
		}
	}
	_, err = b.Call(t.Context(), asking("bound/bound", `{"n":"one"}`))
	wantCode(t, err, plugin.CodeInvalidInput)
	_, err = b.Call(t.Context(), asking("bound/bound", `{"n":1}`))
	wantCode(t, err, plugin.CodeInvalidOutput)

	// What is no JSON is no answer, advice or not.
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"a":1,"a":2}`)}, nil
	}
	_, err = b.Call(t.Context(), asking("advised/advised", `{}`))
	wantCode(t, err, plugin.CodeInvalidOutput)
	b.want(t, "call.succeeded", "call.refused invalid_input", "call.failed invalid_output", "call.failed invalid_output")
}

// A tool with advisory schemas may return partial data beside its error. A
// failure of any other tool carries no data, and neither does a failure of the
// host.
func TestAFailureOfTheToolsOwnKeepsWhatItHad(t *testing.T) {
	t.Parallel()
	advised := func(t *plugin.Target) { t.Operation.Advisory = true }
	b := newBundle(t, policy.Default, target(t, "advised", "advised", advised), target(t, "bound", "bound"))
	b.Limit(4<<20, 100, 10)
	var data string
	var failure error
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Failed, Data: json.RawMessage(data)}, failure
	}
	own := plugin.Errorf(plugin.CodePluginError, "half of it")
	for _, c := range []struct {
		operation, data string
		failure         error
		want            string
	}{
		{"advised/advised", `{"n":1}`, own, `{"n":1}`},
		{"bound/bound", `{"n":1}`, own, ""},
		{"advised/advised", `{"n":1}`, plugin.Errorf(plugin.CodeCrashed, "gone"), ""},
		{"advised/advised", `"` + strings.Repeat("x", 100) + `"`, own, ""},
	} {
		data, failure = c.data, c.failure
		res, err := b.Call(t.Context(), asking(c.operation, `{"n":1}`))
		wantCode(t, err, plugin.CodeOf(c.failure))
		if string(res.Data) != c.want {
			t.Errorf("%s, %v: %s, want %s", c.operation, c.failure, res.Data, c.want)
		}
	}
}
