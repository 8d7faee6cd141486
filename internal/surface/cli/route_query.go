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

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/plugin"
)

// headBytes is how much of a file is looked at to tell its type.
const headBytes = 8 << 10

// maxGiven is how many artifacts a request may name.
const maxGiven = 1000

// atHand adds to a query what is known of a session, and the artifacts that
// were given: files, or what is in the session. Where none are given, all that
// people put into the session are at hand.
func atHand(ctx context.Context, k client.Host, q *host.RouteQuery, in string, given []string) (err error) {
	if len(given) > maxGiven {
		return usage{fmt.Errorf("--artifact is given %d times; %d times are accepted", len(given), maxGiven)}
	}
	var kept []host.Artifact
	if in != "" {
		if kept, err = inSession(ctx, k, in, func(id string) ([]host.Artifact, error) { return k.Sessions().AtHand(ctx, q, id) }); err != nil {
			return err
		}
	}
	known := func(a host.Artifact) host.RouteArtifact {
		return host.RouteArtifact{ID: a.ID, Type: a.Type, Name: a.Name}
	}
	if len(given) == 0 {
		for _, a := range kept {
			if a.SourceTool == "" { // what tools made says what was done, not what is asked
				q.Artifacts = append(q.Artifacts, known(a))
			}
		}
		return nil
	}
	for _, name := range given {
		i := slices.IndexFunc(kept, func(a host.Artifact) bool { return a.ID == name })
		if i >= 0 {
			q.Artifacts = append(q.Artifacts, known(kept[i]))
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
func fileAtHand(path string) (host.RouteArtifact, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would wait for its writer
	if err != nil {
		return host.RouteArtifact{}, err
	}
	if !info.Mode().IsRegular() {
		return host.RouteArtifact{}, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return host.RouteArtifact{}, err
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return host.RouteArtifact{}, err
	}
	name := filepath.Base(path)
	return host.RouteArtifact{Name: name, Type: host.DetectType(name, head[:n])}, nil
}
