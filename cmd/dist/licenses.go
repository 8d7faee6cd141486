package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// licensesName is the file with the licences of what others wrote and the program contains.
const licensesName = "THIRD_PARTY_LICENSES"

// consoleLicenses has those of the packages of npm that the console is built from.
const consoleLicenses = "console/licenses.txt"

// within is what is in the program and in none of the files that are found, by name.
var within = map[string]string{
	"MITRE ATT&CK, ids and names of techniques": "(c) 2025 The MITRE Corporation. This work is reproduced and distributed with the permission of The MITRE Corporation.",
	"PDFium, as WebAssembly in github.com/klippa-app/go-pdfium": "Copyright The PDFium Authors. Its licences, BSD-3-Clause and Apache-2.0, and those of the libraries in it\n" +
		"are in its sources: https://pdfium.googlesource.com/pdfium/+/refs/heads/main/LICENSE and the directory third_party there.",
}

// A listed package, as go list says it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// licenses returns the text of all licences that go with the host for a target: that of Go, those of
// each module that is built into one of its programs, also where they are for one directory of a
// module only, and those of the console. A module without any is an error.
func (b *builder) licenses(ctx context.Context, t target) ([]byte, error) {
	programs := []string{"./cmd/mortise", "./cmd/docread", "./cmd/pcapsum"}
	if t.os == "linux" {
		programs = append(programs, "./cmd/cage")
	}
	raw, err := b.run(ctx, t, append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, programs...)...)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // by module, by the path in it, the files
	for decoder := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("what go list says: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		name := p.Module.Path + " " + p.Module.Version
		if found[name] == nil {
			found[name] = map[string]string{}
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			if err := addLicenses(found[name], p.Module.Dir, dir); err != nil {
				return nil, err
			}
			if dir == p.Module.Dir || len(dir) < len(p.Module.Dir) {
				break
			}
		}
	}
	goroot, err := b.run(ctx, t, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(goroot)), "\n")
	standard := map[string]string{}
	if err := addLicenses(standard, root, root); err != nil {
		return nil, err
	}
	found["Go "+strings.TrimPrefix(version, "go")] = standard
	if _, err := os.Stat(filepath.Join(b.source, consoleLicenses)); err == nil {
		found["The console"] = map[string]string{"licenses.txt": filepath.Join(b.source, consoleLicenses)}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return licensesText(found)
}

func licensesText(found map[string]map[string]string) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("Mortise is under the Apache License 2.0, which is in LICENSE. The program contains the following.\n")
	for _, name := range slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
	}) {
		if len(found[name]) == 0 {
			return nil, fmt.Errorf("%s has no file with a licence: look at it, and have cmd/dist find it", name)
		}
		for _, path := range slices.Sorted(maps.Keys(found[name])) {
			content, err := os.ReadFile(found[name][path])
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&text, "\n%s\n%s, %s\n%[1]s\n\n", strings.Repeat("=", 80), name, path)
			text.Write(bytes.TrimSpace(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))))
			text.WriteByte('\n')
		}
	}
	for _, name := range slices.Sorted(maps.Keys(within)) {
		fmt.Fprintf(&text, "\n%s\n%s\n%[1]s\n\n%s\n", strings.Repeat("=", 80), name, within[name])
	}
	return text.Bytes(), nil
}

// licenseNames begin the names of files with a licence, or with what has to go with one.
var licenseNames = []string{"LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS", "UNLICENSE"}

// addLicenses adds the files of a directory that have licences, by their path below root.
func addLicenses(to map[string]string, root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || filepath.Ext(upper) == ".GO" || !slices.ContainsFunc(licenseNames, func(n string) bool { return strings.HasPrefix(upper, n) }) {
			continue
		}
		path, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		to[filepath.ToSlash(path)] = filepath.Join(dir, e.Name())
	}
	return nil
}
