package process

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// artifacts returns the files that a call may show to its plugin, by path. A
// caged process sees exactly these, so only calls with the same files share one:
// the key tells files that follow one another at one path apart.
func (r *Runner) artifacts(call *plugin.Call) (files []sandbox.File, key string, err error) {
	if len(call.Files) == 0 || r.Level() == string(sandbox.None) {
		return nil, "", nil
	}
	var parts []string
	for _, f := range call.Files {
		real, err := filepath.EvalSymlinks(f.Path)
		if err != nil {
			return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "%s, which was handed on, cannot be found any more: %w; make the call again", f.Path, err)
		}
		if is, err := handed.Identity(f.Path); err != nil || is.Device != f.Is.Device || is.Inode != f.Is.Inode {
			return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "%s is not the file any more that was handed on; make the call again", f.Path)
		}
		if r.hidden(real) && !f.Session {
			return nil, "", plugin.Errorf(plugin.CodeInvalidInput, "%s is the host's own and is shown to no plugin", f.Path)
		}
		files = append(files, sandbox.File{Path: f.Path, Device: f.Is.Device, Inode: f.Is.Inode})
		parts = append(parts, fmt.Sprintf("%s\x00%d:%d", f.Path, f.Is.Device, f.Is.Inode))
	}
	slices.SortFunc(files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(parts)
	return files, strings.Join(parts, "\x00"), nil
}

// hidden reports whether path lies in a directory that no plugin sees.
func (r *Runner) hidden(path string) bool {
	for _, dir := range r.opts.Hide {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && strings.HasPrefix(path, real+string(filepath.Separator)) {
			return true
		}
	}
	return false
}
