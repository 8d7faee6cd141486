package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// openFiles opens what reads files for knowledge bases: this program once more, in a cage.
func (a *App) openFiles() error {
	program, err := os.Executable()
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("this program cannot be found, which reads documents in a process of its own: %w", err)}
	}
	a.Files = extract.New(extract.Options{
		Sandbox: a.Sandbox, Command: []string{program, extract.Arg}, Dir: filepath.Join(a.dir("runtime"), "pdfium"), Scratch: a.scratch, Hide: a.hide,
	})
	a.opened("reader of documents", a.Files.Close)
	return nil
}

// openKnowledge opens the knowledge bases of a tenant.
func (a *App) openKnowledge() {
	o := kb.Options{Store: a.own, Most: a.Config.Limits.PrincipalKnowledge, Files: a.Files, Clean: a.scrubber.Text}
	if a.Config.Models.Embedding != nil {
		o.Embedder = bridge.Embedder{Models: func() *llm.Dispatcher { return a.Models }}
	}
	a.Knowledge = kb.New(o)
}

// Worker is this program as the process that reads documents, where its arguments ask
// for that: `mortise extract-worker ...`. It returns the exit status, and whether they did.
func Worker(args []string, in io.Reader, out io.Writer) (status int, is bool) {
	if len(args) == 0 || args[0] != extract.Arg {
		return 0, false
	}
	return extract.Worker(args[1:], in, out), true
}
