package input

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/plugin"
)

// An Export is an argument that names a file for an investigation plugin to
// write, as the person at the command line typed it. The plugin writes into its
// scratch directory and never there: what it wrote becomes an artifact, and this
// process, which is the person's, copies that to the path.
//
// The path is granted by being typed here. What comes in a file, on standard
// input, from another plugin or from a model names no file of the host.
type Export struct {
	Member, Path string
	Was          *plugin.File // what was there when the call began, nil for nothing
}

// Exports returns the files that the command line itself asks to have written, by the
// arguments that name them.
func Exports(typed map[string]string) (list []Export, err error) {
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
		one := Export{Member: member, Path: path}
		if err == nil {
			was, err := handed.Open(path)
			if err != nil {
				return nil, plugin.Errorf(plugin.CodeInvalidInput, "--%s: %s", member, plugin.AsError(err).Message)
			}
			one.Was = &was
		}
		list = append(list, one)
	}
	return list, nil
}

// Unchanged reports a file that was made, changed or deleted since the call began.
func (w Export) Unchanged() error {
	if w.Was != nil {
		if err := handed.Same(*w.Was); err != nil {
			return fmt.Errorf("the file there was changed while the plugin ran: %w", err)
		}
		return nil
	}
	if _, err := os.Stat(w.Path); err == nil {
		return errors.New("another program made a file there while the plugin ran")
	}
	return nil
}
