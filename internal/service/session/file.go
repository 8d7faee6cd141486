package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// AddFile is Add for a file of a person's, under its own name where a has none.
func (s *Sessions) AddFile(ctx context.Context, tenant, session, path string, a Add) (Artifact, error) {
	if a.Name == "" {
		a.Name = filepath.Base(path)
	}
	// Non-blocking: the other end of a FIFO may never be opened.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Artifact{}, plugin.Errorf(plugin.CodeNotFound, "there is no file %s", path)
	case errors.Is(err, fs.ErrPermission):
		return Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s may not be read: %w", path, err)
	case err != nil:
		return Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Artifact{}, err
	case info.IsDir():
		return Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory, and an artifact is one file: name those in it, as %s/* does", path, filepath.Clean(path))
	case !info.Mode().IsRegular():
		return Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is no regular file", path)
	case info.Size() > s.MaxArtifact:
		return Artifact{}, plugin.Errorf(plugin.CodeInputTooLarge, "%s has %d bytes, and an artifact at most %d; limits.artifact_bytes in mortise.yaml says how many", path, info.Size(), s.MaxArtifact)
	}
	if len(a.Metadata) == 0 {
		if a.Metadata, err = datedOf(filepath.Base(path), info.ModTime()); err != nil {
			return Artifact{}, err
		}
	}
	return s.Add(ctx, tenant, session, &counted{r: f, tell: a.Progress}, a)
}

// A counted reader tells how much was read of it.
type counted struct {
	r    io.Reader
	n    int64
	tell func(int64)
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n += int64(n); c.tell != nil {
		c.tell(c.n)
	}
	return n, err
}
