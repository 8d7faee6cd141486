package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// maxArtifacts is how many files a process may be shown.
const maxArtifacts = 256

// artifacts returns the files that an input names for its operation to read:
// those with an absolute path in its member artifacts. A caged process sees
// exactly these, so only calls with the same files share one.
func (r *Runner) artifacts(input []byte) ([]string, error) {
	if !bytes.Contains(input, []byte(`"artifacts"`)) || r.Level() == string(sandbox.None) {
		return nil, nil
	}
	var in struct {
		Artifacts []struct {
			Path     string `json:"path"`
			FilePath string `json:"file_path"`
		} `json:"artifacts"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil, nil // what is there has another form, and names no files
	}
	var files []string
	for _, item := range in.Artifacts {
		for _, path := range []string{item.Path, item.FilePath} {
			if !filepath.IsAbs(path) {
				continue
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue // the plugin says that it is not there
			}
			if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
				continue
			}
			if r.hidden(real) {
				return nil, plugin.Errorf(plugin.CodeInvalidInput, "artifacts: %s is the host's own and is shown to no plugin", path)
			}
			files = append(files, path)
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > maxArtifacts {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%d artifacts are named; a process is shown at most %d", len(files), maxArtifacts)
	}
	return files, nil
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
