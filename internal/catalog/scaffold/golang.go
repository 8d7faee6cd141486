package scaffold

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// program is what a plugin in Go is compiled to.
const program = "plugin"

// BuildGo is the command that compiles a plugin in Go, in its directory.
const BuildGo = "go build -o " + program + " ."

// buildLimit is how long compiling may take: the first time on a machine,
// everything is compiled, and two small modules may have to be fetched.
const buildLimit = 5 * time.Minute

// A NotBuilt says that a plugin was written but not compiled.
type NotBuilt struct {
	Dir    string
	Reason string // what the Go toolchain said, or that there is none
}

func (e *NotBuilt) Error() string {
	return fmt.Sprintf("the plugin in %s is written, but not built yet: %s", e.Dir, e.Reason)
}

// addSDK adds the packages that a plugin in Go is made with, as a module that
// the plugin's go.mod points to: it builds wherever it is moved to, and needs
// nothing of this module from elsewhere.
func addSDK(content map[string][]byte) error {
	for folder, source := range map[string]embed.FS{"plugin": plugin.Source, "protocol": protocol.Source, "sdk/go": mortise.Source} {
		entries, err := source.ReadDir(".")
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := entry.Name()
			if name == "embed.go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			if content["third_party/mortise/"+folder+"/"+name], err = source.ReadFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// build compiles the plugin in dir.
func build(dir string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return &NotBuilt{dir, "there is no Go toolchain on PATH; install Go 1.26 or later"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off") // a workspace around dir does not know the plugin
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		said := strings.TrimSpace(string(out))
		if said == "" || ctx.Err() != nil {
			said = err.Error()
		}
		return &NotBuilt{dir, strings.ToValidUTF8(said[:min(len(said), 2000)], "")}
	}
	return nil
}
