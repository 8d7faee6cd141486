package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/plugin"
)

// addDirectory registers the files in a directory, as they are now, and the
// directory as an artifact that says which they are: tools of Event Mill see it
// as a directory. What is no regular file, a link too, is left out and said.
func (c *command) addDirectory(ctx context.Context, k client.Host, in, dir string, a host.NewArtifact) (host.Artifact, error) {
	if a.Type != "" && !slices.Contains(typeNames(), a.Type) { // before any of the files is there
		return host.Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "there is no type %.80q of artifacts; 'mortise artifacts types' shows those there are", a.Type)
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return host.Artifact{}, err
	}
	files, left, err := input.Directory(whole)
	if err != nil {
		return host.Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory that cannot be added: %w", dir, err)
	}
	laid := []host.LaidFile{}
	for _, file := range files {
		added, err := c.addFile(ctx, k, in, file, host.NewArtifact{Labels: a.Labels})
		if err != nil {
			return host.Artifact{}, err
		}
		inside, err := filepath.Rel(whole, file)
		if err != nil {
			return host.Artifact{}, err
		}
		laid = append(laid, host.LaidFile{Path: filepath.ToSlash(inside), Artifact: added.ID})
	}
	if left > 0 {
		c.say("%d entries of %s are no regular files, and left out", left, dir)
	}
	if a.Name == "" {
		a.Name = filepath.Base(whole)
	}
	return inSession(ctx, k, in, func(id string) (host.Artifact, error) {
		return k.Sessions().AddDirectory(ctx, id, filepath.Base(whole), laid, a)
	})
}

// isDirectory reports whether there is a directory at a path.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
