package kernel_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// costly is a schema whose check doubles with each level of a value.
const costly = `{"properties":{"deep":{"$ref":"#/$defs/a"}},"$defs":{
	"a":{"allOf":[{"$dynamicRef":"#b"},{"$dynamicRef":"#b"}]},
	"b":{"$dynamicAnchor":"b","properties":{"a":{"$ref":"#/$defs/a"}},"unevaluatedProperties":true}}}`

var deep = json.RawMessage(`{"deep":` + strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 51))

// A check that would take more work than a value of that size may take is given up: the input
// is refused before the plugin runs, and an answer that cannot be checked is no answer.
func TestWhatCannotBeCheckedIsRefused(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(costly))
	if err != nil {
		t.Fatal(err)
	}
	digits := json.RawMessage(`{"n":` + strings.Repeat("7", 100_000) + `}`)
	ofInput := target(t, "in", "read", func(t *plugin.Target) { t.Input = s })
	ofOutput := target(t, "out", "read", func(t *plugin.Target) { t.Output = s })
	n, err := schema.Compile([]byte(`{"properties":{"n":{"type":"integer","minimum":0}}}`))
	if err != nil {
		t.Fatal(err)
	}
	ofNumber := target(t, "number", "read", func(t *plugin.Target) { t.Output = n })
	b := newBundle(t, policy.Default, ofInput, ofOutput, ofNumber)
	var answer json.RawMessage
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: answer}, nil
	}
	for _, c := range []struct {
		name, operation string
		input, answer   json.RawMessage
		code            plugin.Code
		runs            int32
	}{
		{"an input", "in/read", deep, nil, plugin.CodeInvalidInput, 0},
		{"an answer", "out/read", json.RawMessage(`{}`), deep, plugin.CodeInvalidOutput, 1},
		{"a number of an input", "number/read", digits, nil, plugin.CodeInvalidInput, 0},
		{"a number of an answer", "number/read", json.RawMessage(`{}`), digits, plugin.CodeInvalidOutput, 1},
	} {
		before := b.runs.Load()
		answer = c.answer
		res, err := b.Call(t.Context(), asking(c.operation, string(c.input)))
		if plugin.CodeOf(err) != c.code || res.Data != nil {
			t.Errorf("%s: %v; want %s", c.name, err, c.code)
		}
		if ran := b.runs.Load() - before; int32(ran) != c.runs {
			t.Errorf("%s: the plugin ran %d times, want %d", c.name, ran, c.runs)
		}
	}
}

// A caller that has left ends the check of its input, which is not refused as one that does
// not fit.
func TestTheCheckOfAnInputEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := leaves{cancel}
	b := newBundle(t, policy.Default, target(t, "in", "read", func(t *plugin.Target) { t.Input = s }))
	_, err := b.Call(ctx, asking("in/read", `{}`))
	wantCode(t, err, plugin.CodeCancelled)
	if b.runs.Load() != 0 {
		t.Error("the plugin ran")
	}
}

// leaves is a schema during whose check the caller leaves.
type leaves struct{ leave func() }

func (l leaves) Check(ctx context.Context, _ []byte) error {
	l.leave()
	return context.Cause(ctx)
}
