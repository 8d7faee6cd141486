package app

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// runner lends the process runner what it lacks.
type runner struct{ *process.Runner }

func (r runner) Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (json.RawMessage, error) {
	return nil, plugin.Errorf(plugin.CodeInternal, "no preview yet")
}

func (r runner) Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, s plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, plugin.Errorf(plugin.CodeInternal, "no reconciling yet")
}
