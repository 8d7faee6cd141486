package interpreter

import (
	"debug/elf"
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

// libraries returns what programs need to be loaded: their loader, the
// directories of the system that their libraries are in, and those of their
// libraries that are elsewhere. dirs are the system's. What is no ELF file, or
// is not there, needs nothing.
func libraries(dirs []string, programs ...string) []string {
	needs := map[string]bool{}
	seen := map[string]bool{}
	work := slices.Clone(programs)
	for len(work) > 0 && len(seen) < maxLibraries {
		path := work[0]
		work = work[1:]
		if real, err := filepath.EvalSymlinks(path); err != nil || seen[real] {
			continue
		} else {
			seen[real] = true
			path = real
		}
		file, err := elf.Open(path)
		if err != nil {
			continue
		}
		if loader := loaderOf(file); loader != "" {
			needs[loader] = true
		}
		names, _ := file.DynString(elf.DT_NEEDED)
		where := searched(file, filepath.Dir(path))
		_ = file.Close()
		for _, name := range names {
			if found, system := locate(name, where, dirs); found != "" {
				work = append(work, found)
				if system {
					needs[filepath.Dir(found)] = true
				} else {
					needs[found] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(needs))
}

// loaderOf returns the program that loads a dynamic one.
func loaderOf(file *elf.File) string {
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz == 0 || p.Filesz > 4096 {
			continue
		}
		raw := make([]byte, p.Filesz)
		if _, err := p.ReadAt(raw, 0); err == nil {
			return strings.TrimRight(string(raw), "\x00")
		}
	}
	return ""
}

// searched returns the directories that a file itself names.
func searched(file *elf.File, origin string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := file.DynString(tag)
		for _, list := range lists {
			for dir := range strings.SplitSeq(list, ":") {
				dir = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(dir)
				if filepath.IsAbs(dir) {
					dirs = append(dirs, filepath.Clean(dir))
				}
			}
		}
	}
	return dirs
}

// locate finds a library, and reports whether it is one of the system's.
func locate(name string, own, system []string) (path string, ofSystem bool) {
	if filepath.IsAbs(name) {
		return name, false
	}
	for _, dir := range own {
		if path := filepath.Join(dir, name); exists(path) {
			return path, slices.Contains(system, dir)
		}
	}
	for _, dir := range slices.Backward(system) { // the more special first
		if path := filepath.Join(dir, name); exists(path) {
			return path, true
		}
	}
	return "", false
}

// shebang returns the program that a script names in its first line, "" for
// what is no script.
func shebang(path string) string {
	file, err := os.Open(path)
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
