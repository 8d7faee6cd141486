package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// maxExamples is how many examples of one operation are run.
const maxExamples = 16

// An example is one input that an operation must be able to take. It is a file
// beside the manifest:
//
//	examples/OPERATION.request.json      and .response.json, which fits the output schema
//	examples/OPERATION.NAME.input.json   and .output.json, which is what a tool answers
//
// A plugin of one operation may leave out its name.
type example struct {
	name     string // of its file, without examples/ and .json; "" for the empty input
	input    []byte
	expected []byte // nil where nothing is expected

	files []plugin.File // of the plugin's directory, which the input names
}

// examples returns the examples of op. Where there are none, the empty input is
// one for a tool whose schema takes it.
func examples(ctx context.Context, s registry.Shown, op *plugin.Operation) ([]example, error) {
	entries, err := entriesOf(s.Path, "examples")
	if err != nil && !isFile(s.Path) {
		return nil, err
	}
	out, err := schema.Compile(op.Output)
	if err != nil {
		return nil, err
	}
	var found []example
	for _, entry := range entries {
		stem, answer, ok := exampleOf(entry.Name(), op.Name, s.Manifest)
		if !ok || len(found) == maxExamples {
			continue
		}
		input, err := read(s.Path, "examples/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("examples/%s: %w", entry.Name(), err)
		}
		e := example{name: strings.TrimSuffix(entry.Name(), ".json")}
		if e.input, e.files, err = atHome(input, s.Path); err != nil {
			return nil, fmt.Errorf("examples/%s: %w", entry.Name(), err)
		}
		if response, err := read(s.Path, "examples/"+stem+answer); err == nil {
			if err := out.Check(ctx, response); err != nil {
				return nil, fmt.Errorf("examples/%s: %w", stem+answer, err)
			}
			if answer == ".output.json" {
				e.expected = response
			}
		}
		found = append(found, e)
	}
	if len(found) > 0 || op.Kind != plugin.Tool {
		return found, nil
	}
	in, err := schema.Compile(op.Input)
	if err != nil {
		return nil, err
	}
	if in.Check(ctx, []byte("{}")) == nil {
		found = append(found, example{input: []byte("{}")})
	}
	return found, nil
}

// exampleOf reports whether a file is an example of an operation, and how its
// answer's file begins and ends.
func exampleOf(file, op string, m *plugin.Manifest) (stem, answer string, ok bool) {
	if e, _ := exampleOfEvent(file); e != nil {
		return "", "", false
	}
	if stem, ok = strings.CutSuffix(file, "request.json"); ok {
		return stem, "response.json", stem == op+"." || stem == "" && len(m.Operations) == 1
	}
	stem, ok = strings.CutSuffix(file, ".input.json")
	if !ok {
		return "", "", false
	}
	// The longest name that fits is meant: Email.Draft and Email may both exist.
	owner := ""
	for _, other := range m.Operations {
		if (stem == other.Name || strings.HasPrefix(stem, other.Name+".")) && len(other.Name) > len(owner) {
			owner = other.Name
		}
	}
	return stem, ".output.json", owner == op || owner == "" && len(m.Operations) == 1
}

// below returns the path of a file of a plugin, which an example names, relative
// to the plugin's directory.
func below(dir, path string) (string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	inside, err := filepath.Rel(base, path)
	if err == nil && filepath.IsLocal(inside) {
		var root *os.Root
		if root, err = os.OpenRoot(base); err == nil {
			defer root.Close()
			if _, err = root.Stat(inside); err == nil || errors.Is(err, fs.ErrNotExist) { // the plugin says that it is not there
				return inside, nil
			}
		}
	}
	return "", fmt.Errorf("the example names %s, which is not in the plugin's directory: put the file there", path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// atHome hands on the files of an example's artifacts. Their paths are relative to
// the plugin's directory, and lead nowhere else: the example is part of a package,
// and a package is not who may read the files of the one who checks it.
func atHome(request []byte, dir string) ([]byte, []plugin.File, error) {
	var in map[string]any
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, nil, fmt.Errorf("the example is not one JSON object: %w", err)
	}
	list, _ := in[handed.Member].([]any)
	var files []plugin.File
	for _, item := range list {
		artifact, _ := item.(map[string]any)
		for _, key := range []string{"path", "file_path"} {
			path, _ := artifact[key].(string)
			if path == "" {
				continue
			}
			inside, err := below(dir, path)
			if err != nil {
				return nil, nil, err
			}
			file, err := handed.OpenBeneath(dir, inside)
			if err != nil {
				continue // the plugin says that it is not there
			}
			artifact[key] = file.Path
			if !slices.ContainsFunc(files, func(f plugin.File) bool { return f.Path == file.Path }) {
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 {
		return request, nil, nil
	}
	raw, err := json.Marshal(in)
	return raw, files, err
}
