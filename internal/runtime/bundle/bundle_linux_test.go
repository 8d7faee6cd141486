package bundle_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/bundle"
	"github.com/mortise-dev/mortise/plugin"
)

// job bundles index.ts of a directory.
func job(dir string) bundle.Job {
	return bundle.Job{
		Name: "index.ts", Dir: dir, Files: 100, Bytes: 8 << 20, Total: 16 << 20,
		Options: api.BuildOptions{
			EntryPoints: []string{filepath.Join(dir, "index.ts")}, AbsWorkingDir: dir, Outfile: filepath.Join(dir, "out.js"), Bundle: true,
			Platform: api.PlatformNode, Sourcemap: api.SourceMapExternal,
		},
	}
}

// write makes files below a new directory, beside which there are secrets.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(top, "package")
	for name, text := range map[string]string{"secret.json": "{\"key\": \"SECRET\n", "secret.ts": "SECRET SECRET", "secret": "SECRET\n"} {
		files["../"+name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"zero.ts": "/dev/zero", "out.ts": "../secret.ts", "out.json": "../secret.json", "away": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.ts"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge, err := os.Create(filepath.Join(dir, "huge.ts"))
	if err == nil {
		err = huge.Truncate(1 << 40)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// resident is how much memory this process has had at most, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss << 10
}

// Whatever the source imports and however it nests, bundling it ends with an
// error, soon, takes none of the host's memory and shows nothing of other files.
func TestHostileSourceCostsItsProcessOnly(t *testing.T) {
	before := resident(t)
	deep := func(text string, times int, rest string) map[string]string {
		return map[string]string{"index.ts": "export const a=" + strings.Repeat(text, times) + rest}
	}
	imports := func(path string) map[string]string {
		return map[string]string{"index.ts": fmt.Sprintf("import a from %q; console.log(a)", path)}
	}
	for name, files := range map[string]map[string]string{
		"parentheses": deep("(", 150_000, ""), "arrays": deep("[", 150_000, ""), "negations": deep("!", 400_000, "1"), "arrows": deep("a=>", 100_000, "1"),
		"choices": deep("b?c:", 100_000, "1"), "templates": deep("`${", 100_000, ""), "blocks": {"index.ts": strings.Repeat("{", 300_000)}, "conditions": {"index.ts": strings.Repeat("if(x)", 120_000) + ";"},
		"zero": imports("/dev/zero"), "zero by a link": imports("./zero.ts"), "a file elsewhere": imports("../secret.ts"), "by its absolute path": imports("/etc/passwd"),
		"by a link": imports("./out.ts"), "JSON by a link": imports("./out.json"), "by a linked directory": imports("./away/secret.ts"),
		"a pipe": imports("./pipe.ts"), "a huge file": imports("./huge.ts"), "a directory": imports("./"), "text elsewhere": imports("../secret.txt"),
		"settings elsewhere":            {"index.ts": "syntax error here", "tsconfig.json": `{"extends": "../secret.json"}`},
		"settings of zero":              {"index.ts": "syntax error here", "tsconfig.json": `{"extends": "/dev/zero"}`},
		"paths of settings":             {"index.ts": `import "x"`, "tsconfig.json": `{"compilerOptions": {"paths": {"x": ["../secret.ts"]}}}`},
		"a package's main":              {"index.ts": `import "p"`, "node_modules/p/package.json": `{"main": "../../../secret.ts"}`},
		"a package's main, by a link":   {"index.ts": `import "p"`, "node_modules/p/package.json": `{"main": "../../away/secret.ts"}`},
		"a package's imports":           {"index.ts": `import "#x"`, "package.json": `{"imports": {"#x": "./away/secret.ts"}}`},
		"a package's browser field":     {"index.ts": `import "p"`, "node_modules/p/package.json": `{"main": "./m.js", "browser": {"./m.js": "../../../secret.ts"}, "exports": "../../../secret.ts"}`},
		"a package's exports":           {"index.ts": `import "p"`, "node_modules/p/package.json": `{"exports": {".": "./../../../secret.ts"}}`},
		"a syntax error in a neighbour": {"index.ts": `import "./away/secret.ts"; import "../secret.ts"; import "../secret.json"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, files)
			begun := time.Now()
			result, err := bundle.Make(t.Context(), job(dir))
			testwait.AtMost(t, "bundling", time.Since(begun), 20*time.Second)
			if err == nil && len(result.Errors) == 0 {
				t.Fatalf("it was bundled: %.300s", result.OutputFiles[len(result.OutputFiles)-1].Contents)
			}
			if all := fmt.Sprintf("%v %+v %s", err, result.Errors, locations(result)); strings.Contains(all, "SECRET") || strings.Contains(all, "root:") {
				t.Errorf("the message shows another file: %s", all)
			}
		})
	}
	if after := resident(t); after-before > 64<<20 && !testing.Short() {
		t.Errorf("the host took %d MiB", (after-before)>>20)
	}
}

func locations(result api.BuildResult) string {
	var all strings.Builder
	for _, m := range result.Errors {
		if m.Location != nil {
			fmt.Fprintf(&all, "%+v", *m.Location)
		}
	}
	return all.String()
}

// A source map that a file names is read as all of the package is: a regular file
// beneath it, and nothing else holds the bundle up or goes into it.
func TestAForeignSourceMapHoldsNothingUp(t *testing.T) {
	const elsewhere = `{"version":3,"sources":["elsewhere.ts"],"sourcesContent":["SECRET"],"names":[],"mappings":"AAAA"}`
	const own = `{"version":3,"sources":["original.ts"],"sourcesContent":["ORIGINAL"],"names":[],"mappings":"AAAA"}`
	for name, isOwn := range map[string]bool{
		"/dev/zero": false, "file:///dev/zero": false, "pipe.ts": false, "huge.ts": false, "../secret.json": false, "../elsewhere.map": false, "away/elsewhere.map": false,
		"%2e%2e/elsewhere.map": false, "file:///proc/self/environ": false, "own.map": true, "./below/own.map": true, "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(own)): true,
	} {
		for _, comment := range []string{"//# sourceMappingURL=%s\n", "/*# sourceMappingURL=%s */", "//@ sourceMappingURL=%s"} {
			dir := write(t, map[string]string{
				"index.ts": "export const a = 1\n" + fmt.Sprintf(comment, name), "own.map": own, "below/own.map": own, "../elsewhere.map": elsewhere,
			})
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
			result, err := bundle.Make(ctx, job(dir))
			cancel()
			if err != nil || len(result.Errors) > 0 {
				t.Fatalf("%s, after %s: %v %+v", name, time.Since(begun), err, result.Errors)
			}
			var all string
			for _, file := range result.OutputFiles {
				all += string(file.Contents)
			}
			if strings.Contains(all, "SECRET") || strings.Contains(all, "elsewhere.ts") || strings.Contains(all, "original.ts") != isOwn {
				t.Errorf("%s: it became %s", name, all)
			}
		}
	}
}

// The end of the context ends the process, and the wait for it.
func TestTheEndOfTheContextEndsABundle(t *testing.T) {
	dir := write(t, map[string]string{"index.ts": `import "./slow.ts"`, "slow.ts": strings.Repeat("export const a"+strings.Repeat("x", 50)+" = [1,2,3];\n", 90_000)})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := plugin.Errorf(plugin.CodeCancelled, "stopped")
	time.AfterFunc(30*time.Millisecond, func() { cancel(stopped) })
	begun := time.Now()
	_, err := bundle.Make(ctx, job(dir))
	if err != stopped {
		t.Errorf("it ended with %v, want the cause of the context", err)
	}
	testwait.AtMost(t, "ending a bundle", time.Since(begun), 3*time.Second)
}

func TestOrdinarySourceIsBundled(t *testing.T) {
	dir := write(t, map[string]string{
		"index.ts": `import { n } from "./n.ts"; import data from "./data.json"; import "p"; console.log(n, data)`, "n.ts": "export const n: number = 41",
		"data.json": `{"a": 1}`, "node_modules/p/package.json": `{"main": "m.js"}`, "node_modules/p/m.js": "console.log('p')",
	})
	result, err := bundle.Make(t.Context(), job(dir))
	if err != nil || len(result.Errors) > 0 || len(result.OutputFiles) == 0 {
		t.Fatalf("%v %+v", err, result.Errors)
	}
}
