package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/plugin"
)

// A written is the input of a call as a person wrote it: whole, and members beside it.
type written struct {
	whole json.RawMessage // of --input, or the object after --
	input.Arguments
}

// readWritten reads the flags and what stands after --.
func (c *command) readWritten(f runFlags) (w written, err error) {
	if w.whole, err = c.readInput(f.input); err != nil {
		return w, err
	}
	if w.Arguments, err = input.Read(f.arguments, f.set); err != nil || w.Object == "" {
		return w, err
	}
	if len(w.whole) > 0 {
		return w, usage{errors.New("the input is given twice: with --input, and as an object after --")}
	}
	w.whole, err = c.readValue("the input", "the object after --", w.Object)
	return w, err
}

// compose returns the input for an operation, which may be unknown. adds says that more
// is to be named in it.
func (w written) compose(t *plugin.Target, adds bool) (json.RawMessage, error) {
	if len(w.Set) == 0 && len(w.List) == 0 && !adds {
		return w.whole, nil
	}
	members, err := input.Object(w.whole)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "--set, --artifact and arguments after -- add to an object, and the input is none")
	}
	if t == nil {
		err = w.Into(members, nil, false)
	} else {
		err = w.Into(members, t.Operation.Input, t.Manifest.Contract.Investigates)
	}
	if err != nil {
		return nil, err
	}
	return input.Spelled(members)
}

// withSet returns an input with the values of --set in it.
func withSet(whole json.RawMessage, set []string, t *plugin.Target) (json.RawMessage, error) {
	return written{whole: whole, Arguments: input.Arguments{Set: set}}.compose(t, false)
}

var artifactID = regexp.MustCompile(`^art_[0-9a-f]{8}$`)

// attach opens the files of --artifact as the user of this process, to be handed on. For
// an investigation plugin they are registered in the session instead, where they are not
// in it yet. One of the session's artifacts is named by its id.
func (r *run) attach(ctx context.Context) (list []host.Attachment, err error) {
	if r.investigates() && r.session.ID == "" {
		return nil, nil
	}
	for _, path := range r.flags.artifacts {
		var one host.Attachment
		_, missing := os.Lstat(path)
		switch {
		case r.session.ID != "" && artifactID.MatchString(path) && errors.Is(missing, fs.ErrNotExist):
			one.Artifact, err = findArtifact(ctx, r.Host, r.session.ID, path)
		case r.investigates():
			if one.Artifact, err = r.addFile(ctx, r.Host, r.session.ID, path, host.NewArtifact{Labels: plugin.Labels(nil, r.flags.labels)}); err != nil {
				err = fmt.Errorf("--artifact: %w", err)
			}
		default:
			if err = r.refuseOwn(path); err != nil {
				return nil, err
			}
			if one.File, err = host.OpenFile(path); err != nil {
				err = plugin.Errorf(plugin.CodeInvalidInput, "--artifact: %s", plugin.AsError(err).Message)
			}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// takeFiles registers the files that were typed for an investigation plugin, as
// file_path and the like, and names them by where the plugin sees them.
func (r *run) takeFiles(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	places := r.given.Places()
	members, err := input.Object(raw)
	if err != nil || len(places) == 0 {
		return raw, nil // the kernel says what is wrong with it
	}
	changed, err := input.EachFile(members, places, func(member, path string) (string, error) { return r.takeFile(ctx, member, path) })
	if err != nil || !changed {
		return raw, err
	}
	return input.Spelled(members)
}

// takeFile registers a file that is typed and returns where the plugin sees it.
// Any other text stays what it is, for the plugin to make something of: the name
// alone of a file that the session has already. A directory is one of the files
// in it, as they are now.
func (r *run) takeFile(ctx context.Context, member, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return path, nil
	}
	sessions := r.Sessions()
	if !strings.ContainsRune(path, filepath.Separator) {
		// Where several artifacts have the name, the file that is here is meant.
		if _, err := sessions.Artifact(ctx, r.session.ID, path); err == nil {
			return path, nil
		}
	}
	if own, err := host.OwnFile(path, r.home); err != nil || own {
		return path, err // an artifact, as an earlier answer named it, or the host's own, which no plugin sees
	}
	var added host.Artifact
	if !info.IsDir() {
		added, err = r.addFile(ctx, r.Host, r.session.ID, path, host.NewArtifact{})
	} else if added, err = r.addDirectory(ctx, r.Host, r.session.ID, path, host.NewArtifact{}); errors.Is(err, input.ErrLarge) {
		r.say("--%s %s is a directory that is not handed on: %v", member, path, err)
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("--%s: %w", member, err)
	}
	view, err := sessions.View(ctx, r.session.ID)
	if err != nil {
		return "", err
	}
	r.say("%s is artifact %s of the session", path, added.ID)
	return view.Path(added), nil
}

// refuseOwn refuses a file that is the host's own: its key, its database,
// whatever is in the data directory, under another name too. Such a file is
// never shown to a plugin and never overwritten, whatever the origin of the
// name.
func (c *command) refuseOwn(path string) error {
	own, err := host.OwnFile(path, c.home)
	if err != nil || !own {
		return err
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "%s is the host's own: no plugin is shown what is in the data directory %s, and nothing is written there; name another file", path, c.home)
}
