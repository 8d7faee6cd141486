package handed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// Member is the member of an input that names files.
const Member = "artifacts"

// MaxFiles is how many files one input may name.
const MaxFiles = 256

// maxValues is how many values the list of files may hold.
const maxValues = 100_000

var errManyValues = fmt.Errorf("has more than %d values in its member %s", maxValues, Member)

// handle is what a name has to look like to be a handle of ours. Any other text
// in artifact_id is for the plugin alone.
var handle = pattern.New(`^art_[0-9a-f]{8,64}$`)

// Find returns the file that a call may see under a handle or a path; false if
// there is none.
type Find func(name string) (plugin.File, bool, error)

// Names reports whether an input may name files at all.
func Names(input []byte) bool {
	return bytes.Contains(input, []byte(Member)) || bytes.Contains(input, []byte(`\u`)) // which may spell it
}

// Resolve returns an input as its plugin gets it: with the path of a file where
// the input has its handle, as artifact_id in an item of the member artifacts.
// A path there is a name as well, of a file that the call may see anyway. used
// are the files that the input names, each once. A handle or an absolute path of
// no such file is refused.
func Resolve(input json.RawMessage, find Find) (shown json.RawMessage, used []plugin.File, err error) {
	if !Names(input) {
		return input, nil, nil
	}
	var members map[string]jsontext.Value
	var items []jsontext.Value
	var other bool // what is there has another form, and names no files
	err = budget.Do(budget.Weigh(input).Read(), func() error {
		if other = json2.Unmarshal(input, &members) != nil; other {
			return nil
		}
		if budget.Weigh(members[Member]).Values > maxValues {
			return errManyValues
		}
		other = json2.Unmarshal(members[Member], &items) != nil
		return nil
	})
	if err != nil {
		return nil, nil, plugin.Errorf(plugin.CodeInputTooLarge, "the input %w", err)
	}
	if other {
		return input, nil, nil
	}
	changed := false
	for i, raw := range items {
		var item map[string]jsontext.Value
		if json2.Unmarshal(raw, &item) != nil || item == nil {
			continue
		}
		files, err := filesOf(item, "artifacts["+strconv.Itoa(i)+"].", find)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			if !slices.ContainsFunc(used, func(had plugin.File) bool { return had.Path == f.Path }) {
				used = append(used, f)
			}
		}
		if _, byPath := item["path"]; len(files) == 0 || byPath || item["file_path"] != nil {
			continue
		}
		delete(item, "artifact_id")
		if item["path"], err = json2.Marshal(files[0].Path); err != nil {
			return nil, nil, err
		}
		if items[i], err = json2.Marshal(item, json2.Deterministic(true)); err != nil {
			return nil, nil, err
		}
		changed = true
	}
	if len(used) > MaxFiles {
		return nil, nil, plugin.Errorf(plugin.CodeInputTooLarge, "%d artifacts are named; a process is shown at most %d", len(used), MaxFiles)
	}
	if !changed {
		return input, used, nil
	}
	if members[Member], err = json2.Marshal(items); err != nil {
		return nil, nil, err
	}
	shown, err = json2.Marshal(members, json2.Deterministic(true))
	return shown, used, err
}

// filesOf returns the files that one item names; at is where it stands.
func filesOf(item map[string]jsontext.Value, at string, find Find) (files []plugin.File, err error) {
	for _, member := range []string{"artifact_id", "path", "file_path"} {
		var name string
		if item[member].Kind() != '"' || json2.Unmarshal(item[member], &name) != nil {
			continue
		}
		isHandle := member == "artifact_id"
		if isHandle && !handle.MatchString(name) || !isHandle && !filepath.IsAbs(name) {
			continue
		}
		f, found, err := find(name)
		switch {
		case err != nil:
			return nil, err
		case found:
			files = append(files, f)
		case isHandle:
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s%s: no artifact %s was handed on with this call, and its session has none; hand the file on with --artifact FILE at the command line, or name one of 'mortise artifacts list --session SESSION'",
				at, member, name)
		default:
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s%s: %.300q is a path, which shows a plugin nothing: hand the file on with --artifact FILE at the command line, and the input names it by artifact_id; nothing was opened",
				at, member, name)
		}
	}
	return files, nil
}
