// Package bundle makes one script of a plugin's TypeScript or JavaScript, in a
// process of its own.
//
// The source comes from strangers, and a parser that reads it recurses as deep
// as the source nests: in the host, a file of 500 KB would end it. So this
// program starts itself once more for each bundle, with bounds on time, memory
// and stack. What is imported is read there, as regular files of bounded size
// beneath the package and the SDK; links that lead out are not followed. The end
// of the context ends the process.
//
//	result, err := bundle.Make(ctx, bundle.Job{Dir: dir, SDK: sdk, Options: options})
package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/plugin"
)

// The bounds of one bundle.
const (
	maxTime   = 60 * time.Second
	maxMemory = 768 << 20 // bytes of the process
	maxStack  = 64 << 20  // bytes of one goroutine's stack
	maxAnswer = 128 << 20 // bytes of what it answers
	maxSaid   = 4 << 10   // bytes of its standard error that are kept
)

// A Job says what to bundle.
type Job struct {
	Name    string           `json:"name"`   // of the entry, for messages
	Dir     string           `json:"dir"`    // of the package, absolute and without links
	SDK     string           `json:"sdk"`    // what imports of mortise lead to; "" for none
	Script  bool             `json:"script"` // it runs in the host's own engine: no modules of Node, no packages
	Files   int              `json:"files"`  // at most so many
	Bytes   int64            `json:"bytes"`  // of one file, at most
	Total   int64            `json:"total"`  // of all files together, at most
	Options api.BuildOptions `json:"options"`
}

// Arg is the first argument of this program when it is to make a bundle.
const Arg = "bundle-worker"

// turns bounds how many bundles are made at a time.
var turns = make(chan struct{}, 2)

// Make makes a bundle. What is wrong with the source is among the errors of the
// result; what its process died of is an error with the code given by
// plugin.CodeOf: limit_exceeded or timeout.
func Make(ctx context.Context, job Job) (api.BuildResult, error) {
	var result api.BuildResult
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
	//lint:ignore SA1026 a job has no plugins: its worker adds those there are
	request, err := json.Marshal(job)
	if err != nil {
		return result, fmt.Errorf("asking for a bundle: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	program, err := self()
	if err != nil {
		return result, fmt.Errorf("this program cannot be found, which bundles code in a process of its own: %w", err)
	}
	cmd := exec.CommandContext(limited, program, Arg)
	cmd.Dir, cmd.Env, cmd.WaitDelay = os.TempDir(), []string{"LANG=C.UTF-8"}, time.Second
	if race := os.Getenv("GORACE"); race != "" { // how a program behaves that the race detector watches
		cmd.Env = append(cmd.Env, "GORACE="+race)
	}
	var out, said clipped
	out.most, said.most = maxAnswer, maxSaid
	cmd.Stdout, cmd.Stderr = &out, &said
	stdin, err := cmd.StdinPipe() // it stays open: its end says that the host is gone
	if err != nil {
		return result, err
	}
	if err := cmd.Start(); err != nil {
		return result, plugin.Errorf(plugin.CodeLaunchFailed, "the process that bundles code cannot be started: %w", err)
	}
	_, wrote := stdin.Write(append(request, '\n'))
	err = errors.Join(wrote, cmd.Wait())
	switch {
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	case limited.Err() != nil:
		return result, plugin.Errorf(plugin.CodeTimeout, "bundling the code takes longer than %s", maxTime)
	case err != nil && strings.Contains(said.String(), "stack"):
		return result, plugin.Errorf(plugin.CodeLimitExceeded, "the code nests too deeply to be read")
	case err != nil && strings.Contains(said.String(), "memory"), out.over:
		return result, plugin.Errorf(plugin.CodeLimitExceeded, "the code takes more than %d MiB of memory to bundle", maxMemory>>20)
	case err != nil:
		return result, plugin.Errorf(plugin.CodeLaunchFailed, "the process that bundles code ended (%v): %s", err, said.String())
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		return result, fmt.Errorf("reading a bundle: %w", err)
	}
	for i := range result.Errors {
		conceal(&result.Errors[i], job)
	}
	return result, nil
}

// conceal takes the source line out of a message about a file that is not of
// the package, and what the message quotes of it: settings may be extended by
// files elsewhere.
func conceal(m *api.Message, job Job) {
	m.Notes, m.Detail = nil, nil
	if m.Location == nil || m.Location.File == "" || m.Location.File == "start" {
		return
	}
	file := m.Location.File
	if !filepath.IsAbs(file) {
		file = filepath.Join(job.Dir, filepath.FromSlash(file))
	}
	if real, err := filepath.EvalSymlinks(file); err == nil && within(real, job.Dir) {
		return
	}
	m.Text, m.Location = m.Location.File+", which is not in the package, cannot be read as what it is used for", nil
}

// self is this program, also after its file was replaced.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}

// A clipped buffer keeps so many bytes and forgets the rest.
type clipped struct {
	bytes.Buffer
	most int
	over bool
}

// Write implements [io.Writer].
func (c *clipped) Write(p []byte) (int, error) {
	keep := min(len(p), c.most-c.Len())
	c.Buffer.Write(p[:keep])
	c.over = c.over || keep < len(p)
	return len(p), nil
}

var _ io.Writer = (*clipped)(nil)

func within(file, dir string) bool {
	relative, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(relative)
}
