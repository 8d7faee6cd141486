package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/session"
	"github.com/mortise-dev/mortise/plugin"
)

// typedNames returns the members of the input whose values the person typed at
// the command line: with --name, with --set, or in an object after --. An --input
// is not among them: programs write it, and what it says may be a stranger's.
func (f *runFlags) typedNames(object string, arguments []argument) []string {
	var names []string
	var members map[string]any
	_ = json2.Unmarshal([]byte(object), &members) // what is no object has no members
	for name := range members {
		names = append(names, name)
	}
	for _, arg := range arguments {
		names = append(names, arg.name)
	}
	for _, pair := range f.set {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// takeTypedObject is takeTyped for an input that is one object after --.
func (c *command) takeTypedObject(ctx context.Context, a *app.App, s session.Session, names []string, input json.RawMessage) (json.RawMessage, error) {
	var members map[string]any
	if decodeExact(input, &members) != nil {
		return input, nil // the kernel says what is wrong with it
	}
	if changed, err := c.takeTyped(ctx, a, s, names, members); err != nil || !changed {
		return input, err
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// takeTyped registers the files that are typed for an investigation plugin, as
// file_path and the like, and names them by where the plugin sees them. It
// reports whether it changed anything.
func (c *command) takeTyped(ctx context.Context, a *app.App, s session.Session, names []string, members map[string]any) (changed bool, err error) {
	for _, name := range names {
		if namesOutput(name) {
			continue
		}
		one := name == "file" || name == "path" || strings.HasSuffix(name, "_path") || strings.HasSuffix(name, "_file")
		several := strings.HasSuffix(name, "_paths") || strings.HasSuffix(name, "_files")
		switch value := members[name].(type) {
		case string:
			if !one {
				continue
			}
			seen, err := c.takeFile(ctx, a, s, name, value)
			if err != nil {
				return changed, err
			}
			changed = changed || seen != value
			members[name] = seen
		case []any:
			for i, item := range value {
				text, is := item.(string)
				if !is || !several {
					continue
				}
				seen, err := c.takeFile(ctx, a, s, name, text)
				if err != nil {
					return changed, err
				}
				changed = changed || seen != text
				value[i] = seen
			}
		}
	}
	return changed, nil
}

// takeFile registers a file that is typed and returns where the plugin sees it.
// Any other text stays what it is, for the plugin to make something of: a
// directory, and the name alone of a file that the session has already.
func (c *command) takeFile(ctx context.Context, a *app.App, s session.Session, member, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return path, nil
	case info.IsDir():
		c.say("--%s %s is a directory, and a plugin sees the files of its session alone: '%s' adds those in it", member, path,
			fmt.Sprintf("mortise artifacts add %s/* --session %s", quoted(filepath.Clean(path)), s.ID))
		return path, nil
	case !info.Mode().IsRegular():
		return path, nil
	}
	if !strings.ContainsRune(path, filepath.Separator) {
		if _, err := a.Kept(a.Principal).Artifact(ctx, s.ID, path); plugin.CodeOf(err) != plugin.CodeNotFound {
			return path, nil
		}
	}
	if own, err := standsBeneath(path, a.Home); err != nil || own {
		return path, err // an artifact, as an earlier answer named it, or the host's own, which no plugin sees
	}
	added, err := c.addFile(path, session.Add{}, func(add session.Add) (session.Artifact, error) {
		return a.Kept(a.Principal).AddFile(ctx, s.ID, path, add)
	})
	if err != nil {
		return "", fmt.Errorf("--%s: %w", member, err)
	}
	view, err := a.Kept(a.Principal).SessionView(ctx, s.ID)
	if err != nil {
		return "", err
	}
	c.say("%s is artifact %s of the session", path, added.ID)
	return view.Path(added), nil
}

// standsBeneath reports whether a file is in a directory, wherever links lead.
func standsBeneath(path, dir string) (bool, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	return strings.HasPrefix(path, dir+string(filepath.Separator)), err
}
