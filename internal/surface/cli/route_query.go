package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/router"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// headBytes is how much of a file is looked at to tell its type.
const headBytes = 8 << 10

// maxGiven is how many artifacts a request may name.
const maxGiven = 1000

// atHand adds to a query what is known of a session, and the artifacts that
// were given: files, or what is in the session. Where none are given, all that
// people put into the session are at hand.
func atHand(ctx context.Context, a *app.App, q *router.Query, in string, given []string) error {
	if len(given) > maxGiven {
		return usage{fmt.Errorf("--artifact is given %d times; %d times are accepted", len(given), maxGiven)}
	}
	var kept []host.Artifact
	if in != "" {
		found, err := findSession(ctx, a.As(a.Principal), in)
		if err != nil {
			return err
		}
		if kept, err = a.As(a.Principal).Sessions().Artifacts(ctx, found.ID); err != nil {
			return err
		}
		q.Session = found.Pillar
		for _, artifact := range slices.Backward(kept) { // the newest that a tool made
			if q.Last == "" {
				q.Last = artifact.SourceTool
			}
		}
	}
	if len(given) == 0 {
		for i := range kept {
			if kept[i].SourceTool != "" { // what tools made says what was done, not what is asked
				continue
			}
			q.Artifacts = append(q.Artifacts, router.Artifact{ID: kept[i].ID, Type: kept[i].Type, Name: kept[i].Name})
		}
		return nil
	}
	for _, name := range given {
		i := slices.IndexFunc(kept, func(k host.Artifact) bool { return k.ID == name })
		if i >= 0 {
			q.Artifacts = append(q.Artifacts, router.Artifact{ID: kept[i].ID, Type: kept[i].Type, Name: kept[i].Name})
			continue
		}
		file, err := fileAtHand(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && in == "":
			return plugin.Errorf(plugin.CodeNotFound, "%s is no file; with --session it may be an artifact's id", name)
		case errors.Is(err, fs.ErrNotExist):
			return plugin.Errorf(plugin.CodeNotFound, "%s is neither a file nor an artifact of %s; 'mortise artifacts list' shows those", name, in)
		case err != nil:
			return plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", name, err)
		}
		q.Artifacts = append(q.Artifacts, file)
	}
	return nil
}

// fileAtHand tells what a file is, by its name and how it begins. It is not
// registered.
func fileAtHand(path string) (router.Artifact, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would wait for its writer
	if err != nil {
		return router.Artifact{}, err
	}
	if !info.Mode().IsRegular() {
		return router.Artifact{}, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return router.Artifact{}, err
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return router.Artifact{}, err
	}
	name := filepath.Base(path)
	return router.Artifact{Name: name, Type: host.DetectType(name, head[:n])}, nil
}
