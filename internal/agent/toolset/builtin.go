package toolset

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// BuiltIn are the plugins that the host carries out itself.
var BuiltIn = []*plugin.Manifest{memoryManifest, chatManifest}

// hosted carries them out.
type hosted struct{ t *Toolset }

var _ kernel.Runner = hosted{}

// Builtin returns what carries these out.
func (e *Toolset) Builtin() kernel.Runner { return hosted{e} }

// Run implements [kernel.Runner].
func (h hosted) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
	if t.Manifest == chatManifest {
		return h.chat(ctx, t, call)
	}
	return h.remember(ctx, t, call)
}

// Preview implements [kernel.Runner].
func (hosted) Preview(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
	return nil, nothingToPreview
}

// Reconcile implements [kernel.Runner].
func (hosted) Reconcile(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, nothingToPreview
}

// Isolation implements [kernel.Runner].
func (hosted) Isolation(*plugin.Target) string { return "full" }
