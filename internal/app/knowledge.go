package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/extract"
	"github.com/mortise-dev/mortise/internal/kb"
)

// openKnowledge opens the knowledge bases of a host, and what reads files for
// them: this program once more, in a cage.
func (a *App) openKnowledge() error {
	program, err := os.Executable()
	if err != nil {
		return &SetupError{fmt.Errorf("this program cannot be found, which reads documents in a process of its own: %w", err)}
	}
	a.Files = extract.New(extract.Options{
		Sandbox: a.Sandbox, Command: []string{program, extract.Arg}, Dir: filepath.Join(a.dir("runtime"), "pdfium"), Scratch: a.dir("scratch"), Hide: []string{a.Home},
	})
	a.opened("reader of documents", a.Files.Close)
	a.Knowledge = kb.New(kb.Options{Store: a.Store, Files: a.Files})
	return nil
}
