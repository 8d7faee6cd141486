package interpreter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/plugin"
)

// tsPlugin is a plugin with one operation, answer, whose body is given.
func tsPlugin(imports, body string) string {
	return imports + `
import { Plugin, t } from "mortise";
const plugin = new Plugin("example.reference", { version: "1.0.0" });
plugin.tool("answer", { output: t.any() }, () => ` + body + `);
plugin.run();
`
}

func answer(t *testing.T, i *interpreter.Interpreters, pkg plugin.Package) string {
	t.Helper()
	got, err := call(t, i, pkg, manifest("plugin.ts"), "answer", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatBundlesCanDo(t *testing.T) {
	need(t, "node")
	cjs := map[string]string{
		"node_modules/old/package.json": `{"name": "old", "main": "main.js"}`,
		"node_modules/old/main.js":      `exports.name = require("node:path").basename("a/old") + typeof require`,
	}
	for _, c := range []struct {
		name, source, want string
		files              map[string]string
	}{
		{"import its own files", tsPlugin(`import { n } from "./lib/n.ts"; import data from "./data.json";`, `[n, data.m]`), `[1,2]`,
			map[string]string{"lib/n.ts": "export const n: number = 1;", "data.json": `{"m": 2}`}},
		{"import installed packages", tsPlugin(`import { name } from "old";`, `name`), `"oldfunction"`, cjs},
		{"await outside of functions", tsPlugin(`import { name } from "old"; const $require = await Promise.resolve(3); const require = 1;`, `[$require, name]`), `[3,"oldfunction"]`, cjs},
		{"read what lies beside them", tsPlugin(`import { readFileSync } from "node:fs"; import { join } from "node:path";`,
			`[readFileSync(new URL("./a b.txt", import.meta.url), "utf8"), readFileSync(join(import.meta.dirname, "a b.txt"), "utf8")]`), `["text","text"]`,
			map[string]string{"a b.txt": "text"}},
		{"use import.meta for more", tsPlugin("", `typeof import.meta.resolve`), `"function"`, nil},
		{"ask whether they are what was started", tsPlugin(`import { fileURLToPath } from "node:url";`, `process.argv[1] === fileURLToPath(import.meta.url)`), `true`, nil},
		{"take no notice of settings around them", tsPlugin("", `1`), `1`, nil},
		{"have settings of their own", tsPlugin(`import { n } from "#n";`, `n`), `4`,
			map[string]string{"tsconfig.json": `{"compilerOptions": {"paths": {"#n": ["./n.ts"], "mortise": ["./n.ts"]}}}`, "n.ts": "export const n = 4;"}},
		{"have the host's SDK rather than their own", tsPlugin("", `5`), `5`,
			map[string]string{"node_modules/mortise/package.json": `{"main": "x.js"}`, "node_modules/mortise/x.js": `throw new Error("wrong")`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"tsconfig.json": `{"extends": "./gone.json", "compilerOptions": {"paths": {"mortise": ["./no.ts"]}}}`, "pkg/plugin.ts": c.source}
			for name, text := range c.files {
				files["pkg/"+name] = text
			}
			dir := write(t, files)
			i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
			if got := answer(t, i, plugin.Package{Dir: filepath.Join(dir, "pkg"), Digest: "sha256:1"}); got != c.want {
				t.Errorf("it answers %s; want %s", got, c.want)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	need(t, "node")
	long := strings.Repeat("ö", 300)
	for _, c := range []struct {
		name, source string
		code         plugin.Code
		want         string
	}{
		{"syntax", "import { Plugin } from \"mortise\";\n\tconst ö = 1 const b;\n", plugin.CodeLaunchFailed,
			"plugin.ts cannot be built\nplugin.ts:2:14: Expected \";\" but found \"const\"\n   const ö = 1 const b;\n               ^"},
		{"a long line", "const a = '" + long + "' const b = '" + long + "';\n", plugin.CodeLaunchFailed,
			"plugin.ts cannot be built\nplugin.ts:1:314: Expected \";\" but found \"const\"\n  " + strings.Repeat("ö", 58) + "' const b = '" + strings.Repeat("ö", 49) + "\n  " + strings.Repeat(" ", 60) + "^"},
		{"many", "import './a';\nimport './b';\nimport './c';\nimport './d';\nimport './e';\n", plugin.CodeLaunchFailed,
			"plugin.ts cannot be built\nplugin.ts:1:8: Could not resolve \"./a\"\n  import './a';\n         ^\nplugin.ts:2:8: Could not resolve \"./b\"\n  import './b';\n         ^\nplugin.ts:3:8: Could not resolve \"./c\"\n  import './c';\n         ^\nand 2 more"},
		{"packages", "import 'left-pad/x';\nimport '@a/b/c';\nimport 'left-pad';\n", plugin.CodeDependencyMissing,
			"plugin.ts needs what is not installed: run npm install left-pad @a/b in DIR\nplugin.ts:1:8: Could not resolve \"left-pad/x\"\n  import 'left-pad/x';\n         ^"},
		{"the SDK has no such part", "import 'mortise/nothing';\n", plugin.CodeLaunchFailed,
			"plugin.ts cannot be built\nplugin.ts:1:8: the SDK has no \"mortise/nothing\": import \"mortise\" or \"mortise/testing\"\n  import 'mortise/nothing';\n         ^"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pkg := write(t, map[string]string{"plugin.ts": c.source})
			i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
			_, err := i.Command(t.Context(), plugin.Package{Dir: pkg, Digest: "sha256:1"}, manifest("plugin.ts"))
			if got, want := err.Error(), string(c.code)+": example.reference: "+strings.ReplaceAll(c.want, "DIR", pkg); got != want {
				t.Errorf("the error is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestBundlesAreMadeOnce(t *testing.T) {
	need(t, "node")
	pkg := write(t, map[string]string{"plugin.ts": tsPlugin(`import { n } from "./n.ts";`, `n`), "n.ts": "export const n = 1;"})
	dir := t.TempDir()
	i := interpreter.New(interpreter.Options{Dir: dir})
	bundle := func(p plugin.Package) (string, time.Time) {
		t.Helper()
		argv, err := i.Command(t.Context(), p, manifest("plugin.ts"))
		if err != nil {
			t.Fatal(err)
		}
		file := argv[len(argv)-1]
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return file, info.ModTime()
	}
	first, made := bundle(plugin.Package{Dir: pkg, Digest: "sha256:1"})
	if again, then := bundle(plugin.Package{Dir: pkg, Digest: "sha256:1"}); again != first || then != made {
		t.Error("the same package was bundled again")
	}
	if other, _ := bundle(plugin.Package{Dir: pkg, Digest: "sha256:2"}); other == first {
		t.Error("another package has the same bundle")
	}
	if other, _ := bundle(plugin.Package{Dir: pkg, Digest: "sha256:1", Dev: true}); other == first {
		t.Error("the author's own copy has the same bundle")
	}
	_ = os.Truncate(first, 0)
	if again, _ := bundle(plugin.Package{Dir: pkg, Digest: "sha256:1"}); again != first {
		t.Error("it moved")
	} else if info, err := os.Stat(first); err != nil || info.Size() == 0 {
		t.Error("an empty bundle is taken for one")
	}

	// A bundle that was unused for a month is removed, also one that was left
	// half written.
	month := time.Now().Add(-31 * 24 * time.Hour)
	half := filepath.Join(dir, "bundles", ".new-1")
	_ = os.WriteFile(half, nil, 0o644)
	_ = os.Chtimes(first, month, month)
	_ = os.Chtimes(half, month, month)
	bundle(plugin.Package{Dir: pkg, Digest: "sha256:3"})
	for _, file := range []string{first, half} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", file)
		}
	}
}

func TestAuthorsChangesAreSeen(t *testing.T) {
	need(t, "node")
	// The digest of a plugin that is one file among others is that of the file.
	dir := write(t, map[string]string{"plugin.ts": tsPlugin(`import { n } from "./shared/n.ts";`, `n`), "shared/n.ts": "export const n = 1;"})
	age(t, dir, "plugin.ts", "shared/n.ts")
	pkg := plugin.Package{Dir: dir, Digest: "sha256:1", Dev: true}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	if got := answer(t, i, pkg); got != "1" {
		t.Errorf("it answers %s; want 1", got)
	}
	_ = os.WriteFile(filepath.Join(dir, "shared/n.ts"), []byte("export const n = 2;"), 0o644)
	if got := answer(t, i, pkg); got != "2" {
		t.Errorf("it answers %s; want 2", got)
	}
	_ = os.WriteFile(filepath.Join(dir, "shared/n.ts"), []byte("export const n = 3;"), 0o644)
	if got := answer(t, i, pkg); got != "3" {
		t.Errorf("it answers %s; want 3: a change right after the build was missed", got)
	}
}

func TestWhatIsOutsideThePackageIsNotImported(t *testing.T) {
	need(t, "node")
	dir := write(t, map[string]string{"plugins/plugin.ts": tsPlugin(`import { n } from "../shared/n.ts";`, `n`), "shared/n.ts": "export const n = 1;"})
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	for _, dev := range []bool{false, true} {
		pkg := plugin.Package{Dir: filepath.Join(dir, "plugins"), Digest: "sha256:1", Dev: dev}
		_, err := i.Command(t.Context(), pkg, manifest("plugin.ts"))
		is(t, err, plugin.CodeLaunchFailed, "plugin.ts imports "+filepath.Join(dir, "shared/n.ts")+", which is outside the package")
	}
}

func TestTracesNameTheAuthorsLines(t *testing.T) {
	need(t, "node")
	pkg := write(t, map[string]string{"plugin.ts": "import './deep.ts';\n", "deep.ts": "\n\n\ninterface Nothing {}\nthrow new Error('at once');\n"})
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	argv, err := i.Command(t.Context(), plugin.Package{Dir: pkg, Dev: true}, manifest("plugin.ts"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if want := filepath.Join(pkg, "deep.ts") + ":5:"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the trace does not name %s:\n%s", want, out)
	}
}

func TestRecipeNamesTheBundler(t *testing.T) {
	source, err := os.ReadFile("bundle.go")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(module), "github.com/evanw/esbuild v")
	version := strings.Fields(rest)[0]
	if !strings.Contains(string(source), `const recipe = "esbuild `+version+",") {
		t.Errorf("recipe does not name esbuild %s: bundles would outlive it", version)
	}
}
