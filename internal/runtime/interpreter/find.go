package interpreter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// Found is one interpreter as this machine has it.
type Found struct {
	Name    string `json:"name"`              // python3, node
	Path    string `json:"path,omitempty"`    // what was configured or found on PATH; empty if nothing was
	Real    string `json:"real,omitempty"`    // the program behind it
	Version string `json:"version,omitempty"` // such as 3.11.7
	Problem string `json:"problem,omitempty"` // why it cannot be used and what to do; empty if it can

	userSite string // where this user's own Python packages are, if there are any
}

// Found looks for the interpreters again, past the cache.
func (i *Interpreters) Found() []Found {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	return []Found{i.python.look(ctx, "", true), i.node.look(ctx, "", true)}
}

// askLimit is how long an interpreter may take to say what it is. A version
// manager's script takes 50 ms and more.
const askLimit = 10 * time.Second

// An interpreter is a program that runs source files.
type interpreter struct {
	name         string   // as people call it: python3
	title        string   // as its makers do: Python
	names        []string // looked for on PATH, in this order
	ask          []string // arguments that make it print its own path and its version, a line each
	major, minor int      // the oldest version that will do
	setting, set string   // the key of the configuration; its value, which may be empty
	memory       *memory
	foreign      func(path, pkg string) error // why the host must not run it

	known  atomic.Pointer[Found] // nil until it was found
	flight singleflight.Group
}

// find returns the interpreter for a plugin whose package is in the directory
// pkg, or dependency_missing. It is none of the package's own files.
func (p *interpreter) find(ctx context.Context, pkg string) (Found, error) {
	if known := p.known.Load(); known != nil && exists(known.Real) && !within(known.Real, pkg) {
		return *known, nil
	}
	answer := p.flight.DoChan(pkg, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer cancel()
		found := p.look(ctx, pkg, false)
		if found.Problem != "" {
			return found, plugin.Errorf(plugin.CodeDependencyMissing, "%s", found.Problem)
		}
		p.known.Store(&found)
		return found, nil
	})
	select {
	case result := <-answer:
		return result.Val.(Found), result.Err
	case <-ctx.Done():
		return Found{}, context.Cause(ctx)
	}
}

// look tries each name and returns the first that will do, or else what is
// most worth knowing of those that will not.
func (p *interpreter) look(ctx context.Context, pkg string, again bool) Found {
	names := p.names
	if p.set != "" {
		names = []string{p.set}
	}
	var best Found
	for n, name := range names {
		found := p.try(ctx, name, pkg, again)
		if found.Problem == "" {
			return found
		}
		if n == 0 || best.Path == "" && found.Path != "" {
			best = found
		}
	}
	return best
}

func (p *interpreter) try(ctx context.Context, name, pkg string, again bool) Found {
	found := Found{Name: p.name}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case err != nil && p.set != "":
		found.Problem = fmt.Sprintf("%s in mortise.yaml is %s, which cannot be run: %v", p.setting, name, cause(err))
		return found
	case err != nil:
		found.Problem = fmt.Sprintf("%s is not installed: %s", p.name, p.remedy())
		return found
	}
	found.Path = path
	if err := p.foreign(path, pkg); err != nil {
		found.Problem = fmt.Sprintf("%s cannot be used (%v): %s", path, err, p.remedy())
		return found
	}
	answer, err := p.learn(ctx, path, again)
	if err != nil {
		found.Problem = fmt.Sprintf("%s does not say what it is (%v): %s", path, err, p.remedy())
		return found
	}
	if err := p.foreign(answer.Real, pkg); err != nil {
		found.Problem = fmt.Sprintf("%s leads to %s, which cannot be used (%v): %s", path, answer.Real, err, p.remedy())
		return found
	}
	found.Real, found.Version, found.userSite = answer.Real, answer.Version, answer.UserSite
	if !p.accepts(answer.Version) {
		found.Problem = fmt.Sprintf("%s is %s %s and too old: %s", path, p.title, answer.Version, p.remedy())
	}
	return found
}

// remedy says what to do.
func (p *interpreter) remedy() string {
	return fmt.Sprintf("install %s %s or later, or set %s in mortise.yaml", p.title, p.least(), p.setting)
}

func (p *interpreter) least() string {
	if p.minor == 0 {
		return strconv.Itoa(p.major)
	}
	return fmt.Sprintf("%d.%d", p.major, p.minor)
}

func (p *interpreter) accepts(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > p.major || major == p.major && minor >= p.minor
}

// learn returns what the program at path says it is: from the cache, unless the
// program has changed since, its real program is gone, or the caller asks for a
// new probe.
func (p *interpreter) learn(ctx context.Context, path string, again bool) (answer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return answer{}, err
	}
	if known, ok := p.memory.recall(p.name, path, info); ok && !again && exists(known.Real) {
		return known, nil
	}
	said, err := p.question(ctx, path)
	if err != nil {
		return answer{}, err
	}
	said.Size, said.Modified = info.Size(), info.ModTime().UnixNano()
	p.memory.keep(p.name, path, said)
	return said, nil
}

var versionForm = pattern.New(`^\d+\.\d+(\.\d+)?`)

// question runs the program at path.
func (p *interpreter) question(ctx context.Context, path string) (answer, error) {
	cmd := exec.CommandContext(ctx, path, p.ask...)
	cmd.Dir = os.TempDir() // a version manager asks the directory; the answer must fit anywhere
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return answer{}, fmt.Errorf("%w: %s", err, clip(lastLine(string(exit.Stderr)), 200))
		}
		return answer{}, errors.Join(context.Cause(ctx), err)
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), "\r\n", "\n")), "\n")
	if len(lines) < 2 {
		return answer{}, fmt.Errorf("it answers %q", clip(string(out), 200))
	}
	said := answer{Form: answerForm, Real: lines[len(lines)-2], Version: versionForm.FindString(lines[len(lines)-1])}
	if said.Version == "" {
		return answer{}, fmt.Errorf("it answers %q", clip(string(out), 200))
	}
	if !filepath.IsAbs(said.Real) || !exists(said.Real) {
		said.Real = path
	}
	var paths []string
	var prefix string
	for _, line := range lines {
		if path, ok := strings.CutPrefix(line, "prefix:"); ok {
			prefix = path
		}
		if path, ok := strings.CutPrefix(line, "path:"); ok && filepath.IsAbs(path) {
			paths = append(paths, path)
		}
		if path, ok := strings.CutPrefix(line, "user:"); ok && filepath.IsAbs(path) {
			said.UserSite = path
		}
	}
	said.Reads = p.needs(said, prefix, paths)
	return said, nil
}

// cause is the last word of a chain of errors.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// clip cuts text after so many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
