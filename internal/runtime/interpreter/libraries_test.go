package interpreter

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// What a program is said to need is what the system's own loader finds.
func TestLibrariesAreThoseOfTheLoader(t *testing.T) {
	t.Parallel()
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Skip("needs /bin/sh")
	}
	needs := libraries(systemLibraries(), shell)
	if len(needs) == 0 {
		t.Skip("needs a /bin/sh that is linked dynamically, as that of Debian is")
	}
	loader := needs[slices.IndexFunc(needs, func(path string) bool { return filepath.Base(path)[:3] == "ld-" })]
	listed, err := exec.Command(loader, "--list", shell).CombinedOutput()
	if err != nil {
		t.Skipf("needs a loader that lists libraries (--list), as that of glibc does: %s", listed)
	}
	var dirs []string
	for _, path := range needs {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			real, _ := filepath.EvalSymlinks(path)
			dirs = append(dirs, real)
		}
	}
	for _, library := range linesWithPaths(string(listed)) {
		real, err := filepath.EvalSymlinks(library)
		if err != nil {
			continue
		}
		if !slices.Contains(dirs, filepath.Dir(real)) && !slices.Contains(needs, library) && !slices.Contains(needs, loader) {
			t.Errorf("%s is not covered by %q", real, needs)
		}
	}
	if got := libraries(systemLibraries(), "/no/such/program", os.DevNull); len(got) != 0 {
		t.Errorf("nothing needs %q", got)
	}
}

func linesWithPaths(text string) []string {
	var paths []string
	for start, end := 0, 0; end <= len(text); end++ {
		if end == len(text) || text[end] == ' ' || text[end] == '\n' || text[end] == '\t' {
			if end > start && text[start] == '/' {
				paths = append(paths, text[start:end])
			}
			start = end + 1
		}
	}
	return paths
}

func TestAScriptNamesItsProgram(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#!/bin/sh\necho": "/bin/sh", "#! /usr/bin/env python3\n": "/usr/bin/env", "#!": "", "echo": "", "": "",
	} {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := shebang(path); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
