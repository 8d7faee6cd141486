package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cacheKey returns the hash of everything that the result of a part depends on:
// the prebuilt programs, the files below p.content, and the versions of the
// programs that the part needs. It is empty if the part is not cached.
func (e *environment) cacheKey(p part) (string, error) {
	if len(p.content) == 0 {
		return "", nil
	}
	files, err := listFiles(e.root, append([]string{"test/suite"}, p.content...))
	if err != nil {
		return "", err
	}
	sum, err := hashFiles(e.root, files)
	if err != nil {
		return "", err
	}
	key := []string{sum}
	if p.after == "inputs" {
		key = append(key, e.inputsDir())
	}
	for _, need := range p.needs {
		if strings.HasPrefix(need, "npm:") {
			need = "node"
		}
		version, err := exec.Command(need, "--version").Output()
		if err != nil {
			return "", nil // without its version the part runs again
		}
		key = append(key, need, strings.TrimSpace(string(version)))
	}
	return strings.Join(key, " "), nil
}

// isCached reports whether the part passed with the same key before.
func (e *environment) isCached(p part, key string) bool {
	kept, err := os.ReadFile(e.cacheFile(p))
	return err == nil && key != "" && string(kept) == key && !e.fresh
}

// keep records that the part passed with this key.
func (e *environment) keep(p part, key string) {
	if key == "" || os.MkdirAll(filepath.Dir(e.cacheFile(p)), 0o755) != nil {
		return
	}
	_ = os.WriteFile(e.cacheFile(p), []byte(key), 0o644) // without the file the part runs again
}

func (e *environment) cacheFile(p part) string {
	return filepath.Join(e.root, "bin", "test", "passed", p.name)
}

func (e *environment) inputsDir() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inputs
}
