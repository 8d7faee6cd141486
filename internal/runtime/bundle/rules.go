package bundle

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// rules say what imports lead to.
type rules struct {
	job   Job
	roots []root

	mu    sync.Mutex // guards the two below: esbuild loads files at the same time
	files int
	bytes int64
}

// A root is a directory that files are read beneath.
type root struct {
	dir  string
	open *os.Root
}

func newRules(job Job) (*rules, error) {
	r := &rules{job: job}
	for _, dir := range []string{job.Dir, job.SDK} {
		if dir == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		open, err := os.OpenRoot(real)
		if err != nil {
			return nil, err
		}
		r.roots = append(r.roots, root{dir, open})
		if real != dir {
			r.roots = append(r.roots, root{real, open})
		}
	}
	return r, nil
}

func (r *rules) setUp(build api.PluginBuild) {
	if r.job.SDK != "" {
		build.OnResolve(api.OnResolveOptions{Filter: "^mortise(/|$)"}, r.sdk)
	}
	if r.job.Script {
		build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if args.Kind == api.ResolveEntryPoint {
				return api.OnResolveResult{}, nil
			}
			return api.OnResolveResult{}, r.allows(args.Path, args.ResolveDir)
		})
	}
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, r.load)
}

// sdk makes the host's SDK what imports of mortise lead to, whatever the
// package has installed or set.
func (r *rules) sdk(args api.OnResolveArgs) (api.OnResolveResult, error) {
	file, there := map[string]string{"mortise": "index.ts", "mortise/testing": "testing.ts"}[args.Path]
	if !there {
		return api.OnResolveResult{}, fmt.Errorf("the SDK has no %q: import \"mortise\" or \"mortise/testing\"", args.Path)
	}
	return api.OnResolveResult{Path: filepath.Join(r.job.SDK, "src", file)}, nil
}

// load reads every file that goes into a bundle: a regular one beneath the
// package or the SDK, within bounds. esbuild calls it from several goroutines at
// the same time.
func (r *rules) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	if args.Namespace != "file" {
		return api.OnLoadResult{}, nil // what was disabled for this platform is empty
	}
	text, err := r.read(args.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	contents := string(text) + r.mapped(args.Path, text)
	return api.OnLoadResult{Contents: &contents, ResolveDir: filepath.Dir(args.Path), Loader: api.LoaderDefault}, nil
}

// mapComment is how a file names its source map.
var mapComment = pattern.New(`[/*][#@] sourceMappingURL=([^\s*]+)`)

// mapped returns the comment to put at the end of a file, so that esbuild opens no
// source map by itself: it takes the last comment that names one, and reads
// whatever that is, wherever it is. A map of the package is given to it whole; any
// other is left out.
func (r *rules) mapped(path string, text []byte) string {
	before, after := "\n//# sourceMappingURL=", "\n"
	switch filepath.Ext(path) {
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
	case ".css":
		before, after = "\n/*# sourceMappingURL=", " */\n"
	default:
		return "" // esbuild looks for no map in it
	}
	named := mapComment.FindAllSubmatch(text, -1)
	if len(named) == 0 {
		return ""
	}
	name := string(named[len(named)-1][1])
	if strings.HasPrefix(name, "data:") {
		return before + name + after
	}
	local, err := url.PathUnescape(name)
	if err == nil && !isAddress(name) && !filepath.IsAbs(local) {
		if own, err := r.read(filepath.Join(filepath.Dir(path), filepath.FromSlash(local))); err == nil {
			return before + "data:application/json;base64," + base64.StdEncoding.EncodeToString(own) + after
		}
	}
	return before + "none:" + after
}

func (r *rules) read(path string) ([]byte, error) {
	at := slices.IndexFunc(r.roots, func(root root) bool { return within(path, root.dir) })
	if at < 0 {
		if r.job.Script {
			return nil, errors.New("the file is outside of the plugin's directory")
		}
		return nil, fmt.Errorf("%s imports %s, which is outside the package", r.job.Name, path)
	}
	below, err := filepath.Rel(r.roots[at].dir, path)
	if err != nil {
		return nil, err
	}
	file, err := r.roots[at].open.OpenFile(below, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("the file is not there")
	case err != nil: // a link that leads out, above all
		return nil, fmt.Errorf("%s cannot be read beneath the package", below)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > r.job.Bytes {
		return nil, fmt.Errorf("%s: not a file of at most %d bytes", below, r.job.Bytes)
	}
	text, err := io.ReadAll(io.LimitReader(file, r.job.Bytes+1))
	if err != nil || int64(len(text)) > r.job.Bytes {
		return nil, fmt.Errorf("%s: not a file of at most %d bytes", below, r.job.Bytes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files++; r.files > r.job.Files {
		return nil, fmt.Errorf("the plugin has more than %d files", r.job.Files)
	}
	if r.bytes += int64(len(text)); r.bytes > r.job.Total {
		return nil, fmt.Errorf("the plugin's files have more than %d bytes together", r.job.Total)
	}
	return text, nil
}

// allows says why an import of a script leads to nothing.
func (r *rules) allows(path, from string) error {
	switch {
	case strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") || path == "." || path == "..":
		if !within(filepath.Join(from, filepath.FromSlash(path)), r.job.Dir) {
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
