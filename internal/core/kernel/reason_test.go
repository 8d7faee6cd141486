package kernel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// What a plugin says of its own failure reaches its caller as the plugin said it;
// that effects happened before is on record.
func TestAPluginsOwnReasonStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]*plugin.Error{
		"an error that it returned":   {Code: plugin.CodePluginError, PluginCode: "again", Message: "run 2"},
		"an exception that it raised": {Code: plugin.CodePluginError, Message: "ValueError: run 2"},
		"a timeout that it reported":  {Code: plugin.CodeTimeout, PluginCode: "timeout", Message: "slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t)
			b, send := sender(t, m)
			inner := send(1)
			said := own.Message
			b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
				if _, err := inner(ctx, target, call, s); err != nil {
					return plugin.Result{}, err
				}
				return plugin.Result{}, own
			}
			_, err := b.Call(t.Context(), asking("mail/send", `{}`))
			if got := plugin.AsError(err).Message; got != said {
				t.Errorf("the caller is told %q, and the plugin said %q", got, said)
			}
			_, entries := b.records(t)
			if last := entries[len(entries)-1]; last.Error == nil || !strings.Contains(last.Error.Message, "its journal has 1 of its effects") {
				t.Errorf("the record does not say that there were effects: %+v", last.Error)
			}
		})
	}
}
