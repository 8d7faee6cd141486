package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/internal/runtime/bundle"
	"github.com/mortise-dev/mortise/plugin"
)

// DefaultEntry is the file that a plugin starts with unless it names another.
const DefaultEntry = "index.ts"

// Bounds of a plugin's code.
const (
	maxFile   = 1 << 20 // bytes of one file
	maxFiles  = 500
	maxBundle = 1 << 20 // bytes of all of it as one script
)

// A Program is a plugin's code as one script. It never changes, and any number
// of instances may be opened from it.
type Program struct {
	entry string
	code  string
	where *sourceMap
}

// Compile makes a program of index.ts in a directory and of what it imports.
func Compile(ctx context.Context, dir string) (*Program, error) {
	return CompileEntry(ctx, dir, DefaultEntry)
}

// CompileEntry is [Compile] for a plugin that starts with another file.
//
// Imports lead to files of the directory only; modules of Node, packages and
// addresses are refused by name. An error has the code plugin_error and shows the
// line it is about.
func CompileEntry(ctx context.Context, dir, entry string) (*Program, error) {
	b := &program{entry: filepath.Clean(filepath.FromSlash(entry))}
	var err error
	if b.dir, err = filepath.Abs(dir); err == nil {
		b.dir, err = filepath.EvalSymlinks(b.dir)
	}
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeNotFound, "the directory of the plugin cannot be opened: %w", err)
	}
	if !filepath.IsLocal(b.entry) {
		return nil, plugin.Errorf(plugin.CodePluginError, "the entry %q is outside of the plugin's directory", entry)
	}
	if _, err := os.Stat(filepath.Join(b.dir, b.entry)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, plugin.Errorf(plugin.CodeNotFound, "the plugin has no %s: it exports register(ctx)", entry)
		}
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s cannot be opened: %w", entry, err)
	}
	return b.make(ctx)
}

// unread says that code could not be bundled for its size or shape.
func unread(entry string, err error) error {
	if e := plugin.AsError(err); e.Code == plugin.CodeLimitExceeded {
		return plugin.Errorf(plugin.CodePluginError, "%s cannot be run\n%s", entry, e.Message)
	}
	return err
}

// A program is one in the making.
type program struct {
	dir   string // absolute, without links
	entry string
}

func (b *program) make(ctx context.Context) (*Program, error) {
	result, err := bundle.Make(ctx, bundle.Job{
		Name: filepath.ToSlash(b.entry), Dir: b.dir, Script: true, Files: maxFiles, Bytes: maxFile, Total: maxFiles * maxFile, Options: b.options(),
	})
	if err != nil {
		return nil, unread(b.entry, err)
	}
	if len(result.Errors) > 0 {
		return nil, diagnose(b.entry, result.Errors)
	}
	if err := b.refuseCommonJS(result.Metafile); err != nil {
		return nil, err
	}
	p := &Program{entry: filepath.ToSlash(b.entry)}
	for _, file := range result.OutputFiles {
		if filepath.Ext(file.Path) != ".map" {
			p.code = string(file.Contents)
			continue
		}
		if p.where, err = readMap(file.Contents); err != nil {
			return nil, err
		}
	}
	if len(p.code) > maxBundle {
		return nil, plugin.Errorf(plugin.CodePluginError, "%s and what it imports come to %d bytes of code; at most %d are accepted", p.entry, len(p.code), maxBundle)
	}
	return p, nil
}

func (b *program) options() api.BuildOptions {
	return api.BuildOptions{
		EntryPoints:    []string{filepath.Join(b.dir, b.entry)},
		AbsWorkingDir:  b.dir,
		Outfile:        filepath.Join(b.dir, "plugin.js"), // named only, never written
		Bundle:         true,
		Platform:       api.PlatformNeutral,
		Format:         api.FormatIIFE,
		GlobalName:     "plugin",
		Footer:         map[string]string{"js": "plugin;"}, // what the script comes to
		Target:         api.ES2023,
		Charset:        api.CharsetUTF8,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		LegalComments:  api.LegalCommentsNone,
		TsconfigRaw:    "{}", // settings of a folder around it do not count
		Metafile:       true,
		LogLevel:       api.LogLevelSilent,
		LogLimit:       20,
	}
}

// refuseCommonJS refuses files that export by module.exports.
func (b *program) refuseCommonJS(metafile string) error {
	var meta struct {
		Inputs map[string]struct {
			Format string `json:"format"`
		} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return fmt.Errorf("reading what went into a program: %w", err)
	}
	for name, input := range meta.Inputs {
		if input.Format == "cjs" {
			return plugin.Errorf(plugin.CodePluginError, "%s is a CommonJS module: write import and export, as in `export function register(ctx) { ... }`", name)
		}
	}
	return nil
}
