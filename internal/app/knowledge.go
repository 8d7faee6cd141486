package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// openKnowledge opens the knowledge bases of a host, and what reads files for
// them: this program once more, in a cage.
func (a *App) openKnowledge(scrubber *secret.Scrubber) error {
	program, err := os.Executable()
	if err != nil {
		return &SetupError{fmt.Errorf("this program cannot be found, which reads documents in a process of its own: %w", err)}
	}
	a.Files = extract.New(extract.Options{
		Sandbox: a.Sandbox, Command: []string{program, extract.Arg}, Dir: filepath.Join(a.dir("runtime"), "pdfium"), Scratch: a.scratch, Hide: a.hide,
	})
	a.opened("reader of documents", a.Files.Close)
	o := kb.Options{Store: a.Store, Files: a.Files, Clean: scrubber.Text}
	if a.Config.Models.Embedding != nil {
		o.Embedder = embedder{a}
	}
	a.Knowledge = kb.New(o)
	return nil
}

// An embedder asks the configured embedding model. The models are opened after
// the knowledge bases, and before the first use of these.
type embedder struct{ app *App }

var _ kb.Embedder = embedder{}

// Space implements [kb.Embedder].
func (e embedder) Space() string { return e.app.Models.Embedding().Space() }

// Embed implements [kb.Embedder].
func (e embedder) Embed(ctx context.Context, tenant string, by kb.By, texts []string) ([][]float32, error) {
	vectors, err := e.app.Models.Embed(ctx, llm.Caller{
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
