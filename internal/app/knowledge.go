package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/secret"
)

// openKnowledge opens the knowledge bases of a host, and what reads files for
// them: this program once more, in a cage.
func (a *App) openKnowledge(scrubber *secret.Scrubber) error {
	program, err := os.Executable()
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("this program cannot be found, which reads documents in a process of its own: %w", err)}
	}
	a.Files = extract.New(extract.Options{
		Sandbox: a.Sandbox, Command: []string{program, extract.Arg}, Dir: filepath.Join(a.dir("runtime"), "pdfium"), Scratch: a.scratch, Hide: a.hide,
	})
	a.opened("reader of documents", a.Files.Close)
	o := kb.Options{Store: a.Store, Files: a.Files, Clean: scrubber.Text}
	if a.Config.Models.Embedding != nil {
		o.Embedder = bridge.Embedder{Models: func() *llm.Dispatcher { return a.Models }}
	}
	a.Knowledge = kb.New(o)
	return nil
}
