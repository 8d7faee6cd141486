package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/version"
)

// here is the system that the test runs on.
var here = target{runtime.GOOS, runtime.GOARCH}

// work has what is built once for all tests.
var work string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mortise-dist-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	work = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// chosen are the targets of a test: with -short this system's alone.
func chosen() []target {
	if testing.Short() {
		return []target{here}
	}
	return targets
}

var built = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(work, "release")
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return dir, err
	}
	_, err = release{source: root, targets: chosen(), say: func(string) {}}.write(context.Background(), dir)
	return dir, err
})

// released returns the directory of a release of these sources.
func released(t *testing.T) string {
	t.Helper()
	if !slices.Contains(targets, here) {
		t.Skipf("no release is made for %s", here)
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func nameOf(of target, suffix string) string {
	return "mortise-" + version.Host + "-" + of.String() + suffix
}

// The sources in another directory, without a repository and with other programs where make build
// puts those that the host embeds, give the same bytes. With -short one archive of each kind is
// compared file by file, and is not packed again.
func TestTwoDirectoriesGiveTheSameBytes(t *testing.T) {
	first := released(t)
	copied := filepath.Join(t.TempDir(), "elsewhere")
	copySources(t, copied)
	for _, place := range []string{cagePlace, docreadPlace, pcapsumPlace} {
		path := filepath.Join(copied, place)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of another build"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if !testing.Short() {
		second := t.TempDir()
		made, err := release{source: copied, targets: targets, say: func(string) {}}.write(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		if len(made) != 2*len(targets)+2 {
			t.Errorf("made: %v", made)
		}
		for _, name := range made {
			if !bytes.Equal(read(t, filepath.Join(first, name)), read(t, filepath.Join(second, name))) {
				t.Errorf("%s has other bytes", name)
			}
		}
		return
	}
	b, err := newBuilder(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	program, err := b.host(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	licenses, err := b.licenses(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	top := nameOf(here, "")
	for _, f := range untar(t, read(t, filepath.Join(first, top+".tar.gz"))) {
		switch f.name {
		case top + "/mortise":
			if !bytes.Equal(f.content, program) {
				t.Error("the program has other bytes")
			}
		case top + "/" + licensesName:
			if !bytes.Equal(f.content, licenses) {
				t.Error("the licences have other bytes")
			}
		}
	}
}

// copySources copies what a release is made of.
func copySources(t *testing.T, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	for _, name := range append([]string{"go.mod", "go.sum", "cmd", "console", "internal", "plugin", "plugins", "protocol", "sdk"}, files...) {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			within, err := filepath.Rel(root, path)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "node_modules":
				return fs.SkipDir
			case entry.IsDir():
				return os.MkdirAll(filepath.Join(to, within), 0o755)
			case !entry.Type().IsRegular():
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, within), content, 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// untar reads an archive, and checks of each entry what all have in common.
func untar(t *testing.T, content []byte) []file {
	t.Helper()
	small, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if !small.ModTime.IsZero() || small.Name != "" {
		t.Errorf("the gzip has a time or a name: %v", small.Header)
	}
	var all []file
	for in := tar.NewReader(small); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || !header.ModTime.Equal(changed) || header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" {
			t.Errorf("%+v", header)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file{header.Name, fs.FileMode(header.Mode), content})
	}
}

func namesOf(all []file) []string {
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

// Each archive has the program of its target, which finds its modules among the licences.
func TestArchives(t *testing.T) {
	dir := released(t)
	sources, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range chosen() {
		top := nameOf(target, "")
		all := untar(t, read(t, filepath.Join(dir, top+".tar.gz")))
		want := below(top, []file{{name: "CHANGELOG.md"}, {name: "LICENSE"}, {name: "README.md"}, {name: licensesName}, {name: "mortise"}})
		if !slices.Equal(namesOf(all), namesOf(want)) {
			t.Fatalf("%s has %v", top, namesOf(all))
		}
		for i, f := range all {
			mode := fs.FileMode(0o644)
			if i == 4 {
				mode = 0o755
			}
			if f.mode != mode {
				t.Errorf("%s has the mode %o", f.name, f.mode)
			}
		}
		if !bytes.Equal(all[1].content, read(t, filepath.Join("..", "..", "LICENSE"))) {
			t.Error("LICENSE is another")
		}
		info, err := buildinfo.Read(bytes.NewReader(all[4].content))
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["GOOS"] != target.os || settings["GOARCH"] != target.arch || settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" || settings["vcs.revision"] != "" {
			t.Errorf("%s was built with %v", top, settings)
		}
		licenses := string(all[3].content)
		if len(info.Deps) < 50 {
			t.Errorf("%s has %d modules", top, len(info.Deps))
		}
		// gopacket is in the reader of captures, which the host carries as a file.
		for _, heading := range append(headings(info), "github.com/gopacket/gopacket v", "Go "+strings.TrimPrefix(info.GoVersion, "go")+", LICENSE", "PDFium") {
			if !strings.Contains(licenses, "\n"+heading) {
				t.Errorf("%s: no licence of %s", top, heading)
			}
		}
		for _, dir := range []string{work, sources} {
			if bytes.Contains(all[4].content, []byte(dir)) {
				t.Errorf("%s has the path %s in it", top, dir)
			}
		}
	}
}

func headings(info *buildinfo.BuildInfo) []string {
	var all []string
	for _, m := range info.Deps {
		all = append(all, m.Path+" "+m.Version+", ")
	}
	return all
}

// Every file is in the list of sums, with its own.
func TestSums(t *testing.T) {
	dir := released(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, e := range entries {
		if e.Name() != sumsName {
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(read(t, filepath.Join(dir, e.Name()))), e.Name())
		}
	}
	if got := string(read(t, filepath.Join(dir, sumsName))); got != want.String() || strings.Count(got, "\n") != 2*len(chosen())+1 {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}

// What is refused says why.
func TestRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old.mcpb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-o", full}, "is not empty"},
		{[]string{"-targets", "plan9/amd64"}, `"plan9/amd64" is no target: those are [darwin/amd64 darwin/arm64 linux/amd64 linux/arm64]`},
		{[]string{"more"}, `"more" is no flag`},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if _, err := licensesText(map[string]map[string]string{"example.com/m v1.0.0": {}}); err == nil || !strings.Contains(err.Error(), "example.com/m v1.0.0 has no file with a licence") {
		t.Errorf("a module without a licence: %v", err)
	}
	twice := []file{{"a", 0o644, nil}, {"b", 0o644, nil}, {"a", 0o644, nil}}
	if _, err := tarball(twice); err == nil {
		t.Error("a tar has two entries of one name")
	}
	if _, err := zipped(twice); err == nil {
		t.Error("a zip has two entries of one name")
	}
}
