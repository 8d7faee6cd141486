package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/plugin"
)

// The bounds of one reader on one bad file.
const (
	readerTime   = 5 * time.Second
	readerMemory = 64 << 20
)

// A badFile puts a file where a reader expects a good one.
type badFile struct {
	put   func(path, outside string) error
	plain bool // a regular file of a bearable size, which only a parser refuses
}

var badFiles = map[string]badFile{
	"a named pipe":          {put: func(path, _ string) error { return syscall.Mkfifo(path, 0o644) }},
	"a link to /dev/zero":   {put: func(path, _ string) error { return os.Symlink("/dev/zero", path) }},
	"a link to /proc":       {put: func(path, _ string) error { return os.Symlink("/proc/self/environ", path) }},
	"a link out":            {put: func(path, outside string) error { return os.Symlink(outside, path) }},
	"a link to itself":      {put: func(path, _ string) error { return os.Symlink(filepath.Base(path), path) }},
	"a directory":           {put: func(path, _ string) error { return os.Mkdir(path, 0o755) }, plain: true},
	"a huge sparse file":    {put: func(path, _ string) error { return sparseFile(path, 1<<40) }},
	"a large sparse file":   {put: func(path, _ string) error { return sparseFile(path, 8<<20) }, plain: true},
	"zeros":                 {put: func(path, _ string) error { return sparseFile(path, 1<<20) }, plain: true},
	"deep nesting":          {put: text(strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19)), plain: true},
	"deep nesting of keys":  {put: text(strings.Repeat(`{"a":`, 1<<17)), plain: true},
	"deep nesting of lists": {put: text(strings.Repeat("- ", 1<<19)), plain: true},
	"a bomb of aliases":     {put: text(bomb()), plain: true},
	"many values":           {put: text("[" + strings.Repeat("1,", 500_000) + "1]"), plain: true},
}

func sparseFile(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

func text(content string) func(path, outside string) error {
	return func(path, _ string) error { return os.WriteFile(path, []byte(content), 0o755) }
}

// bomb is YAML whose aliases stand for 10^9 values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return b.String()
}

// A place is a file of a package that a reader reads, and whether it is parsed
// there, so that no bad file at all passes.
type badPlace struct {
	name   string
	parsed bool
	files  []string // the rest of the package: names and contents
}

func badPlaces() []badPlace {
	native := "name: p\nversion: 1.0.0\nrunner: {kind: process, command: [\"./main\"]}\noperations: {x: {input: schemas/x.json}}\n"
	mill := strings.Replace(millManifest("p", "1.0.0"), "{", `{"input_schema": "schemas/input.json", `, 1)
	var places []badPlace
	for _, name := range contract.Manifests() {
		places = append(places, badPlace{name, true, []string{"plugin.py", "", "tool.py", "", "main", "#!/bin/sh\n"}})
	}
	return append(places,
		badPlace{"schemas/x.json", true, []string{"manifest.yaml", native, "main", "#!/bin/sh\n"}},
		badPlace{"main", false, []string{"manifest.yaml", native, "schemas/x.json", "{}"}},
		badPlace{"plugin.py", false, []string{"manifest.yaml", "name: p\nversion: 1.0.0\noperations: {x: {}}\n"}},
		badPlace{"tool.py", false, []string{"manifest.json", mill, "schemas/input.json", "{}", "schemas/output.json", "{}"}},
		badPlace{"beside/anything", false, []string{"manifest.yaml", native, "main", "#!/bin/sh\n", "schemas/x.json", "{}"}},
	)
}

// heap is what the host's memory comes to, what is free again included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Every reader of a package's files is given every kind of bad file in every
// place: it ends in time and within its memory, and what it says holds nothing
// of a file outside of the package.
func TestEveryReaderBearsEveryBadFile(t *testing.T) {
	const secret = "SECRET-of-another-file"
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "{\"name\": \""+secret+"\"\n"+secret+": [")
	known := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	b := open(t)
	var beyond []string
	bears := func(what string, refused bool, read func() error) {
		t.Helper()
		before, began := heap(), time.Now()
		ended := make(chan error, 1)
		go func() { ended <- read() }()
		err := testwait.Receive(t, what+": the end of reading", ended)
		if took := time.Since(began); took > readerTime {
			beyond = append(beyond, fmt.Sprintf("%s: it took %v", what, took))
		}
		if err == nil && refused {
			t.Errorf("%s: it passes", what)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "PATH=")) {
			t.Errorf("%s: the message quotes a file outside: %v", what, err)
		}
		if after := heap(); after > before+readerMemory {
			beyond = append(beyond, fmt.Sprintf("%s: it took %d MiB", what, (after-before)>>20))
		}
	}
	for kind, bad := range badFiles {
		for _, place := range badPlaces() {
			dir := filepath.Join(t.TempDir(), "p")
			for i := 0; i < len(place.files); i += 2 {
				if place.files[i] != place.name {
					write(t, filepath.Join(dir, place.files[i]), place.files[i+1])
				}
			}
			path := filepath.Join(dir, place.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := bad.put(path, outside); err != nil {
				t.Fatal(err)
			}
			_ = os.Chmod(dir+"/main", 0o755)
			at := kind + " as " + place.name + ": "
			bears(at+"manifest", place.parsed, func() error { _, err := contract.Read(dir); return err })
			bears(at+"tree", false, func() error { contract.Tree(dir); shu.Holds(dir); return nil })
			for _, dev := range []bool{true, false} {
				bears(fmt.Sprintf("%sregister, linked %v", at, dev), place.parsed || !bad.plain, func() error {
					report, err := b.Register(t.Context(), dir, registry.RegisterOptions{Dev: dev, Force: true})
					for _, one := range report.Registered {
						_, _ = b.Delete(t.Context(), one.Name+"@"+one.Version)
					}
					return err
				})
			}
			if place.name == "main" {
				m := &plugin.Manifest{Name: "p", Runner: plugin.Runner{Kind: "process", Command: []string{"./main"}, Protocol: "1"}}
				bears(at+"tables of programs", false, func() error {
					pkg := plugin.Package{Dir: dir, Dev: true}
					argv, err := known.Command(t.Context(), pkg, m)
					if err == nil {
						_, err = known.Reads(t.Context(), pkg, m, argv)
					}
					return err
				})
			}
		}
		for _, suffix := range []string{".zip", ".tar", ".tar.gz", ".tgz"} {
			path := filepath.Join(t.TempDir(), "p"+suffix)
			if err := bad.put(path, outside); err != nil {
				t.Fatal(err)
			}
			bears(kind+" as a package file "+suffix, true, func() error {
				_, err := b.Register(t.Context(), path, registry.RegisterOptions{})
				return err
			})
		}
	}
	t.Run("bounds", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the time and the memory that a bad file takes")
		}
		for _, one := range beyond {
			t.Error(one)
		}
	})
}
