// Package interpreter turns a plugin's runner into the program that starts it.
//
// A runner names a program, which is looked up, or a source file, which is run
// by the Python or Node of this machine together with the SDK that the host
// carries: an author installs nothing. Whatever is made on the way (the SDKs
// laid out as files, bundles of TypeScript, what interpreters said of
// themselves) is kept below one directory, is made once, appears there whole
// or not at all, and may be deleted at any time. Several hosts may share it.
//
//	i := interpreter.New(interpreter.Options{Dir: "/home/ada/.mortise/runtime"})
//	argv, err := i.Command(ctx, pkg, manifest)
//
// Starting the program is not done here; see package process.
package interpreter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/sdk/python"
	"github.com/mortise-dev/mortise/sdk/typescript"
)

// Options say where things are.
type Options struct {
	Dir    string // what is made is kept here; it need not exist yet
	Python string // the interpreter to use: a path or a name; empty is what is found on PATH
	Node   string // likewise

	// Home is the data directory, whose files are shown to no plugin but for what
	// the host itself shows. Hide are more places of which nothing is shown.
	Home string
	Hide []string

	// Caged reports whether programs run where they can write nothing that
	// lasts; they never do where it is nil.
	Caged func() bool
}

// Interpreters knows the interpreters of this machine. It is safe for
// concurrent use.
type Interpreters struct {
	dir, home    string
	hide         []string // with the data directory
	python, node *interpreter
	pythonSDK    *kit
	nodeSDK      *kit
	bundles      *bundler
	caged        func() bool
	warmer       warmer
}

// New returns the interpreters of this machine. Nothing is looked for yet.
func New(opts Options) *Interpreters {
	dir := opts.Dir
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	known := &memory{file: filepath.Join(dir, "interpreters.json")}
	i := &Interpreters{
		dir: dir, caged: opts.Caged, home: opts.Home, hide: opts.Hide,
		python: &interpreter{
			name: "python3", title: "Python", names: []string{"python3", "python"}, major: 3, minor: 9,
			setting: "interpreters.python", set: opts.Python, memory: known,
			ask: []string{"-I", "-S", "-c", describePython},
		},
		node: &interpreter{
			name: "node", title: "Node", names: []string{"node"}, major: 20,
			setting: "interpreters.node", set: opts.Node, memory: known,
			ask: []string{"-p", `process.execPath + "\n" + process.versions.node`},
		},
		pythonSDK: &kit{name: "python", files: python.Files, dir: filepath.Join(dir, "sdk")},
		nodeSDK:   &kit{name: "typescript", files: typescript.Files, dir: filepath.Join(dir, "sdk")},
	}
	if i.home != "" {
		i.hide = append([]string{i.home}, i.hide...)
	}
	i.python.foreign, i.node.foreign = i.foreign, i.foreign
	i.bundles = &bundler{dir: filepath.Join(dir, "bundles"), sdk: i.nodeSDK}
	return i
}

// Command returns the program that runs the plugin m of pkg, as an absolute
// path, and its arguments. What is missing on this machine is
// dependency_missing; what is wrong with the plugin is launch_failed.
func (i *Interpreters) Command(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	var argv []string
	var err error
	switch r := m.Runner; {
	case len(r.Command) > 0:
		argv, err = i.program(ctx, pkg, r.Command)
	case m.Contract.Shim != "":
		argv, err = i.shim(ctx, pkg, m)
	case filepath.Ext(r.Entry) == ".py":
		argv, err = i.script(ctx, pkg, m)
	case slices.Contains(nodeExtensions, filepath.Ext(r.Entry)):
		argv, err = i.bundled(ctx, pkg, r.Entry)
	default:
		err = failed("the runner names neither a command nor a source file that can be run: %q", r.Entry)
	}
	if plugin.CodeOf(err) == plugin.CodeDependencyMissing && m.Runner.Binding != nil {
		err = failed("%s", plugin.AsError(err).Message) // what is bound is one program: that it is not there is its contract's launch_failed
	}
	if err != nil {
		return nil, named(m.Name, err)
	}
	return argv, nil
}

var nodeExtensions = []string{".ts", ".js", ".mjs"}

// program finds what a command starts with.
func (i *Interpreters) program(ctx context.Context, pkg plugin.Package, command []string) ([]string, error) {
	name, path := command[0], ""
	switch {
	case strings.HasPrefix(name, "./"):
		file, err := inside(pkg.Dir, name)
		if err != nil {
			return nil, err
		}
		path = file
	case filepath.IsAbs(name):
		path = name
	case strings.ContainsAny(name, `/\`):
		return nil, failed("%s is neither a file of the package (./file), nor the name of a program, nor an absolute path", name)
	default:
		found, err := exec.LookPath(name)
		if err == nil {
			found, err = filepath.Abs(found)
		}
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeDependencyMissing, "%s is not installed: no such program is on the PATH of the host", name)
		}
		path = i.real(ctx, name, found, pkg.Dir)
	}
	argv := []string{path}
	for _, argument := range command[1:] {
		if strings.HasPrefix(argument, "./") { // a file of the package, if there is one: the plugin starts elsewhere
			if file, err := inside(pkg.Dir, argument); err == nil {
				argument = file
			}
		}
		argv = append(argv, argument)
	}
	return argv, nil
}

// real returns the interpreter behind a program that was found on PATH, which
// may be a version manager's script; the program itself if it is none.
func (i *Interpreters) real(ctx context.Context, name, path, pkg string) string {
	for _, p := range []*interpreter{i.python, i.node} {
		if !slices.Contains(p.names, name) || i.foreign(path, pkg) != nil {
			continue
		}
		if answer, err := p.learn(ctx, path, false); err == nil {
			return answer.Real
		}
	}
	return path
}

// script runs a Python file.
func (i *Interpreters) script(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	file, err := inside(pkg.Dir, m.Runner.Entry)
	if err != nil {
		return nil, err
	}
	return i.boot(ctx, pkg, m, "mortise", file)
}

// boot runs _boot.py of one part of the SDK for Python, with arguments.
func (i *Interpreters) boot(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, part string, arguments ...string) ([]string, error) {
	found, err := i.python.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	sdk, err := i.pythonSDK.layOut()
	if err != nil {
		return nil, err
	}
	// -S: what site does at a start, above all running the .pth files of
	// installed packages, can take longer than everything else together.
	// _boot.py adds the directories that installed packages are in.
	pycache := i.pycache()
	if i.caged != nil && i.caged() {
		i.warm(ctx, found.Real, sdk, part)
		pycache = i.bytecode()
	}
	argv := isolated(found, pycache)
	if m.Environment != nil {
		argv = append(argv, "-X", "environment="+filepath.Join(pkg.Dir, "_environment"))
	}
	argv = append(argv, "-S", filepath.Join(sdk, part, "_boot.py"))
	return append(argv, arguments...), nil
}

// isolated starts Python with nothing of the host's environment, and tells it
// where bytecode goes and where packages are that only the host's user has.
func isolated(found Found, pycache string) []string {
	argv := []string{found.Real, "-I", "-X", "pycache_prefix=" + pycache}
	if isDir(found.userSite) {
		argv = append(argv, "-X", "user_site="+found.userSite)
	}
	return argv
}

// describePython makes an interpreter print what it reads, a line each, and
// then what it is.
const describePython = `import sys, os, site
print("prefix:" + sys.base_prefix)
paths = ["/sbin/ldconfig", *filter(None, sys.path)] # ctypes.util.find_library asks ldconfig
for prefix in {sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(sys.executable))}:
    paths.append(os.path.join(prefix, "pyvenv.cfg"))
    if any(os.path.exists(os.path.join(prefix, name)) for name in ("pyvenv.cfg", "conda-meta")): # all of it is Python's
        paths += [os.path.join(prefix, "lib"), os.path.join(prefix, "share")]
    for lib in ("lib", "lib64"):
        paths.append(os.path.join(prefix, lib, os.path.basename(os.path.dirname(os.__file__))))
        paths.append(os.path.join(prefix, lib, "python3", "dist-packages"))
        paths.append(os.path.join(prefix, "local", lib, os.path.basename(os.path.dirname(os.__file__))))
if not os.environ.get("PYTHONNOUSERSITE"):
    user = site.getusersitepackages()
    print("user:" + user)
    paths.append(user)
for path in dict.fromkeys(paths):
    print("path:" + path) # there or not: packages may be installed later
print(sys.executable)
print('%d.%d.%d' % sys.version_info[:3])`

func (i *Interpreters) pycache() string { return filepath.Join(i.dir, "pycache") }

// bundled runs a TypeScript or JavaScript file.
func (i *Interpreters) bundled(ctx context.Context, pkg plugin.Package, entry string) ([]string, error) {
	if _, err := inside(pkg.Dir, entry); err != nil {
		return nil, err
	}
	found, err := i.node.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	file, err := i.bundles.bundle(ctx, pkg, entry, false)
	if err != nil {
		return nil, err
	}
	if pkg.Dev { // its traces name the author's lines, for 3 ms of start
		return []string{found.Real, "--enable-source-maps", file}, nil
	}
	return []string{found.Real, file}, nil
}

// inside returns the absolute path of a regular file of a package.
func inside(dir, name string) (string, error) {
	clean := filepath.Clean(filepath.FromSlash(name))
	if !filepath.IsLocal(clean) || dir == "" {
		return "", failed("%s is not inside the package", name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", failed("the package cannot be opened: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(clean) // refuses links that lead out
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", failed("%s is not there", filepath.Join(dir, clean))
	case err != nil:
		return "", failed("%s cannot be used: %w", filepath.Join(dir, clean), err)
	case !info.Mode().IsRegular():
		return "", failed("%s is not a file", filepath.Join(dir, clean))
	}
	return filepath.Join(dir, clean), nil
}

func failed(format string, args ...any) *plugin.Error {
	return plugin.Errorf(plugin.CodeLaunchFailed, format, args...)
}

// named puts the plugin's name before the message. An error that has no code
// yet is one of making files: the program cannot be started without them.
func named(name string, err error) error {
	var e *plugin.Error
	switch {
	case errors.As(err, &e):
		copied := *e // it may be another call's as well
		e = &copied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = plugin.AsError(err)
	default:
		e = failed("%w", err)
	}
	if !strings.HasPrefix(e.Message, name+": ") { // as the cause of a deadline may have it
		e.Message = fmt.Sprintf("%s: %s", name, e.Message)
	}
	return e
}
