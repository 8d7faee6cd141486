package interpreter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"golang.org/x/sync/singleflight"

	"github.com/mortise-dev/mortise/internal/runtime/bundle"
	"github.com/mortise-dev/mortise/plugin"
)

// recipe is part of every bundle's name: bump its number when the options
// below change.
const recipe = "esbuild 0.28.2, options 2"

// The bounds of what goes into one bundle, packages that it imports included.
const (
	maxInputs     = 10_000
	maxInput      = 8 << 20
	maxInputBytes = 64 << 20
)

// bundleAge is how long an unused bundle is kept.
const bundleAge = 30 * 24 * time.Hour

// A bundler makes one file of a plugin's entry, what it imports, and the SDK.
// Its name tells everything it was made of.
type bundler struct {
	dir    string
	sdk    *kit
	flight singleflight.Group // by key

	mu      sync.Mutex         // guards makings
	makings map[string]*making // by key
}

// A source is what a bundle is made of.
type source struct {
	pkg   plugin.Package
	dir   string // of the package, without links
	entry string
	test  bool // the entry is a test: it is no plugin that serves, and starts itself
	sdk   string
	key   string
}

// bundle returns the file to give to Node.
func (b *bundler) bundle(ctx context.Context, pkg plugin.Package, entry string, test bool) (string, error) {
	sdk, err := b.sdk.layOut()
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(pkg.Dir)
	if err != nil {
		return "", failed("the package cannot be opened: %w", err)
	}
	s := source{pkg: pkg, dir: dir, entry: filepath.Clean(filepath.FromSlash(entry)), test: test, sdk: sdk}
	s.key = s.hash()
	if file := b.made(s); file != "" {
		return file, nil
	}
	making, leave := b.join(ctx, s.key)
	defer leave()
	answer := b.flight.DoChan(s.key, func() (any, error) {
		if file := b.made(s); file != "" {
			return file, nil
		}
		return b.make(making, s)
	})
	select {
	case result := <-answer:
		file, _ := result.Val.(string)
		return file, result.Err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// A making is a bundle that is being made, for all who wait for it.
type making struct {
	ctx     context.Context
	end     context.CancelFunc
	waiting int
}

// join returns the context that a bundle is made in: it ends with the last of
// those who wait for it. leave must be called.
func (b *bundler) join(ctx context.Context, key string) (made context.Context, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.makings[key]
	if m == nil {
		m = &making{}
		m.ctx, m.end = context.WithCancel(context.WithoutCancel(ctx))
		if b.makings == nil {
			b.makings = map[string]*making{}
		}
		b.makings[key] = m
	}
	m.waiting++
	return m.ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if m.waiting--; m.waiting == 0 {
			m.end()
			delete(b.makings, key)
			b.flight.Forget(key)
		}
	}
}

func (s source) hash() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%q %q %q\n%t %t\n", recipe, s.pkg.Digest, s.sdk, s.dir, s.entry, s.pkg.Dev, s.test)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// A format is one of the two that Node runs.
type format struct {
	api       api.Format
	extension string
	banner    string
}

// CommonJS starts 3 ms faster. What it cannot express, such as await outside
// of a function, is made an ECMAScript module.
var formats = []format{
	{api.FormatCommonJS, ".cjs", ""},
	{api.FormatESModule, ".mjs", `import { createRequire as __mortise_require } from "node:module"; globalThis.require ??= __mortise_require(import.meta.url);`},
}

// made returns the bundle if there is one that is still right, "" otherwise.
func (b *bundler) made(s source) string {
	for _, f := range formats {
		file := filepath.Join(b.dir, s.key+f.extension)
		info, err := os.Stat(file)
		if err != nil || info.Size() == 0 || s.pkg.Dev && !b.current(s) {
			continue
		}
		if now := time.Now(); now.Sub(info.ModTime()) > 24*time.Hour {
			_ = os.Chtimes(file, now, now) // for sweep
		}
		return file
	}
	return ""
}

// make builds the bundle.
func (b *bundler) make(ctx context.Context, s source) (string, error) {
	for _, f := range formats {
		begun := time.Now()
		result, err := bundle.Make(ctx, bundle.Job{
			Name: s.entry, Dir: s.dir, SDK: s.sdk, Files: maxInputs, Bytes: maxInput, Total: maxInputBytes, Options: s.options(b.dir, f),
		})
		if e := plugin.AsError(err); err != nil && e.Code != plugin.CodeInternal && ctx.Err() == nil {
			return "", plugin.Errorf(e.Code, "%s cannot be built: %s", s.entry, e.Message)
		} else if err != nil {
			return "", err
		}
		if f.api == api.FormatCommonJS && needsModule(result) {
			continue
		}
		if len(result.Errors) > 0 {
			return "", diagnose(s, result.Errors)
		}
		inputs, err := inputsOf(s.dir, result.Metafile)
		if err != nil {
			return "", err
		}
		if err := b.record(s, inputs, begun); err != nil {
			return "", err
		}
		return b.keep(s, f, result.OutputFiles)
	}
	panic("unreachable: the last format is always taken")
}

// options say how a bundle is made.
func (s source) options(dir string, f format) api.BuildOptions {
	entry := filepath.Join(s.dir, s.entry)
	imports := []string{filepath.Join(s.sdk, "src", "boot.ts"), entry}
	banner := "process.argv[1] = " + quoted(entry) + ";" // as if Node had been given it
	if s.test {
		imports, banner = imports[1:], ""
	}
	var contents strings.Builder
	for _, file := range imports {
		fmt.Fprintf(&contents, "import %s;\n", quoted(filepath.ToSlash(file)))
	}
	o := api.BuildOptions{
		Stdin:         &api.StdinOptions{Contents: contents.String(), ResolveDir: s.dir, Sourcefile: "start"},
		AbsWorkingDir: s.dir,
		Outfile:       filepath.Join(dir, s.key+f.extension),
		Bundle:        true,
		Platform:      api.PlatformNode,
		Format:        f.api,
		Engines:       []api.Engine{{Name: api.EngineNode, Version: "20"}},
		// Modules of a package in a folder of their own see the entry's place.
		Define: map[string]string{
			"import.meta.url":      quoted((&url.URL{Scheme: "file", Path: slashed(entry)}).String()),
			"import.meta.filename": quoted(entry),
			"import.meta.dirname":  quoted(filepath.Dir(entry)),
		},
		Banner:        map[string]string{"js": strings.TrimSpace(f.banner + "\n" + banner)},
		LegalComments: api.LegalCommentsNone,
		Metafile:      true,
		LogLevel:      api.LogLevelSilent,
		LogLimit:      20,
	}
	if s.pkg.Dev {
		o.Sourcemap, o.SourcesContent = api.SourceMapLinked, api.SourcesContentExclude
	}
	// Only the package's own settings count, not those of a folder around it.
	if config := filepath.Join(s.dir, "tsconfig.json"); exists(config) {
		o.Tsconfig = config
	} else {
		o.TsconfigRaw = "{}"
	}
	return o
}

// needsModule reports whether the code uses what CommonJS does not have.
func needsModule(result api.BuildResult) bool {
	return slices.ContainsFunc(result.Errors, func(m api.Message) bool {
		return strings.HasPrefix(m.Text, "Top-level await is currently not supported")
	}) || slices.ContainsFunc(result.Warnings, func(m api.Message) bool { return m.ID == "empty-import-meta" })
}

// inputsOf returns the absolute paths of the files that went into a bundle.
func inputsOf(dir, metafile string) ([]string, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, fmt.Errorf("reading what went into a bundle: %w", err)
	}
	var inputs []string
	for name := range meta.Inputs {
		if file := filepath.FromSlash(name); name != "start" && exists(filepath.Join(dir, file)) {
			inputs = append(inputs, filepath.Join(dir, file))
		}
	}
	slices.Sort(inputs)
	return inputs, nil
}

func within(file, dir string) bool {
	relative, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(relative)
}

// keep writes the files of a bundle, the one that is started last.
func (b *bundler) keep(s source, f format, files []api.OutputFile) (string, error) {
	start := filepath.Join(b.dir, s.key+f.extension)
	slices.SortFunc(files, func(x, y api.OutputFile) int { return strings.Compare(y.Path, x.Path) }) // .cjs.map, .cjs
	for _, file := range files {
		if err := writeFile(file.Path, file.Contents); err != nil {
			return "", fmt.Errorf("keeping a bundle: %w", err)
		}
	}
	b.sweep()
	return start, nil
}

// sweep removes what has not been used for long, and what a host that was
// killed left half written.
func (b *bundler) sweep() {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return
	}
	used := map[string]time.Time{} // by key: when any of its files was
	for _, entry := range entries {
		key, _, _ := strings.Cut(entry.Name(), ".")
		if info, err := entry.Info(); err == nil && info.ModTime().After(used[key]) {
			used[key] = info.ModTime()
		}
	}
	for _, entry := range entries {
		key, _, _ := strings.Cut(entry.Name(), ".") // "" of what is half written
		if time.Since(used[key]) > bundleAge {
			_ = os.Remove(filepath.Join(b.dir, entry.Name()))
		}
	}
}

// A state is that of one file that went into a bundle.
type state struct {
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
}

func stateOf(file string) (state, error) {
	info, err := os.Stat(file)
	if err != nil {
		return state{}, err
	}
	return state{info.Size(), info.ModTime().UnixNano()}, nil
}

// record notes what a bundle of an author's own copy was made of. Its digest
// does not cover everything: a plugin may be one file among others, and import
// what lies beside it.
func (b *bundler) record(s source, inputs []string, begun time.Time) error {
	if !s.pkg.Dev {
		return nil
	}
	states := map[string]state{}
	for _, file := range inputs {
		if within(file, s.sdk) {
			continue // it is in the key
		}
		now, err := stateOf(file)
		if err != nil || now.Modified > begun.Add(-clockLag).UnixNano() {
			now = state{} // it may have changed under our hands: build again next time
		}
		states[file] = now
	}
	data, err := json.Marshal(states)
	if err == nil {
		err = writeFile(b.recordFile(s), data)
	}
	if err != nil {
		return fmt.Errorf("keeping a bundle: %w", err)
	}
	return nil
}

// clockLag is how far the times of files may be behind the clock.
const clockLag = 20 * time.Millisecond

// current reports whether all of it is as it was.
func (b *bundler) current(s source) bool {
	var states map[string]state
	data, err := os.ReadFile(b.recordFile(s))
	if err != nil || json.Unmarshal(data, &states) != nil {
		return false
	}
	for file, then := range states {
		if now, err := stateOf(file); err != nil || now != then {
			return false
		}
	}
	return true
}

func (b *bundler) recordFile(s source) string { return filepath.Join(b.dir, s.key+".json") }

// quoted returns text as JavaScript writes it.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a string always can be
	return string(data)
}

// slashed makes the path of a URL of a file's.
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	return path
}
