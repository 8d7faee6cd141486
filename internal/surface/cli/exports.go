package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/service/session"
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

// outputWords are those of an argument that names a file to write: output_path,
// export_file, save_to. The shim of the contract knows the same.
var outputWords = []string{"output", "out", "export", "save", "dest", "destination", "write"}

func namesOutput(member string) bool {
	words := strings.Split(strings.ReplaceAll(strings.ToLower(member), "-", "_"), "_")
	last := words[len(words)-1]
	if last == "to" && slices.Contains(outputWords, words[0]) {
		return true
	}
	return slices.Contains([]string{"path", "file", "filename"}, last) &&
		slices.ContainsFunc(words[:len(words)-1], func(word string) bool { return slices.Contains(outputWords, word) })
}

// exports returns the files that the command line itself asks to have written:
// with --name, --set, or an object that is typed there.
func (f *runFlags) exports(input json.RawMessage) ([]export, error) {
	typed := map[string]string{}
	object, arguments, err := readArguments(f.arguments)
	if err != nil {
		return nil, err
	}
	for _, whole := range []string{f.input, object} {
		var members map[string]any
		if strings.HasPrefix(strings.TrimSpace(whole), "{") && json2.Unmarshal([]byte(whole), &members) == nil {
			for name, value := range members {
				if text, is := value.(string); is {
					typed[name] = text
				}
			}
		}
	}
	for _, a := range arguments {
		typed[a.name] = a.text
	}
	for _, pair := range f.set {
		name, text, _ := strings.Cut(pair, "=")
		typed[name] = text
	}
	var members map[string]any
	if len(typed) == 0 || json2.Unmarshal(input, &members) != nil {
		return nil, nil
	}
	var list []export
	for member, text := range typed {
		if !namesOutput(member) || text == "" || members[member] != any(text) {
			continue
		}
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
			was, err := handed.Open(path)
			if err != nil {
				return nil, plugin.Errorf(plugin.CodeInvalidInput, "--%s: %s", member, plugin.AsError(err).Message)
			}
			one.was = &was
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b export) int { return strings.Compare(a.member, b.member) })
	return list, nil
}

// lendExports registers the files that exports would replace, and names them in
// the input by where the plugin sees them, so that a tool which appends has what
// to append to. The path of a file that does not exist becomes absolute: in the
// working directory of a session an earlier call may have left one of that name.
func (c *command) lendExports(ctx context.Context, a *app.App, s session.Session, wanted []export, input json.RawMessage) (json.RawMessage, error) {
	if len(wanted) == 0 || s.ID == "" {
		return input, nil
	}
	var members map[string]any
	if err := decodeExact(input, &members); err != nil {
		return nil, err
	}
	for _, w := range wanted {
		if members[w.member] = w.path; w.was == nil {
			continue
		}
		kept := a.As(a.Principal)
		there, err := c.addFile(w.path, session.Add{}, func(add session.Add) (session.Artifact, error) {
			return kept.Sessions().AddFile(ctx, s.ID, w.path, add)
		})
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", w.member, err)
		}
		view, err := kept.Sessions().View(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		members[w.member] = view.Path(there)
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// export writes what a call made where the command line said.
func (c *command) export(ctx context.Context, a *app.App, session string, wanted []export, made []plugin.Artifact) (done []exported, err error) {
	for _, w := range wanted {
		id, findErr := madeFor(ctx, a, session, w, made)
		if findErr != nil || id == "" {
			err = errors.Join(err, findErr)
			continue
		}
		if writeErr := c.exportOne(ctx, a, session, id, w); writeErr != nil {
			err = errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s was not written: %w; what the plugin made is artifact %s, which 'mortise artifacts get %s --session %s -o FILE' writes", w.path, writeErr, id, id, session))
			continue
		}
		done = append(done, exported{w.member, w.path, id})
	}
	return done, err
}

// madeFor returns the artifact of a call that is what an argument asked for: the
// one registered for it, or the last of that name.
func madeFor(ctx context.Context, a *app.App, session string, w export, made []plugin.Artifact) (id string, err error) {
	for _, m := range made {
		if m.ID == "" {
			continue
		}
		if m.Name == filepath.Base(w.path) {
			id = m.ID
		}
		kept, err := a.As(a.Principal).Sessions().Artifact(ctx, session, m.ID)
		if err != nil {
			return "", err
		}
		var said struct {
			As string `json:"exported_as"`
		}
		if json2.Unmarshal(kept.Metadata, &said) == nil && said.As == w.member {
			return m.ID, nil
		}
	}
	return id, nil
}

// exportOne writes an artifact where the command line said, unless the file there
// is not the one that the plugin was given: what was written to it meanwhile
// would be lost.
func (c *command) exportOne(ctx context.Context, a *app.App, session, id string, w export) error {
	if err := errors.Join(c.refuseOwn(w.path), w.unchanged()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o777); err != nil {
		return err
	}
	r, err := a.As(a.Principal).Sessions().OpenArtifact(ctx, session, id)
	if err != nil {
		return err
	}
	defer r.Close()
	return writeWhole(w.path, r)
}

// unchanged reports a file that was made, changed or deleted since the call began.
func (w export) unchanged() error {
	if w.was != nil {
		if err := handed.Same(*w.was); err != nil {
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
func (c *command) sayUnwritten(session, call string, wanted []export) {
	for _, w := range wanted {
		c.say("--%s: %s is written by a command that waits for the call, and this one does not: once call %s has succeeded, the file is an artifact of session %s, which 'mortise artifacts get ARTIFACT --session %s -o FILE' writes",
			w.member, w.path, call, session, session)
	}
}

// showExported says where files were written.
func (c *command) showExported(done []exported) {
	for _, e := range done {
		fmt.Fprintf(c.out, "exported %s to %s\n", e.Artifact, terminal.Safe(e.Path))
	}
}
