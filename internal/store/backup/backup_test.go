package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// made writes a small backup and returns its path.
func made(t *testing.T, recipients ...age.Recipient) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b")
	w, err := Create(file, false, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 200<<10)
	rand.Read(noise)
	add := func(name string, mode fs.FileMode, text []byte) {
		t.Helper()
		var r io.Reader
		if text != nil {
			r = bytes.NewReader(text)
		}
		if err := w.Add(t.Context(), name, mode, int64(len(text)), r); err != nil {
			t.Fatal(err)
		}
	}
	add("packages", 0o700, nil)
	add("packages/x", 0o555, nil)
	add("packages/x/run.py", 0o555, []byte("print(1)\n"))
	add("packages/x/empty", 0o444, []byte{})
	add("noise", 0o600, noise)
	if err := w.Finish(t.Context(), &Manifest{Version: "0", MadeAt: time.Unix(1, 0).UTC(), Heads: []Head{}, Notes: []string{}}); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWhatIsBackedUpComesBack(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	pass, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	pass.SetWorkFactor(10)
	opens, err := age.NewScryptIdentity("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		to   []age.Recipient
		with []age.Identity
	}{
		"open":       {},
		"identity":   {[]age.Recipient{id.Recipient()}, []age.Identity{id}},
		"passphrase": {[]age.Recipient{pass}, []age.Identity{opens}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, dir := made(t, test.to...), t.TempDir()
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			m, err := Extract(t.Context(), file, dir, test.with...)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Members) != 5 || m.Members[2].Name != "packages/x/run.py" {
				t.Errorf("%+v", m.Members)
			}
			for name, mode := range map[string]fs.FileMode{"packages/x/run.py": 0o555, "packages/x/empty": 0o444, "packages/x": fs.ModeDir | 0o555, "noise": 0o600} {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
			if text, err := os.ReadFile(filepath.Join(dir, "packages/x/run.py")); err != nil || string(text) != "print(1)\n" {
				t.Errorf("%q, %v", text, err)
			}
			if test.to != nil {
				if _, err := Check(t.Context(), file); !errors.Is(err, ErrSealed) || !errors.Is(err, ErrDamaged) {
					t.Errorf("without a key: %v", err)
				}
				other, err := age.GenerateX25519Identity()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Check(t.Context(), file, other); !errors.Is(err, ErrDamaged) {
					t.Errorf("with another key: %v", err)
				}
			}
			if err := os.Chmod(filepath.Join(dir, "packages/x"), 0o700); err != nil { // so that it can be removed
				t.Fatal(err)
			}
		})
	}
}

// TestADamagedBackupIsRefused: cut off at every place that matters, and with any
// one bit flipped, encrypted or not.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string][]age.Recipient{"open": nil, "encrypted": {id.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, err := os.ReadFile(made(t, to...))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "b")
			refused := func(what string, at int, text []byte) {
				t.Helper()
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := Check(t.Context(), file, id); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s at %d of %d: %v", what, at, len(whole), err)
				}
			}
			for i := range 150 {
				at := i * len(whole) / 150
				refused("cut", at, whole[:at])
				flipped := bytes.Clone(whole)
				flipped[at] ^= 1 << (i % 8)
				if to == nil && 4 <= at && at < 10 {
					continue // the time and system in the head of gzip mean nothing
				}
				refused("flipped", at, flipped)
			}
			for at := len(whole) - 40; at < len(whole); at++ {
				refused("cut", at, whole[:at])
			}
			refused("more", len(whole), append(bytes.Clone(whole), 0))
			refused("twice", len(whole), append(bytes.Clone(whole), whole...))
		})
	}
}

// forged writes an archive of these headers, with a manifest of what it has.
func forged(t *testing.T, manifest string, headers ...tar.Header) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b")
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	w := tar.NewWriter(packed)
	for _, h := range headers {
		h.Size = 0
		if h.Typeflag == tar.TypeReg {
			h.Size = 1
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size == 1 {
			w.Write([]byte("x"))
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: manifestName, Typeflag: tar.TypeReg, Size: int64(len(manifest))}); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, manifest)
	if err := errors.Join(w.Close(), packed.Close(), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAForeignArchiveIsRefused(t *testing.T) {
	t.Parallel()
	const sum = `"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"`
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600} }
	manifest := func(name string) string {
		return `{"format":"` + Format + `","members":[{"name":"` + name + `","mode":384,"size":1,` + sum + `}]}`
	}
	if _, err := Check(t.Context(), forged(t, manifest("a"), file("a"))); err != nil {
		t.Fatalf("one that is as it should be: %v", err)
	}
	for _, name := range []string{"../a", "/a", "a/../../b", "./a", "a//b", "..", "a/..", `..\a`, "a\x00b", strings.Repeat("a", 2000)} {
		if strings.Contains(name, "\x00") {
			continue // tar cannot say it
		}
		if _, err := Check(t.Context(), forged(t, manifest(name), file(name))); !errors.Is(err, ErrDamaged) {
			t.Errorf("%.40q: %v", name, err)
		}
	}
	for what, at := range map[string]string{
		"a link":        forged(t, manifest("a"), tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
		"a hard link":   forged(t, manifest("a"), tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"a device":      forged(t, manifest("a"), tar.Header{Name: "a", Typeflag: tar.TypeChar}),
		"twice":         forged(t, manifest("a"), file("a"), file("a")),
		"below a file":  forged(t, manifest("a"), file("a"), file("a/b")),
		"one too many":  forged(t, manifest("a"), file("a"), file("b")),
		"one missing":   forged(t, strings.Replace(manifest("a"), "]", `,{"name":"b","mode":384,"size":1,`+sum+`}]`, 1), file("a")),
		"another hash":  forged(t, strings.Replace(manifest("a"), "2d71", "2d72", 1), file("a")),
		"another mode":  forged(t, strings.Replace(manifest("a"), "384", "448", 1), file("a")),
		"another kind":  forged(t, strings.Replace(manifest("a"), Format, "mortise backup 2", 1), file("a")),
		"no manifest":   forged(t, "", file("a")),
		"not JSON":      forged(t, "{", file("a")),
		"no format":     forged(t, "{}", file("a")),
		"what comes on": forged(t, manifest("a"), file("a"), tar.Header{Name: manifestName, Typeflag: tar.TypeReg}),
	} {
		if _, err := Check(t.Context(), at); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), text); !errors.Is(err, ErrDamaged) {
		t.Errorf("a text: %v", err)
	}
}

// TestNothingIsLeftOfABackupThatWasGivenUp, nor is another one touched.
func TestNothingIsLeftOfABackupThatWasGivenUp(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b")
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := Create(file, false)
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("Ctrl-C")
	slow := readerFunc(func(p []byte) (int, error) { cancel(stopped); return len(p), nil })
	if err := w.Add(ctx, "endless", 0o600, 1<<40, slow); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}

	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: %v", err)
	}
	if w, err = Create(file, true); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), "a", 0o600, 5, strings.NewReader("abc")); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("%v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
