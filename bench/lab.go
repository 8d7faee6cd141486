package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	"github.com/mortise-dev/mortise/sdk/python"
	"github.com/mortise-dev/mortise/sdk/typescript"
)

// A lab is the programs that are measured, built into one directory that goes
// away with it.
type lab struct {
	dir     string
	quick   bool
	profile string // where a host that is started writes a profile, "" for nowhere
	own     bool   // dir is this process's to remove
	scratch string
	python  []string // an interpreter and what the host gives it before the plugin's file
	node    []string
}

// Where the folders of the repository are, seen from here.
const (
	programs         = "programs"
	patternExtractor = "../plugins/log_analysis/pattern_extractor"
)

// newLab builds the programs. The working directory must be bench.
func newLab(ctx context.Context, quick bool) (*lab, error) {
	if _, err := os.Stat(filepath.Join(programs, "echo.py")); err != nil {
		return nil, fmt.Errorf("run this from the folder bench: %w", err)
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	l, err := openLab(ctx, dir, quick)
	if err == nil {
		l.own = true
		err = l.build(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return l, nil
}

// openLab returns the lab that another process built in dir.
func openLab(ctx context.Context, dir string, quick bool) (*lab, error) {
	budget.Pace() // as a host that serves does; for all contestants alike
	l := &lab{dir: dir, quick: quick, scratch: filepath.Join(dir, "scratch")}
	// A version manager's shim is a shell script: ask once for what is behind it.
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		l.python = []string{
			strings.TrimSpace(string(out)), "-I", "-X", "pycache_prefix=" + filepath.Join(dir, "pycache"),
			filepath.Join(dir, "python", "mortise", "_boot.py"),
		}
	}
	if out, err := exec.CommandContext(ctx, "node", "-p", "process.execPath").Output(); err == nil {
		l.node = []string{strings.TrimSpace(string(out))}
	}
	return l, nil
}

func (l *lab) close() {
	if l.own {
		_ = os.RemoveAll(l.dir)
	}
}

// program returns the path of one that was built.
func (l *lab) program(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) build(ctx context.Context) error {
	if err := os.Mkdir(l.scratch, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"empty", "echo", "hostile", "web", "hashicorp"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", l.program(name), "./"+programs+"/"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", name, err, out)
		}
	}
	if err := os.CopyFS(filepath.Join(l.dir, "python"), python.Files); err != nil {
		return err
	}
	return l.bundle()
}

// bundle makes echo.mjs of echo.ts and the SDK, the boot module first.
func (l *lab) bundle() error {
	sdk := filepath.Join(l.dir, "typescript")
	if err := os.CopyFS(sdk, fs.FS(typescript.Files)); err != nil {
		return err
	}
	entry, err := filepath.Abs(filepath.Join(programs, "echo.ts"))
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		Stdin: &api.StdinOptions{
			Contents:   fmt.Sprintf("import %q;\nimport %q;\n", filepath.Join(sdk, "src", "boot.ts"), entry),
			ResolveDir: sdk, Sourcefile: "entry.ts",
		},
		Bundle: true, Platform: api.PlatformNode, Format: api.FormatESModule, Target: api.ESNext,
		Alias:   map[string]string{"mortise": filepath.Join(sdk, "src", "index.ts")},
		Outfile: l.program("echo.mjs"), Write: true,
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("bundling echo.ts: %s", result.Errors[0].Text)
	}
	return nil
}

// command is how the host would start a plugin of this manifest: its entry is
// a program, or a file of Python or JavaScript.
func (l *lab) command(_ context.Context, _ plugin.Package, m *plugin.Manifest) ([]string, error) {
	entry := strings.Fields(m.Runner.Entry)
	switch filepath.Ext(entry[0]) {
	case ".py":
		if l.python == nil {
			return nil, errors.New("there is no python3")
		}
		return append(append([]string{}, l.python...), entry...), nil
	case ".mjs":
		if l.node == nil {
			return nil, errors.New("there is no node")
		}
		return append(append([]string{}, l.node...), entry...), nil
	}
	return entry, nil
}

// runner returns a runner for the lab's plugins.
func (l *lab) runner(opts process.Options) *process.Runner {
	opts.Host = protocol.Peer{Name: "bench", Version: "1.0.0"}
	opts.Scratch = l.scratch
	opts.Command = l.command
	return process.New(opts)
}

// echo returns the operation of an echo plugin: entry is its program or file.
func echo(entry, version string, isolation plugin.Isolation) *plugin.Target {
	op := &plugin.Operation{Name: "echo", Kind: plugin.Tool, Timeout: time.Minute}
	m := &plugin.Manifest{
		Name: "bench.echo", Version: "1.0.0", Isolation: isolation,
		Runner:     plugin.Runner{Kind: "process", Entry: entry, Protocol: version},
		Operations: []*plugin.Operation{op},
	}
	return &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Digest: "sha256:" + entry}}
}

// echoFile returns the absolute path of a plugin that needs no building.
func echoFile(name string) string {
	path, err := filepath.Abs(filepath.Join(programs, name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}

// payload is 1 KB: an object of 20 properties.
func payload() []byte {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `,"property_%c":"%s"`, 'a'+i, strings.Repeat("v", 34))
	}
	return []byte("{" + b.String()[1:] + "}")
}

func newCall(input []byte) *plugin.Call {
	return &plugin.Call{
		ID: "0199aa00-0000-7000-8000-000000000001", Tenant: "local",
		Principal: plugin.Principal{Type: "user", ID: "local:owner"}, Input: input,
		Trace: plugin.Trace{Correlation: "0199aa00-0000-7000-8000-000000000002"},
	}
}

// pinned runs start with this thread, and so whatever it starts, bound to one
// core; the program it starts then believes to be on a machine with one.
func pinned(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			one.Zero()
			one.Set(cpu) // the last there is: the first has the interrupts
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	err := start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}
