package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/version"
)

// A release is what is made of a source directory.
type release struct {
	source  string // absolute
	targets []target
	say     func(line string) // tells a person what is done
}

// files that each archive has beside the program, under these names.
var files = []string{"CHANGELOG.md", "LICENSE", "README.md"}

// write makes the files of the release in a directory, and returns their names in order. A
// directory with files in it is refused, so that none of another release stays among them.
func (r release) write(ctx context.Context, dir string) ([]string, error) {
	if there, err := os.ReadDir(dir); len(there) > 0 {
		return nil, fmt.Errorf("%s is not empty: remove it, or name another directory with -o", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	sums := map[string][]byte{}
	put := func(name string, content []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.say(fmt.Sprintf("%s, %.1f MB", name, float64(len(content))/1e6))
		sums[name] = sumOf(content)
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	}
	b, err := newBuilder(r.source)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, t := range r.targets {
		program, err := b.host(ctx, t)
		if err != nil {
			return nil, err
		}
		shared, err := r.shared(ctx, b, t)
		if err != nil {
			return nil, err
		}
		name := "mortise-" + version.Host + "-" + t.String()
		content, err := tarball(below(name, append(shared, file{"mortise", 0o755, program})))
		if err := put(name+".tar.gz", content, err); err != nil {
			return nil, err
		}
		content, err = desktopBundle(t, program, shared)
		if err := put(name+".mcpb", content, err); err != nil {
			return nil, err
		}
	}
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	name := "mortise-" + version.Host + "-claude-code"
	market, err := marketplace()
	if err != nil {
		return nil, err
	}
	content, err := zipped(below(name, append(market, file{"LICENSE", 0o644, license})))
	if err := put(name+".zip", content, err); err != nil {
		return nil, err
	}
	list := sumsFile(sums)
	if err := os.WriteFile(filepath.Join(dir, sumsName), list, 0o644); err != nil {
		return nil, err
	}
	var made []string
	for name := range sums {
		made = append(made, name)
	}
	made = append(made, sumsName)
	slices.Sort(made)
	return made, nil
}

// shared returns what goes with the program for a target.
func (r release) shared(ctx context.Context, b *builder, t target) ([]file, error) {
	var all []file
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, 0o644, content})
	}
	licenses, err := b.licenses(ctx, t)
	if err != nil {
		return nil, err
	}
	return append(all, file{licensesName, 0o644, licenses}), nil
}

// below returns the files as they are in a directory of that name.
func below(dir string, all []file) []file {
	moved := slices.Clone(all)
	for i := range moved {
		moved[i].name = path.Join(dir, moved[i].name)
	}
	return moved
}
