package app

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/kernel"
	"github.com/mortise-dev/mortise/internal/registry"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// builtins are the operations that the host carries out itself, beside those of
// the registry.
type builtins struct {
	*registry.Registry
	targets map[string]*plugin.Target
}

func newBuiltins(r *registry.Registry) (*builtins, error) {
	b := &builtins{r, map[string]*plugin.Target{}}
	for _, m := range []*plugin.Manifest{memoryManifest, chatManifest} {
		if err := b.add(m); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *builtins) add(m *plugin.Manifest) error {
	for _, op := range m.Operations {
		in, err := schema.Compile(op.Input)
		if err != nil {
			return err
		}
		out, err := schema.Compile(op.Output)
		if err != nil {
			return err
		}
		b.targets[m.Name+"/"+op.Name] = &plugin.Target{
			Manifest: m, Operation: op, Package: plugin.Package{Digest: "host:" + Version}, Input: in, Output: out,
		}
	}
	return nil
}

// Resolve implements [kernel.Registry].
func (b *builtins) Resolve(ctx context.Context, ref string) (*plugin.Target, error) {
	for name, t := range b.targets {
		if ref == name || ref == name+"@="+Version || ref == t.Manifest.Name && len(t.Manifest.Operations) == 1 {
			return t, nil
		}
	}
	return b.Registry.Resolve(ctx, ref)
}

// hosted are the plugins that the host carries out itself.
type hosted struct{ app *App }

var _ kernel.Runner = hosted{}

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

// Level implements [kernel.Runner].
func (hosted) Level() string { return "full" }
