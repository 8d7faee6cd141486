package interpreter

import (
	"context"
	_ "embed" // warm.py
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// systemPrograms are what a script or a program of the system finds beside
// itself: other programs, and the libraries of all.
var systemPrograms = slices.Concat([]string{
	"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin",
	"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/libexec",
	"/etc/os-release", "/etc/magic", "/etc/perl", "/etc/ssl/openssl.cnf", "/etc/terminfo",
}, systemData)

// systemData is what the system's programs and packages keep elsewhere (as
// Debian splits them): fonts, tables, parts of Node, and settings whose absence
// they do not bear.
var systemData = []string{"/usr/share", "/etc/fonts", "/etc/matplotlibrc"}

// settings are those whose names have a version in them.
var settings = []string{"/etc/java-*", "/etc/ImageMagick-*"}

// Reads returns what the program that Command named has to read besides the
// files of its package, for a cage that shows nothing else: the interpreter
// with its standard library and installed packages, the SDK, libraries. Only
// what is there is named. What the package names where it may not is
// launch_failed, and nothing that it names is run to find out.
func (i *Interpreters) Reads(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, argv []string) ([]string, error) {
	j := judge{Interpreters: i, ctx: ctx}
	if real, err := filepath.EvalSymlinks(pkg.Dir); pkg.Dir != "" && err == nil {
		j.root = real
	}
	reads, err := j.reads(m, argv)
	if err == nil {
		reads, err = j.shown(reads, m.Runner.Binding != nil)
	}
	if err != nil {
		return nil, named(m.Name, err)
	}
	return reads, nil
}

func (j judge) reads(m *plugin.Manifest, argv []string) ([]string, error) {
	by := byPackage
	switch {
	case len(m.Runner.Command) == 0: // the host put all of it together
		return j.chose(argv), nil
	case m.Runner.Binding != nil:
		by = byConfig
	case !strings.ContainsAny(m.Runner.Command[0], `/\`):
		by = byPath
	default:
		by = byManifest
	}
	reads, err := j.program(argv[0], by, 0)
	if err != nil {
		return nil, err
	}
	if by != byConfig {
		by = byPackage
	}
	for _, argument := range argv[1:] {
		if !filepath.IsAbs(argument) {
			continue
		}
		more, err := j.argument(argument, by)
		if err != nil {
			return nil, err
		}
		reads = append(reads, more...)
	}
	return reads, nil
}

// chose returns what a command needs that the host made of an entry.
func (j judge) chose(argv []string) []string {
	reads, known := j.readsOf(argv[0])
	if !known {
		reads = libraries(systemLibraries(), argv[0])
	}
	reads = slices.Clone(reads)
	for _, argument := range argv[1:] {
		switch {
		case !filepath.IsAbs(argument):
		case within(argument, j.pythonSDK.dir): // .../sdk/python-HASH/mortise/_boot.py
			rest, _ := filepath.Rel(j.pythonSDK.dir, argument)
			name, _, _ := strings.Cut(rest, string(filepath.Separator))
			reads = append(reads, filepath.Join(j.pythonSDK.dir, name), j.bytecode())
		case within(argument, j.bundles.dir) && exists(argument):
			reads = append(reads, argument)
		}
	}
	return reads
}

// readsOf returns what an interpreter of ours needs; known is false for any
// other program.
func (i *Interpreters) readsOf(program string) (paths []string, known bool) {
	for _, p := range []*interpreter{i.python, i.node} {
		said, ok := p.memory.real(p.name, program)
		if !ok {
			continue
		}
		return said.Reads, true
	}
	return nil, false
}

// needs returns what a program that described itself has to read. prefix is
// where it was installed, as far as it says so.
func (p *interpreter) needs(said answer, prefix string, paths []string) []string {
	if prefix == "/usr" || filepath.Dir(said.Real) == "/usr/bin" {
		paths = append(paths, systemData...)
	}

	programs := []string{said.Real}
	for _, dir := range paths {
		modules, _ := filepath.Glob(filepath.Join(dir, "*.so")) // Python's own modules, each with its libraries
		programs = append(programs, modules...)
	}
	all := append(libraries(systemLibraries(), programs...), paths...)
	all = append(all, said.Real)
	slices.Sort(all)
	return slices.Compact(all)
}

// bytecode is where compiled modules of the SDK and the standard library are,
// for programs that must not write any.
func (i *Interpreters) bytecode() string { return filepath.Join(i.dir, "bytecode") }

// A warmer fills the directory of bytecode, once for each interpreter and part of
// the SDK.
type warmer struct {
	mu   sync.Mutex // held while one is filled
	done map[string]bool
}

// warm keeps the bytecode of the modules that every plugin of one part of the SDK
// begins with: plugins in a sandbox can read it, and cannot write their own.
// Where that fails, plugins start more slowly.
func (i *Interpreters) warm(ctx context.Context, real, sdk, part string) {
	i.warmer.mu.Lock()
	defer i.warmer.mu.Unlock()
	mark := filepath.Join(i.bytecode(), "."+filepath.Base(sdk)+"-"+part+"-"+strings.ReplaceAll(real, string(filepath.Separator), "_"))
	if i.warmer.done[mark] || exists(mark) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, real, "-I", "-S", "-c", warming, i.bytecode(), filepath.Join(sdk, "mortise"))
	if part != "mortise" {
		cmd.Args = append(cmd.Args, filepath.Join(sdk, part))
	}
	cmd.Dir, cmd.Env = os.TempDir(), []string{}
	if cmd.Run() == nil {
		_ = writeFile(mark, nil)
	}
	if i.warmer.done == nil {
		i.warmer.done = map[string]bool{}
	}
	i.warmer.done[mark] = true
}

//go:embed warm.py
var warming string
