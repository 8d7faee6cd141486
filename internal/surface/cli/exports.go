package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// An export is an argument that names a file for an investigation plugin to
// write, as the person at the command line typed it. The plugin writes into its
// scratch directory and never there: what it wrote becomes an artifact, and this
// process, which is the person's, copies that to the path.
//
// The path is granted by being typed here. What comes in a file, on standard
// input, from another plugin or from a model names no file of the host.
type export struct {
	member, path string
	was          *plugin.File // what was there when the call began, nil for nothing
}

// An exported file is what became of an export.
type exported struct {
	Member   string `json:"argument"`
	Path     string `json:"path"`
	Artifact string `json:"artifact"`
}

// exportsOf returns the files that the command line itself asks to have written, by the
// arguments that name them.
func exportsOf(typed map[string]string) (list []export, err error) {
	for _, member := range slices.Sorted(maps.Keys(typed)) {
		text := typed[member]
		path, err := filepath.Abs(text)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if strings.HasSuffix(text, "/") || err == nil && !info.Mode().IsRegular() {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "--%s %s is no regular file: name the file to write", member, text)
		}
		one := export{member: member, path: path}
		if err == nil {
			if one.was, err = host.OpenFile(path); err != nil {
				return nil, plugin.Errorf(plugin.CodeInvalidInput, "--%s: %s", member, plugin.AsError(err).Message)
			}
		}
		list = append(list, one)
	}
	return list, nil
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
		if members[w.member] = w.path; w.was == nil {
			continue
		}
		there, err := r.addFile(ctx, r.Host, r.session.ID, w.path, host.NewArtifact{})
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", w.member, err)
		}
		view, err := r.Sessions().View(ctx, r.session.ID)
		if err != nil {
			return nil, err
		}
		members[w.member] = view.Path(there)
	}
	return input.Spelled(members)
}

// export writes what a call made where the command line said.
func (r *run) export(ctx context.Context, made []plugin.Artifact) (done []exported, err error) {
	for _, w := range r.exports {
		id, findErr := r.Sessions().MadeFor(ctx, r.session.ID, w.member, filepath.Base(w.path), made)
		if findErr != nil || id == "" {
			err = errors.Join(err, findErr)
			continue
		}
		if writeErr := r.exportOne(ctx, id, w); writeErr != nil {
			err = errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s was not written: %w; what the plugin made is artifact %s, which 'mortise artifacts get %s --session %s -o FILE' writes", w.path, writeErr, id, id, r.session.ID))
			continue
		}
		done = append(done, exported{w.member, w.path, id})
	}
	return done, err
}

// exportOne writes an artifact where the command line said, unless the file there
// is not the one that the plugin was given: what was written to it meanwhile
// would be lost.
func (r *run) exportOne(ctx context.Context, id string, w export) error {
	if err := errors.Join(r.refuseOwn(w.path), w.unchanged()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o777); err != nil {
		return err
	}
	artifact, err := r.Sessions().OpenArtifact(ctx, r.session.ID, id)
	if err != nil {
		return err
	}
	defer artifact.Close()
	return writeWhole(w.path, artifact)
}

// unchanged reports a file that was made, changed or deleted since the call began.
func (w export) unchanged() error {
	if w.was != nil {
		if err := host.Unchanged(w.was); err != nil {
			return fmt.Errorf("the file there was changed while the plugin ran: %w", err)
		}
		return nil
	}
	if _, err := os.Stat(w.path); err == nil {
		return errors.New("another program made a file there while the plugin ran")
	}
	return nil
}

// sayUnwritten says of files that this command does not wait for where they will be.
func (r *run) sayUnwritten(call string) {
	for _, w := range r.exports {
		r.say("--%s: %s is written by a command that waits for the call, and this one does not: once call %s has succeeded, the file is an artifact of session %s, which 'mortise artifacts get ARTIFACT --session %s -o FILE' writes",
			w.member, w.path, call, r.session.ID, r.session.ID)
	}
}

// showExported says where files were written.
func (c *command) showExported(done []exported) {
	for _, e := range done {
		fmt.Fprintf(c.out, "exported %s to %s\n", e.Artifact, terminal.Safe(e.Path))
	}
}
