package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Document is a text of policies under a name that no other document has.
type Document struct {
	Name string
	Text []byte

	stored bool // it is kept in the store, which all nodes of a host share
}

// A Source returns the documents of one place where policies are kept. It is
// asked again on every [Engine.Reload], by one goroutine at a time, and must
// return all it has, or an error.
type Source func() ([]Document, error)

// patience is how long a source is waited for that asks others.
const patience = 10 * time.Second

// Stored returns the source of policies that are kept elsewhere, as in a store.
func Stored(list func(context.Context) ([]Document, error)) Source {
	return func() ([]Document, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		documents, err := list(ctx)
		for i := range documents {
			documents[i].stored = true
		}
		return documents, err
	}
}

// maxFile is the largest file of policies that is read.
const maxFile = 1 << 20

// Files returns the source of the files that match the patterns. A relative
// pattern is below dir, and so are the names of the documents; a pattern that
// is a directory stands for its *.cedar files. A pattern that matches nothing
// is an error: a set of policies that is not found forbids nothing. A file that
// has not changed since is not read again.
func Files(dir string, patterns ...string) Source {
	known := map[string]reading{}
	return func() ([]Document, error) {
		before := known
		known = map[string]reading{}
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
				r, err := before[path].again(path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				known[path] = r
				documents = append(documents, Document{Name: nameBelow(dir, path), Text: r.text})
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

// A reading is a file as it was read.
type reading struct {
	info fs.FileInfo // of the file when it was opened
	text []byte
	at   time.Time
}

// settled is how old a change must be before a file that looks the same is
// taken for the same: two changes close together may leave one time.
const settled = 2 * time.Second

// again returns the file as it is now: without reading it where it is the same
// file, of the same size and time.
func (r reading) again(path string) (reading, error) {
	if r.info != nil && r.at.Sub(r.info.ModTime()) > settled {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, r.info) && info.Size() == r.info.Size() && info.ModTime().Equal(r.info.ModTime()) {
			return r, nil
		}
	}
	return readFile(path)
}

func readFile(path string) (r reading, err error) {
	r.at = time.Now()
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	if r.info, err = file.Stat(); err != nil || !r.info.Mode().IsRegular() {
		return r, fmt.Errorf("%s is not a regular file", path)
	}
	r.text, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return r, err
	}
	if len(r.text) > maxFile {
		return r, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return r, nil
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
