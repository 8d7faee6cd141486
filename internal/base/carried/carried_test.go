package carried_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/mortise-dev/mortise/internal/base/carried"
)

func packed(t *testing.T, code []byte) []byte {
	t.Helper()
	p, err := carried.Pack(code)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(packed []byte) (*carried.Program, error) {
	return carried.Find(fstest.MapFS{"it.gz": {Data: packed}}, "it.gz")
}

// A packed program is a gzip file that anything unpacks, and the same each time.
func TestPackIsGzip(t *testing.T) {
	t.Parallel()
	code := bytes.Repeat([]byte("machine code "), 10_000)
	p := packed(t, code)
	if !bytes.Equal(p, packed(t, code)) {
		t.Error("the same program gives other bytes")
	}
	r, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, code) {
		t.Errorf("unpacked %d bytes of %d: %v", len(got), len(code), err)
	}
	program, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := program.Code(); err != nil || !bytes.Equal(got, code) || program.Size != int64(len(code)) || program.Digest != sha256.Sum256(code) {
		t.Errorf("Code gives %d bytes of %d, size %d, digest %x: %v", len(got), len(code), program.Size, program.Digest, err)
	}
	if _, err := carried.Pack(nil); err == nil {
		t.Error("nothing was packed as a program")
	}
}

// What is not the program that its header names never becomes a program.
func TestAnotherProgramIsNotUnpacked(t *testing.T) {
	t.Parallel()
	a, b := packed(t, []byte("one program")), packed(t, []byte("two program"))
	comment := bytes.IndexByte(a, 0x10) // FCOMMENT alone; the comment begins after ten bytes
	if comment != 3 {
		t.Fatalf("the header has another form: % x", a[:12])
	}
	mixed := append(bytes.Clone(a[:10+2*sha256.Size]), b[10+2*sha256.Size:]...)
	program, err := open(mixed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if _, err := program.Code(); err == nil {
		t.Error("it was unpacked")
	}
	if err := program.Install(path); err == nil {
		t.Error("it was installed")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something stands there: %v", err)
	}
	var plain bytes.Buffer
	w := gzip.NewWriter(&plain)
	_, _ = w.Write([]byte("of no digest"))
	_ = w.Close()
	for _, bad := range [][]byte{nil, []byte("no gzip"), plain.Bytes()} {
		if _, err := open(bad); err == nil {
			t.Errorf("% x was opened", bad)
		}
	}
}

// A file that stands there already is kept only if it is the program.
func TestInstallReplacesWhatIsNotTheProgram(t *testing.T) {
	t.Parallel()
	code := []byte("the program itself")
	program, err := carried.Find(fstest.MapFS{"bin/it.gz": {Data: packed(t, code)}}, "bin/it.gz")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made", "program")
	check := func(same os.FileInfo) os.FileInfo {
		t.Helper()
		if err := program.Install(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || !bytes.Equal(got, code) || info.Mode().Perm() != 0o500 {
			t.Fatalf("%q, %v: %v %v", got, info, err, statErr)
		}
		if same != nil && !os.SameFile(same, info) {
			t.Error("the program was written again")
		}
		return info
	}
	check(check(nil))
	for name, spoil := range map[string]func() error{
		"other bytes of the same length": func() error { return os.WriteFile(path, []byte("the program itseLf"), 0o700) },
		"a part of it":                   func() error { return os.Truncate(path, 3) },
		"not to be executed":             func() error { return os.Chmod(path, 0o400) },
	} {
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		check(nil)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("what was written on the way stays: %v %v", entries, err)
	}
	if _, err := carried.Find(fstest.MapFS{}, "bin/it.gz"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not carried: %v", err)
	}
}
