package bridge

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// An Embedder asks the configured embedding model. The models are opened after
// the knowledge bases, and before the first use of these.
type Embedder struct{ Models func() *llm.Dispatcher }

var _ kb.Embedder = Embedder{}

// Space implements [kb.Embedder].
func (e Embedder) Space() string { return e.Models().Embedding().Space() }

// Embed implements [kb.Embedder].
func (e Embedder) Embed(ctx context.Context, tenant string, by kb.By, texts []string) ([][]float32, error) {
	vectors, err := e.Models().Embed(ctx, llm.Caller{
		Tenant: tenant, Principal: by.Principal, Plugin: by.Plugin, Call: by.Call, Operation: by.Operation, Session: by.Session,
	}, texts)
	if err != nil {
		code := plugin.CodeUnavailable
		if failure := (*llm.Error)(nil); errors.As(err, &failure) && failure.Kind == llm.Budget {
			code = plugin.CodeBudgetExceeded
		}
		return nil, plugin.Errorf(code, "the model of embeddings: %w", err)
	}
	return vectors, nil
}
