package interpreter

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemLibraries are where the libraries of a system are: whole directories
// of them may be read, for what they load by name only.
func systemLibraries() []string {
	dirs := []string{"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"}
	for _, pattern := range []string{"/lib/*-linux-*", "/usr/lib/*-linux-*", "/usr/local/lib/*-linux-*"} {
		more, _ := filepath.Glob(pattern)
		dirs = append(dirs, more...)
	}
	return dirs
}

// maxLibraries is how many libraries of one program are followed.
const maxLibraries = 512

// libraries returns what programs of the host's own choice need to be loaded.
func libraries(dirs []string, programs ...string) []string {
	needs, _ := follow(dirs, func(string) bool { return true }, programs...)
	return needs
}

// follow returns what programs need to be loaded: their loader, the
// directories of the system that their libraries are in, and those of their
// libraries that are elsewhere. dirs are the system's. What is no ELF file, or
// is not there, needs nothing.
//
// A library or loader that may not be loaded is passed over where it was looked
// for, and returned where it is named by its absolute path.
func follow(dirs []string, may func(path string) bool, programs ...string) (needs []string, refused string) {
	found := map[string]bool{}
	seen := map[string]bool{}
	work := slices.Clone(programs)
	for len(work) > 0 && len(seen) < maxLibraries {
		path := work[0]
		work = work[1:]
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		asks, err := readTable(real)
		if err != nil {
			continue
		}
		if loader, _ := locate(asks.loader, nil, nil, may); loader != "" {
			found[loader] = true
		} else if filepath.IsAbs(asks.loader) && present(asks.loader) {
			return nil, asks.loader
		}
		where := searched(asks.search, filepath.Dir(real))
		for _, name := range asks.needed {
			library, system := locate(name, where, dirs, may)
			switch {
			case library == "":
				if filepath.IsAbs(name) && present(name) {
					return nil, name
				}
			case system:
				work = append(work, library)
				found[filepath.Dir(library)] = true
			default:
				work = append(work, library)
				found[library] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), ""
}

// present reports whether anything stands at a path.
func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// searched returns the directories that a file itself names.
func searched(lists []string, origin string) []string {
	var dirs []string
	for _, list := range lists {
		for dir := range strings.SplitSeq(list, ":") {
			dir = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(dir)
			if filepath.IsAbs(dir) {
				dirs = append(dirs, filepath.Clean(dir))
			}
		}
	}
	return dirs
}

// locate finds a library that may be loaded, and reports whether it is one of
// the system's. Nothing but an ELF file is a library.
func locate(name string, own, system []string, may func(path string) bool) (path string, ofSystem bool) {
	fits := func(path string) bool {
		if !exists(path) || !may(path) {
			return false
		}
		_, err := readTable(path)
		return err == nil
	}
	if strings.ContainsRune(name, '/') || name == "" {
		if filepath.IsAbs(name) && fits(name) {
			return name, false
		}
		return "", false // the loader looks below where the program starts: its scratch directory
	}
	for _, dir := range own {
		if path := filepath.Join(dir, name); fits(path) {
			return path, slices.Contains(system, dir)
		}
	}
	for _, dir := range slices.Backward(system) { // the more special first
		if path := filepath.Join(dir, name); fits(path) {
			return path, true
		}
	}
	return "", false
}

// shebang returns the program that a script names in its first line, "" for
// what is no script.
func shebang(path string) string {
	file, err := openRegular(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 256)
	n, _ := file.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, isScript := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(rest); isScript && len(fields) > 0 {
		return fields[0]
	}
	return ""
}
