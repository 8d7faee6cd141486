package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

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
func Compile(dir string) (*Program, error) { return CompileEntry(dir, DefaultEntry) }

// CompileEntry is [Compile] for a plugin that starts with another file.
//
// Imports lead to files of the directory only; modules of Node, packages and
// addresses are refused by name. An error has the code plugin_error and shows the
// line it is about.
func CompileEntry(dir, entry string) (*Program, error) {
	b := &bundle{entry: filepath.Clean(filepath.FromSlash(entry))}
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
	return b.make()
}

// A bundle is a program in the making.
type bundle struct {
	dir   string // absolute, without links
	entry string
	files int
}

func (b *bundle) make() (*Program, error) {
	result := api.Build(b.options())
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
		var err error
		if p.where, err = readMap(file.Contents); err != nil {
			return nil, err
		}
	}
	if len(p.code) > maxBundle {
		return nil, plugin.Errorf(plugin.CodePluginError, "%s and what it imports come to %d bytes of code; at most %d are accepted", p.entry, len(p.code), maxBundle)
	}
	return p, nil
}

func (b *bundle) options() api.BuildOptions {
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
		Plugins:        []api.Plugin{{Name: "mortise", Setup: b.setUp}},
	}
}

// setUp keeps imports inside of the plugin's directory.
func (b *bundle) setUp(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if args.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{}, nil
		}
		return api.OnResolveResult{}, b.allows(args.Path, args.ResolveDir)
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		file, err := filepath.EvalSymlinks(args.Path)
		if err != nil || !within(file, b.dir) {
			return api.OnLoadResult{}, errors.New("the file is outside of the plugin's directory")
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
			return api.OnLoadResult{}, fmt.Errorf("not a file of at most %d bytes", maxFile)
		}
		if b.files++; b.files > maxFiles { // one at a time: esbuild holds a lock around it
			return api.OnLoadResult{}, fmt.Errorf("the plugin has more than %d files", maxFiles)
		}
		return api.OnLoadResult{}, nil // as it would be
	})
}

// allows says why an import leads to nothing.
func (b *bundle) allows(path, from string) error {
	switch {
	case strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") || path == "." || path == "..":
		if !within(filepath.Join(from, filepath.FromSlash(path)), b.dir) {
			return fmt.Errorf("%q is outside of the plugin's directory", path)
		}
		return nil
	case isAddress(path):
		return fmt.Errorf("%q is an address: nothing is downloaded; put the file into the plugin's directory", path)
	case strings.HasPrefix(path, "node:") || slices.Contains(nodeModules, strings.SplitN(path, "/", 2)[0]):
		return fmt.Errorf("%q is a module of Node, which is not here: a plugin has what ctx offers, and no files, network or processes", path)
	case filepath.IsAbs(path):
		return fmt.Errorf("%q is an absolute path: import files of the plugin's directory as ./name", path)
	}
	return fmt.Errorf("%q is a package, and packages are not installed: put its code into the plugin's directory and import it as ./name", path)
}

func isAddress(path string) bool {
	u, err := url.Parse(path)
	return err == nil && u.Scheme != "" && u.Scheme != "node"
}

// nodeModules are the modules that Node has built in.
var nodeModules = strings.Fields(`assert async_hooks buffer child_process cluster console constants crypto dgram
	diagnostics_channel dns domain events fs http http2 https inspector module net os path perf_hooks process punycode
	querystring readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib`)

func within(file, dir string) bool {
	relative, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(relative)
}

// refuseCommonJS refuses files that export by module.exports.
func (b *bundle) refuseCommonJS(metafile string) error {
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
