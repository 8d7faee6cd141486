package app

import (
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// openFiles opens what reads files for knowledge bases: the program that the host carries, in a cage.
func (a *App) openFiles() {
	a.Files = extract.New(extract.Options{
		Sandbox: a.Sandbox, Dir: filepath.Join(a.dir("runtime"), "pdfium"), Scratch: a.scratch, Hide: a.hide,
	})
	a.opened("reader of documents", a.Files.Close)
}

// openKnowledge opens the knowledge bases of a tenant.
func (a *App) openKnowledge() {
	o := kb.Options{Store: a.own, Now: a.own.Now, Most: a.Config.Limits.PrincipalKnowledge, Files: a.Files, Clean: a.scrubber.Text}
	if a.Config.Models.Embedding != nil {
		o.Embedder = bridge.Embedder{Models: func() *llm.Dispatcher { return a.Models }}
	}
	a.Knowledge = kb.New(o)
}
