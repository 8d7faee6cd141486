package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of a directory that is added as one.
const (
	directoryFiles = 1000
	directoryBytes = 4 << 30
)

// errLarge: a directory holds more than is added at once.
var errLarge = errors.New("more than is added as one")

// A laidFile is a file of a directory: where it lies in it, and which artifact it is.
type laidFile struct {
	Path     string `json:"path"` // with slashes
	Artifact string `json:"artifact_id"`
}

// addDirectory registers the files in a directory, as they are now, and the
// directory as an artifact that says which they are: tools of Event Mill see it
// as a directory. What is no regular file, a link too, is left out and said.
func (c *command) addDirectory(ctx context.Context, k host.API, in, dir string, a host.NewArtifact) (host.Artifact, error) {
	if a.Type != "" && !slices.Contains(typeNames(), a.Type) { // before any of the files is there
		return host.Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "there is no type %.80q of artifacts; 'mortise artifacts types' shows those there are", a.Type)
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return host.Artifact{}, err
	}
	files, left, err := filesIn(whole)
	if err != nil {
		return host.Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory that cannot be added: %w", dir, err)
	}
	laid := []laidFile{}
	for _, file := range files {
		added, err := c.addFile(ctx, k, in, file, host.NewArtifact{Labels: a.Labels})
		if err != nil {
			return host.Artifact{}, err
		}
		inside, err := filepath.Rel(whole, file)
		if err != nil {
			return host.Artifact{}, err
		}
		laid = append(laid, laidFile{filepath.ToSlash(inside), added.ID})
	}
	if left > 0 {
		c.say("%d entries of %s are no regular files, and left out", left, dir)
	}
	listing, err := json.MarshalIndent(map[string]any{"files": laid}, "", " ")
	if err != nil {
		return host.Artifact{}, err
	}
	if a.Name == "" {
		a.Name = filepath.Base(whole)
	}
	if a.Type == "" {
		a.Type = "text"
	}
	if a.Metadata, err = json.Marshal(map[string]any{"original_filename": filepath.Base(whole), "directory": true}); err != nil {
		return host.Artifact{}, err
	}
	return inSession(ctx, k, in, func(id string) (host.Artifact, error) {
		return k.Sessions().AddArtifact(ctx, id, bytes.NewReader(listing), a)
	})
}

// filesIn returns the regular files beneath a directory, and how many other
// entries there are.
func filesIn(dir string) (files []string, left int, err error) {
	size := int64(0)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			left++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files, size = append(files, path), size+info.Size()
		if len(files) > directoryFiles || size > directoryBytes {
			return plugin.Errorf(plugin.CodeInvalidInput, "it holds over %d files or %d GiB, %w; name those that you want", directoryFiles, directoryBytes>>30, errLarge)
		}
		return nil
	})
	return files, left, err
}

// isDirectory reports whether there is a directory at a path.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
