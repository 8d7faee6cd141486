package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/version"
)

// docs/release.md names every file of a release, and no other.
func TestThePageNamesTheFiles(t *testing.T) {
	page := string(read(t, filepath.Join("..", "..", "docs", "release.md")))
	named := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:mortise-VERSION|SHA)[^`]*)` \\|").FindAllStringSubmatch(page, -1) {
		for _, of := range chosen() {
			named[strings.NewReplacer("VERSION", version.Host, "OS-ARCH", of.String()).Replace(row[1])] = true
		}
	}
	entries, err := os.ReadDir(released(t))
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, e := range entries {
		made = append(made, e.Name())
	}
	if want := slices.Sorted(maps.Keys(named)); !slices.Equal(made, want) {
		t.Errorf("the page names %v; made are %v", want, made)
	}
	for _, of := range targets {
		if !strings.Contains(page, "`"+of.String()+"`") {
			t.Errorf("the page does not name %s", of)
		}
	}
}

// The commands of the page that check a release do so, and notice a file that is another.
func TestThePageOfReleases(t *testing.T) {
	from := released(t)
	if !slices.Contains(chosen(), target{"linux", "amd64"}) {
		t.Skipf("the page unpacks the archive for linux-amd64, which is not made on %s with -short", here)
	}
	page := string(read(t, filepath.Join("..", "..", "docs", "release.md")))
	blocks := regexp.MustCompile("(?s)```sh release\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks about a release", len(blocks))
	}
	dir := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	sh := func(text string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", text)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, block := range blocks {
		if out, err := sh(block[1]); err != nil || !strings.Contains(out, "mortise") {
			t.Errorf("%s: %v\n%s", block[1], err, out)
		}
	}
	plugin := filepath.Join(dir, "mortise-"+version.Host+"-claude-code.zip")
	content := read(t, plugin)
	content[len(content)/2] ^= 1
	if err := os.Remove(plugin); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plugin, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := sh(blocks[0][1]); err == nil {
		t.Errorf("a changed file is not noticed: %s", out)
	}
}
