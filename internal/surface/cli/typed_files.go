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

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/service/session"
)

// typedPlaces returns the places of the input whose values the person typed at
// the command line: with --name, with --set, or in an object after --. An --input
// is not among them: programs write it, and what it says may be a stranger's.
func (f *runFlags) typedPlaces(object string, arguments []argument) [][]string {
	var places [][]string
	var members map[string]any
	_ = json2.Unmarshal([]byte(object), &members) // what is no object has no members
	for _, name := range slices.Sorted(maps.Keys(members)) {
		places = append(places, []string{name})
	}
	for _, arg := range arguments {
		places = append(places, []string{arg.name})
	}
	for _, pair := range f.set {
		path, _, _ := strings.Cut(pair, "=")
		places = append(places, strings.Split(path, "."))
	}
	return places
}

// takeTypedObject is takeTyped for an input that is one object after --.
func (c *command) takeTypedObject(ctx context.Context, a *app.App, s session.Session, places [][]string, input json.RawMessage) (json.RawMessage, error) {
	var members map[string]any
	if decodeExact(input, &members) != nil {
		return input, nil // the kernel says what is wrong with it
	}
	taken := &typed{command: c, app: a, session: s}
	if err := taken.take(ctx, places, members); err != nil || !taken.changed {
		return input, err
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// A typed registers the files that are typed for an investigation plugin, as
// file_path and the like, and names them by where the plugin sees them.
type typed struct {
	*command
	app     *app.App
	session session.Session
	changed bool // whether the input is another one by now
}

// take registers the files that stand at some places of an input, and beneath.
func (t *typed) take(ctx context.Context, places [][]string, members map[string]any) error {
	for _, place := range places {
		inner, last := members, len(place)-1
		for _, name := range place[:last] {
			value, there := inner[name]
			if !there || namesOutput(name) {
				inner = nil
				break
			}
			inner[name] = opened(value)
			inner, _ = inner[name].(map[string]any)
		}
		value, there := inner[place[last]]
		if !there {
			continue
		}
		taken, err := t.value(ctx, place[last], value)
		if err != nil {
			return err
		}
		inner[place[last]] = taken
	}
	return nil
}

// value is what an input has for a member, once its files are registered.
func (t *typed) value(ctx context.Context, name string, value any) (any, error) {
	if namesOutput(name) {
		return value, nil
	}
	switch value := opened(value).(type) {
	case string:
		if !namesInput(name) {
			return value, nil
		}
		seen, err := t.takeFile(ctx, t.app, t.session, name, value)
		t.changed = t.changed || seen != value
		return seen, err
	case []any:
		for i := range value {
			var err error
			if value[i], err = t.value(ctx, name, value[i]); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			var err error
			if value[inner], err = t.value(ctx, inner, value[inner]); err != nil {
				return nil, err
			}
		}
		return value, nil
	default:
		return value, nil
	}
}

// namesInput reports whether a member names files to read: path, left_path,
// files, log_files. The shim of the contract knows the same.
func namesInput(member string) bool {
	words := strings.Split(strings.ToLower(strings.ReplaceAll(member, "-", "_")), "_")
	return slices.Contains([]string{"file", "files", "path", "paths"}, words[len(words)-1])
}

// opened returns a text, an array or an object that is spelled as JSON as what it
// is.
func opened(value any) any {
	raw, is := value.(jsontext.Value)
	if !is || raw.Kind() != '[' && raw.Kind() != '{' && raw.Kind() != '"' {
		return value
	}
	whole := map[string]any{}
	if decodeExact(slices.Concat([]byte(`{"value":`), raw, []byte("}")), &whole) != nil {
		return value // the kernel says what is wrong with it
	}
	return whole["value"]
}

// takeFile registers a file that is typed and returns where the plugin sees it.
// Any other text stays what it is, for the plugin to make something of: the name
// alone of a file that the session has already. A directory is one of the files
// in it, as they are now.
func (c *command) takeFile(ctx context.Context, a *app.App, s session.Session, member, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return path, nil
	case !info.IsDir() && !info.Mode().IsRegular():
		return path, nil
	}
	if !strings.ContainsRune(path, filepath.Separator) {
		// Where several artifacts have the name, the file that is here is meant.
		if _, err := a.As(a.Principal).Sessions().Artifact(ctx, s.ID, path); err == nil {
			return path, nil
		}
	}
	if own, err := hostsOwn(path, a.Home); err != nil || own {
		return path, err // an artifact, as an earlier answer named it, or the host's own, which no plugin sees
	}
	var added session.Artifact
	if info.IsDir() {
		if added, err = c.addDirectory(ctx, a.As(a.Principal), s.ID, path, session.Add{}); errors.Is(err, errLarge) {
			c.say("--%s %s is a directory that is not handed on: %v", member, path, err)
			return path, nil
		}
	} else {
		added, err = c.addFile(path, session.Add{}, func(add session.Add) (session.Artifact, error) {
			return a.As(a.Principal).Sessions().AddFile(ctx, s.ID, path, add)
		})
	}
	if err != nil {
		return "", fmt.Errorf("--%s: %w", member, err)
	}
	view, err := a.As(a.Principal).Sessions().View(ctx, s.ID)
	if err != nil {
		return "", err
	}
	c.say("%s is artifact %s of the session", path, added.ID)
	return view.Path(added), nil
}
