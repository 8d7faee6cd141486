package interpreter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// What a package names outside of itself is a request, not an authority: the
// path of a program or a file in its command, a shebang, the loader and the
// libraries of an ELF file. It is shown to the plugin only where it lies, links
// followed, in one of these directories, or in the prefix of an interpreter that
// the host chose; nothing in a hidden place is.
var (
	systemStores = []string{"/nix/store", "/gnu/store"}

	libraryRoots = slices.Concat([]string{
		"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/usr/local/lib64",
	}, systemStores)

	programRoots = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}

	fileRoots = slices.Concat(programRoots, libraryRoots, []string{"/usr/libexec", "/usr/share"})
)

// beneathAny reports whether a path without links lies in one of the directories.
func beneathAny(real string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		root, err := filepath.EvalSymlinks(root)
		return err == nil && strictly(real, root)
	})
}

// strictly reports whether a path lies in a directory and is not itself that.
func strictly(path, dir string) bool { return path != dir && within(path, dir) }

// hidden reports whether a path leads to a place that no plugin sees, by its
// name or by where its links end.
func (i *Interpreters) hidden(path string) bool {
	names := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		names = append(names, real)
	}
	for _, place := range i.hide {
		places := []string{filepath.Clean(place)}
		if real, err := filepath.EvalSymlinks(place); err == nil {
			places = append(places, real)
		}
		for _, place := range places {
			if slices.ContainsFunc(names, func(name string) bool { return within(name, place) }) {
				return true
			}
		}
	}
	return false
}

// foreign says why a program must not be run by the host itself: it is a file
// of the package, or of the data directory, where packages are kept.
func (i *Interpreters) foreign(path, pkg string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	dirs := []string{pkg}
	if resolved, err := filepath.EvalSymlinks(pkg); err == nil {
		dirs = append(dirs, resolved)
	}
	for _, dir := range dirs {
		if dir != "" && (within(path, dir) || within(real, dir)) {
			return errors.New("it is a file of the plugin's package, which the host does not execute")
		}
	}
	if i.hidden(path) {
		return errors.New("it lies in the data directory or another hidden place, and the host executes nothing there")
	}
	return nil
}

// A naming is who named a program.
type naming int

const (
	byPackage  naming = iota // a shebang, an argument, an ELF file
	byManifest               // the program of a command, by its absolute path
	byPath                   // likewise, by a name that the host found on its PATH
	byConfig                 // the command of a binding
)

// maxShebangs is how many scripts may be run by each other.
const maxShebangs = 4

// A judge decides what one plugin is shown besides its package.
type judge struct {
	*Interpreters
	ctx  context.Context
	root string // of the package, without links; "" where there is none
}

// program returns what a program needs to run.
func (j judge) program(path string, by naming, depth int) ([]string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, failed("%s cannot be run: %w", path, cause(err))
	}
	own := by != byConfig && j.owns(real)
	switch {
	case depth > maxShebangs:
		return nil, failed("%s: scripts that are run by scripts, more than %d deep", path, maxShebangs)
	case !own && j.hidden(path) && !(by == byConfig && j.ofAdministrator(real)):
		return nil, j.refusal(path, "program")
	}
	if paths, known := j.known(path, real); known {
		return paths, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); by == byManifest && err == nil && j.root != "" && within(dir, j.root) {
		by = byPackage // a link of the package, which may lead out of it
	}
	interpreter := shebang(real)
	ofSystem := slices.Contains(programRoots, filepath.Dir(path)) || beneathAny(real, fileRoots)
	var needs []string
	switch {
	case own:
	case !ofSystem && (by == byPackage || by == byManifest && !j.mayName(real)):
		return nil, j.refusal(path, "program")
	case by == byConfig && !ofSystem:
		needs = append(needs, path)
		if dir := filepath.Dir(path); !j.hidesWhole(dir) {
			needs = append(needs, dir)
		}
		needs = append(needs, j.layout(path, real)...)
	default:
		needs = append(needs, systemNeeds()...)
		needs = append(needs, path)
	}
	switch {
	case filepath.IsAbs(interpreter):
		more, err := j.program(interpreter, byPackage, depth+1)
		return slices.Concat(needs, systemNeeds(), more), err
	case interpreter != "":
		return append(needs, systemNeeds()...), nil
	case slices.Contains(programRoots, filepath.Dir(path)):
		return needs, nil // its libraries are shown with the rest of the system
	case own || by == byPackage:
		more, refused := follow(systemLibraries(), j.mayLoad, real)
		if refused != "" {
			return nil, j.refusal(refused, "library or loader that "+filepath.Base(path)+" asks for")
		}
		return append(needs, more...), nil
	}
	more, _ := follow(systemLibraries(), func(file string) bool { return !j.hidden(file) }, real)
	return append(needs, more...), nil
}

// programPrefixes are where an administrator installs programs, each with what it
// needs beside it.
var programPrefixes = []string{"/usr", "/opt"}

// mayName reports whether a manifest may name a program of no package by its
// absolute path: one that the system or an administrator installed, one of a
// chosen interpreter, or the host's own. A binding may name any.
func (j judge) mayName(real string) bool {
	return runnable(real) && (beneathAny(real, programPrefixes) || j.ofInterpreter(real) || isHost(real))
}

// isHost reports whether a path without links is that of this very program.
func isHost(real string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	self, err = filepath.EvalSymlinks(self)
	return err == nil && real == self
}

// runnable reports whether a file is a program: executable, and in a form that
// the kernel runs. A key is neither.
func runnable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	_, err = readTable(path)
	return err == nil || shebang(path) != ""
}

// owns reports whether a path without links is of the package.
func (j judge) owns(real string) bool { return j.root != "" && strictly(real, j.root) }

// mayLoad reports whether a program of the package may have a library or a loader.
func (j judge) mayLoad(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil:
		return false
	case j.owns(real):
		return true
	case j.hidden(path):
		return false
	}
	return beneathAny(real, libraryRoots) || j.ofInterpreter(real)
}

// argument decides about an absolute path among the arguments of a command.
func (j judge) argument(path string, by naming) (shown []string, err error) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil || !exists(real):
		if j.hidden(path) {
			return nil, j.refusal(path, "file")
		}
		return nil, nil // it is no file of this machine: only text
	case by != byConfig && j.owns(real):
		return nil, nil
	case j.hidden(path) && !(by == byConfig && j.ofAdministrator(real)):
		return nil, j.refusal(path, "file")
	case by == byConfig:
		if dir := filepath.Dir(path); !j.hidesWhole(dir) {
			shown = append(shown, dir)
		}
		return append(shown, path), nil
	case beneathAny(real, fileRoots) || j.ofInterpreter(real):
		return []string{path}, nil
	}
	return nil, j.refusal(path, "file")
}

func (j judge) refusal(path, what string) error {
	if j.hidden(path) {
		return failed("%s is the %s, and it lies in a place that is shown to no plugin", path, what)
	}
	return failed("%s is the %s, and it lies neither in the package nor where this system or the host's interpreters keep theirs: put it into the package, or bind the plugin in mortise.yaml", path, what)
}

// ofAdministrator reports whether a file of the data directory may be what a
// binding runs: a program or a source file that was put there, beside the
// configuration. The host keeps no such files outside of its own directories.
func (j judge) ofAdministrator(real string) bool {
	home := j.home
	if resolved, err := filepath.EvalSymlinks(home); err == nil {
		home = resolved
	}
	if home == "" || !strictly(real, home) {
		return false
	}
	below, _ := filepath.Rel(home, real)
	first, _, _ := strings.Cut(below, string(filepath.Separator))
	if slices.Contains([]string{"packages", "runtime", "scratch", "sessions", "blobs", "nodes"}, first) {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return info.Mode()&0o111 != 0 || slices.Contains(sourceExtensions, filepath.Ext(real))
}

var sourceExtensions = []string{".py", ".ts", ".js", ".mjs", ".cjs", ".sh", ".rb", ".pl", ".lua", ".php", ".jar"}

// known returns what an interpreter needs that the configuration or the host's
// PATH names, or a virtual environment of one. Only such are ever asked.
func (j judge) known(path, real string) (needs []string, known bool) {
	for _, p := range []*interpreter{j.python, j.node} {
		if !p.calls(path) && !p.calls(real) {
			continue
		}
		said, ok := p.memory.real(p.name, path)
		if !ok {
			said, ok = j.chosen(p, path, real)
		}
		if ok {
			needs = append(slices.Clone(said.Reads), path)
			return append(needs, environment(path)...), true
		}
	}
	return nil, false
}

// calls reports whether a program is named like the interpreter, or a version of it.
func (p *interpreter) calls(path string) bool {
	return slices.Contains(p.names, strings.TrimRight(filepath.Base(path), ".0123456789")) // python, of python3.12
}

// chosen returns what an interpreter says of itself if the program is the one
// that the configuration names or that the host finds on its PATH: the same
// name, or the same file. Everything else that is named so is data.
func (j judge) chosen(p *interpreter, path, real string) (answer, bool) {
	found, err := p.find(j.ctx, j.root)
	if err == nil {
		for _, name := range []string{found.Path, found.Real} {
			if resolved, err := filepath.EvalSymlinks(name); name == path || err == nil && resolved == real {
				return p.memory.real(p.name, found.Real)
			}
		}
	}
	onPath, err := exec.LookPath(filepath.Base(path))
	if err != nil || slices.Contains(programRoots, filepath.Dir(path)) { // all of the system is shown to those
		return answer{}, false
	}
	if onPath, err = filepath.Abs(onPath); err != nil || onPath != path || j.foreign(path, j.root) != nil {
		return answer{}, false
	}
	said, err := p.learn(j.ctx, path, false)
	return said, err == nil
}

// ofInterpreter reports whether a path without links is of what an interpreter
// reads that the host chose.
func (j judge) ofInterpreter(real string) bool {
	for _, p := range []*interpreter{j.python, j.node} {
		found := p.known.Load()
		if found == nil {
			continue
		}
		said, _ := p.memory.real(p.name, found.Real)
		if slices.ContainsFunc(said.Reads, func(dir string) bool {
			dir, err := filepath.EvalSymlinks(dir)
			return err == nil && within(real, dir)
		}) {
			return true
		}
	}
	return false
}

// environment returns what of a virtual environment its interpreter reads; none
// if the program at path is of no such environment.
func environment(path string) []string {
	prefix := filepath.Dir(filepath.Dir(path))
	mark := filepath.Join(prefix, "pyvenv.cfg")
	if info, err := os.Lstat(mark); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	root, err := filepath.EvalSymlinks(prefix)
	if err != nil {
		return nil
	}
	needs := []string{mark}
	for _, name := range []string{"lib", "lib64", "share"} {
		dir := filepath.Join(prefix, name)
		if real, err := filepath.EvalSymlinks(dir); err == nil && within(real, root) {
			needs = append(needs, dir)
		}
	}
	return needs
}

// layout returns what a Python reads that the configuration binds by its path,
// by how installations are laid out: it is not asked.
func (j judge) layout(path, real string) []string {
	if !j.python.calls(path) && !j.python.calls(real) {
		return nil
	}
	needs := environment(path)
	for _, prefix := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(filepath.Dir(real))} {
		if isDir(filepath.Join(prefix, "conda-meta")) {
			needs = append(needs, filepath.Join(prefix, "lib"), filepath.Join(prefix, "share"))
		}
		for _, pattern := range []string{"lib/python3*", "lib64/python3*", "local/lib/python3*"} {
			found, _ := filepath.Glob(filepath.Join(prefix, pattern))
			needs = append(needs, found...)
		}
	}
	if beneathAny(real, programRoots) { // of a virtual environment of the system's
		needs = append(needs, systemNeeds()...)
	}
	modules := []string{}
	for _, dir := range needs {
		found, _ := filepath.Glob(filepath.Join(dir, "lib-dynload", "*.so"))
		modules = append(modules, found...)
	}
	more, _ := follow(systemLibraries(), func(file string) bool { return !j.hidden(file) }, modules...)
	return append(needs, more...)
}

// systemNeeds are what scripts and programs of the system find of it.
func systemNeeds() []string {
	needs := slices.Clone(systemPrograms)
	for _, pattern := range settings {
		more, _ := filepath.Glob(pattern)
		needs = append(needs, more...)
	}
	return needs
}

// shown makes sure that nothing in a hidden place is among what a plugin may
// read, but for what the host itself keeps there for it.
func (j judge) shown(reads []string, bound bool) ([]string, error) {
	var all []string
	for _, path := range reads {
		real, err := filepath.EvalSymlinks(path)
		switch {
		case path == "" || errors.Is(err, fs.ErrNotExist) || err != nil:
			continue
		case !j.hidden(path), within(path, j.dir), j.owns(real), real == j.root:
		case bound && (j.ofAdministrator(real) || isDir(real) && j.home != "" && !j.hidesWhole(real)):
		default:
			return nil, plugin.Errorf(plugin.CodeLaunchFailed, "%s lies in a place that is shown to no plugin", path)
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// hidesWhole reports whether a directory is a hidden place itself, or one of
// those that are no data directory.
func (j judge) hidesWhole(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	for _, place := range j.hide {
		resolved, err := filepath.EvalSymlinks(place)
		if err == nil && (real == resolved || place != j.home && within(real, resolved)) {
			return true
		}
	}
	return false
}
