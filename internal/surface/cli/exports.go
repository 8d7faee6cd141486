package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// An exported file is what became of an export.
type exported struct {
	Member   string `json:"argument"`
	Path     string `json:"path"`
	Artifact string `json:"artifact"`
}

// lendExports registers the files that exports would replace, and names them in
// the input by where the plugin sees them, so that a tool which appends has what
// to append to. The path of a file that does not exist becomes absolute: in the
// working directory of a session an earlier call may have left one of that name.
func (r *run) lendExports(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	if len(r.exports) == 0 {
		return raw, nil
	}
	members, err := input.Object(raw)
	if err != nil {
		return nil, err
	}
	for _, w := range r.exports {
		if members[w.Member] = w.Path; w.Was == nil {
			continue
		}
		there, err := r.addFile(ctx, r.Host, r.session.ID, w.Path, host.NewArtifact{})
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", w.Member, err)
		}
		view, err := r.Sessions().View(ctx, r.session.ID)
		if err != nil {
			return nil, err
		}
		members[w.Member] = view.Path(there)
	}
	return input.Spelled(members)
}

// export writes what a call made where the command line said.
func (r *run) export(ctx context.Context, made []plugin.Artifact) (done []exported, err error) {
	for _, w := range r.exports {
		id, findErr := r.Sessions().MadeFor(ctx, r.session.ID, w.Member, filepath.Base(w.Path), made)
		if findErr != nil || id == "" {
			err = errors.Join(err, findErr)
			continue
		}
		if writeErr := r.exportOne(ctx, id, w); writeErr != nil {
			err = errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s was not written: %w; what the plugin made is artifact %s, which 'mortise artifacts get %s --session %s -o FILE' writes", w.Path, writeErr, id, id, r.session.ID))
			continue
		}
		done = append(done, exported{w.Member, w.Path, id})
	}
	return done, err
}

// exportOne writes an artifact where the command line said, unless the file there
// is not the one that the plugin was given: what was written to it meanwhile
// would be lost.
func (r *run) exportOne(ctx context.Context, id string, w input.Export) error {
	if err := errors.Join(r.refuseOwn(w.Path), w.Unchanged()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.Path), 0o777); err != nil {
		return err
	}
	artifact, err := r.Sessions().OpenArtifact(ctx, r.session.ID, id)
	if err != nil {
		return err
	}
	defer artifact.Close()
	return writeWhole(w.Path, artifact)
}

// sayUnwritten says of files that this command does not wait for where they will be.
func (r *run) sayUnwritten(call string) {
	for _, w := range r.exports {
		r.say("--%s: %s is written by a command that waits for the call, and this one does not: once call %s has succeeded, the file is an artifact of session %s, which 'mortise artifacts get ARTIFACT --session %s -o FILE' writes",
			w.Member, w.Path, call, r.session.ID, r.session.ID)
	}
}

// showExported says where files were written.
func (c *command) showExported(done []exported) {
	for _, e := range done {
		fmt.Fprintf(c.out, "exported %s to %s\n", e.Artifact, terminal.Safe(e.Path))
	}
}
