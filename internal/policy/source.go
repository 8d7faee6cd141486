package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Document is a text of policies under a name that no other document has.
type Document struct {
	Name string
	Text []byte
}

// A Source returns the documents of one place where policies are kept. It is
// asked again on every [Engine.Reload] and must return all it has, or an error.
type Source func() ([]Document, error)

// maxFile is the largest file of policies that is read.
const maxFile = 1 << 20

// Files returns the source of the files that match the patterns. A relative
// pattern is below dir, and so are the names of the documents; a pattern that
// is a directory stands for its *.cedar files. A pattern that matches nothing
// is an error: a set of policies that is not found forbids nothing.
func Files(dir string, patterns ...string) Source {
	return func() ([]Document, error) {
		var documents []Document
		var errs []error
		seen := map[string]bool{}
		for _, pattern := range patterns {
			paths, err := match(dir, pattern)
			if err != nil {
				errs = append(errs, err)
			}
			for _, path := range paths {
				if seen[path] {
					continue
				}
				seen[path] = true
				text, err := readFile(path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				documents = append(documents, Document{nameBelow(dir, path), text})
			}
		}
		return documents, errors.Join(errs...)
	}
}

// match returns the files that a pattern stands for.
func match(dir, pattern string) ([]string, error) {
	path := pattern
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "*.cedar")
	} else if err == nil {
		return []string{path}, nil // whatever its name, also one with brackets
	}
	paths, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("policy files %q: %w", pattern, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("policy files %q: there is no such file (%s): %w", pattern, path, fs.ErrNotExist)
	}
	return paths, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, nil
}

// nameBelow returns the shorter name of a file: relative to dir, if it is below.
func nameBelow(dir, path string) string {
	if short, err := filepath.Rel(dir, path); err == nil && short != ".." && !strings.HasPrefix(short, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(short)
	}
	return path
}

// collect asks all sources, and returns their documents sorted by name.
func collect(sources []Source) ([]Document, error) {
	var all []Document
	var errs []error
	for _, source := range sources {
		documents, err := source()
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, documents...)
	}
	slices.SortStableFunc(all, func(a, b Document) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			errs = append(errs, fmt.Errorf("two documents of policies are called %s", all[i].Name))
		}
	}
	return all, errors.Join(errs...)
}
