package environment

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/pack"
)

// A wheel is what the name of one says (PEP 427).
type wheel struct {
	name, version           string
	pythons, abis, machines []string
}

func parseWheel(file string) (wheel, bool) {
	stem, isWheel := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !isWheel || len(parts) != 5 && len(parts) != 6 || slices.Contains(parts, "") {
		return wheel{}, false
	}
	last := parts[len(parts)-3:]
	return wheel{
		name: normal(parts[0]), version: parts[1],
		pythons: strings.Split(last[0], "."), abis: strings.Split(last[1], "."), machines: strings.Split(last[2], "."),
	}, true
}

// tags say which wheels an interpreter takes.
type tags struct {
	major, minor int
	machine      string // as wheels call it; "" for a system whose wheels are not known here
	musl         bool
}

// tagsOf returns those of the interpreter of a version, on this machine.
func tagsOf(version string) (tags, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return tags{}, refused("no Python is there to install for: the host knows none on this machine")
	}
	major, err := strconv.Atoi(parts[0])
	minor, also := strconv.Atoi(parts[1])
	if err = errors.Join(err, also); err != nil {
		return tags{}, err
	}
	t := tags{major: major, minor: minor}
	if runtime.GOOS == "linux" {
		t.machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		found, _ := filepath.Glob("/lib/ld-musl-*")
		t.musl = len(found) > 0
	}
	return t, nil
}

func (t tags) version() string { return strconv.Itoa(t.major) + "." + strconv.Itoa(t.minor) }

// rank says how well a wheel fits: 0 for not at all, and more for what is plainer. One
// without code for a machine goes before one with it, which is compiled for this version.
func (t tags) rank(w wheel) int {
	major, whole := "py"+strconv.Itoa(t.major), strconv.Itoa(t.major)+strconv.Itoa(t.minor)
	if slices.Contains(w.machines, "any") {
		if slices.Contains(w.abis, "none") && (slices.Contains(w.pythons, major) || slices.Contains(w.pythons, "py"+whole) || slices.Contains(w.pythons, "cp"+whole)) {
			return 4
		}
		return 0
	}
	if !slices.ContainsFunc(w.machines, t.runs) {
		return 0
	}
	switch {
	case slices.Contains(w.pythons, "cp"+whole) && slices.Contains(w.abis, "cp"+whole):
		return 3
	case slices.Contains(w.abis, "abi3") && slices.ContainsFunc(w.pythons, t.atLeast):
		return 2
	case slices.Contains(w.abis, "none") && (slices.Contains(w.pythons, major) || slices.Contains(w.pythons, "cp"+whole)):
		return 1
	}
	return 0
}

// atLeast reports whether cp37, say, is not newer than the interpreter.
func (t tags) atLeast(tag string) bool {
	digits, ok := strings.CutPrefix(tag, "cp"+strconv.Itoa(t.major))
	minor, err := strconv.Atoi(digits)
	return ok && err == nil && minor <= t.minor
}

// runs reports whether code for a machine may run on this one.
func (t tags) runs(machine string) bool {
	if t.machine == "" || !strings.HasSuffix(machine, "_"+t.machine) {
		return false
	}
	kind := "manylinux"
	if t.musl {
		kind = "musllinux"
	}
	return strings.HasPrefix(machine, kind) || machine == "linux_"+t.machine
}

// An unpacking puts wheels into one directory.
type unpacking struct {
	to   *os.Root
	left int64             // bytes that there is room for
	by   map[string]string // which wheel brought a file
}

// wheel unpacks one. Scripts and data files have no place in an environment and stay out.
func (u *unpacking) wheel(ctx context.Context, path, name string, r requirement) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	w, _ := parseWheel(name)
	said := false
	err = pack.Read(ctx, path, file, info.Size(), func(f pack.File, content io.Reader) error {
		content = pack.Until(ctx, content)
		if to := metadataOf(f.Name); to && !f.Dir {
			raw, err := io.ReadAll(io.LimitReader(content, 4<<20))
			if err != nil {
				return err
			}
			if said = true; !describes(raw, w) {
				return refused("its METADATA is of another project or version than its name says")
			}
			content = bytes.NewReader(raw)
		}
		return u.one(f, content, name)
	})
	if err == nil && !said {
		err = refused("it has no METADATA: it is no wheel")
	}
	if err != nil {
		return refused("%s: %w", name, err)
	}
	return nil
}

func metadataOf(name string) bool {
	return path.Base(name) == "METADATA" && strings.HasSuffix(path.Dir(name), ".dist-info") && !strings.Contains(path.Dir(name), "/")
}

// describes reports whether the metadata of a wheel are what its name says.
func describes(raw []byte, w wheel) bool {
	name, version := "", ""
	for line := range strings.SplitSeq(string(raw), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Name:"); ok {
			name = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "Version:"); ok {
			version = strings.TrimSpace(value)
		}
	}
	return normal(name) == w.name && sameVersion(version, w.version)
}

// placeIn returns where a file of a wheel goes, "" for nowhere.
func placeIn(name string) string {
	top, rest, _ := strings.Cut(name, "/")
	if !strings.HasSuffix(top, ".data") {
		return name
	}
	kind, below, _ := strings.Cut(rest, "/")
	if kind == "purelib" || kind == "platlib" {
		return below
	}
	return ""
}

// one writes a file. What two wheels bring must be the same in both.
func (u *unpacking) one(f pack.File, content io.Reader, from string) error {
	place := placeIn(f.Name)
	if f.Dir || place == "" || strings.HasSuffix(place, ".pyc") || strings.HasSuffix(place, ".pth") {
		return nil
	}
	name := filepath.FromSlash(place)
	if err := u.to.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if f.Executable {
		mode = 0o700
	}
	raw, err := io.ReadAll(io.LimitReader(content, u.left+1))
	if err != nil {
		return err
	}
	if u.left -= int64(len(raw)); u.left < 0 {
		return refused("what is installed is larger than plugins.environments.size")
	}
	if other, there := u.by[name]; there {
		before, err := u.to.ReadFile(name)
		if err == nil && !bytes.Equal(before, raw) {
			err = refused("%s is in %s too, and is another file there", place, other)
		}
		return err
	}
	u.by[name] = from
	return u.to.WriteFile(name, raw, mode)
}
