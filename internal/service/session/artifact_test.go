package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

func TestAnArtifactIsWhatWasRegistered(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	first := b.add(t, s, "line\n", session.Add{Name: "auth.log.1", Labels: []string{"untrusted"}})
	if len(first.ID) != len("art_")+8 || first.Type != "log_stream" || first.Size != 5 || first.SourceTool != "" || string(first.Metadata) != "{}" || first.StorageURI != "" {
		t.Errorf("the first is %+v", first)
	}
	second := b.add(t, s, `{"n":1}`, session.Add{
		Name: "out.json", Type: "text", SourceTool: "parse", SourceCall: "c1", Parents: []string{first.ID}, Labels: []string{"private"},
		Metadata: json.RawMessage(`{"b":1.0, "a":{}}`),
	})
	if second.Type != "text" || !slices.Equal(second.Labels, []string{"private", "untrusted"}) || string(second.Metadata) != `{"b":1.0,"a":{}}` {
		t.Errorf("the second is %+v", second)
	}
	all, err := b.Artifacts(t.Context(), "t", s.ID)
	if err != nil || !reflect.DeepEqual(all, []session.Artifact{first, second}) {
		t.Errorf("there are %+v, %v", all, err)
	}
	if got, err := b.Get(t.Context(), "t", s.ID); err != nil || got.Artifacts != 2 || !slices.Equal(got.Labels, []string{"private", "untrusted"}) {
		t.Errorf("the session is %+v, %v", got, err)
	}
	for _, id := range []string{second.ID, "out.json"} {
		r, err := b.Open(t.Context(), "t", s.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if r.Close(); string(data) != `{"n":1}` || err != nil {
			t.Errorf("%s reads %q, %v", id, data, err)
		}
	}
	_, err = b.Artifact(t.Context(), "t", s.ID, "art_00")
	wantCode(t, "one that is not there", err, plugin.CodeNotFound, "artifacts list")
	b.add(t, s, "other", session.Add{Name: "out.json"})
	_, err = b.Artifact(t.Context(), "t", s.ID, "out.json")
	wantCode(t, "a name of two", err, plugin.CodeInvalidInput, second.ID)
}

func TestTheSameFromTheSameSourceIsOneArtifact(t *testing.T) {
	t.Parallel()
	b := newBundle(t, amongBlobs)
	s := b.create(t, "t")
	one := b.add(t, s, "same", session.Add{Name: "a.txt"})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if again, err := b.Add(t.Context(), "t", s.ID, strings.NewReader("same"), session.Add{Name: "a.txt"}); err != nil || !reflect.DeepEqual(again, one) {
				t.Errorf("again it is %+v, %v", again, err)
			}
		})
	}
	wg.Wait()
	if got := b.entries(t); len(got) != 2 {
		t.Errorf("the ledger has %v", got)
	}
	for _, other := range []session.Add{{Name: "b.txt"}, {Name: "a.txt", Type: "image"}, {Name: "a.txt", SourceTool: "x"}, {Name: "a.txt", SourceTool: "x", SourceCall: "c"}, {Name: "a.txt", Labels: []string{"private"}}} {
		if got := b.add(t, s, "same", other); got.ID == one.ID || got.SHA256 != one.SHA256 {
			t.Errorf("%+v is %+v", other, got)
		}
	}
	if n := b.blobs(t); n != 1 {
		t.Errorf("the bytes are kept %d times", n)
	}
}

// TestAnIdThatWasGivenOutIsTheArtifacts even if an equal one is there; it is never
// that of two, and a call that is carried out again finds its own.
func TestAnIdThatWasGivenOutIsTheArtifacts(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	for _, text := range []string{"small", strings.Repeat("large", 1<<16)} {
		of := func(id, call string) session.Add {
			return session.Add{ID: id, Name: "out.txt", SourceTool: "make", SourceCall: call}
		}
		id := fmt.Sprintf("art_%08x", len(text))
		equal := b.add(t, s, text, of("", "c1"))
		first := b.add(t, s, text, of(id, "c1"))
		if again := b.add(t, s, text, of(id, "c1")); first.ID != id || again.ID != id || equal.ID == id {
			t.Errorf("the ids are %s, %s and %s", equal.ID, first.ID, again.ID)
		}
		for name, add := range map[string]session.Add{"another call": of(id, "c2"), "a person": {ID: id, Name: "out.txt"}} {
			_, err := b.Add(t.Context(), "t", s.ID, strings.NewReader(text), add)
			wantCode(t, name, err, plugin.CodeInvalidInput, "another artifact")
		}
		_, err := b.Add(t.Context(), "t", s.ID, strings.NewReader("other bytes"), of(id, "c1"))
		wantCode(t, "other bytes", err, plugin.CodeInvalidInput, "another artifact")
	}
	for _, id := range []string{"art_1", "../../..", "art_0000000G", "ART_00000000"} {
		_, err := b.Add(t.Context(), "t", s.ID, strings.NewReader("x"), session.Add{ID: id, Name: "x"})
		wantCode(t, id, err, plugin.CodeInvalidInput, "no id of an artifact")
	}
	if all, err := b.Artifacts(t.Context(), "t", s.ID); err != nil || len(all) != 4 {
		t.Errorf("%d artifacts, %v", len(all), err)
	}
}

func TestNothingIsHalfKept(t *testing.T) {
	t.Parallel()
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothingIsHalfKept(t, newBundle(t, change))
		})
	}
}

func nothingIsHalfKept(t *testing.T, b *bundle) {
	s := b.create(t, "t")
	ctx := t.Context()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	large := filepath.Join(dir, "large.pcap")
	f, err := os.Create(large)
	if err := errors.Join(err, f.Truncate(1<<20+1), f.Close(), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path string
		code plugin.Code
		text string
	}{
		{filepath.Join(dir, "missing"), plugin.CodeNotFound, "no file"},
		{filepath.Join(large, "below"), plugin.CodeNotFound, "no file"},
		{dir, plugin.CodeInvalidInput, "is a directory"},
		{fifo, plugin.CodeInvalidInput, "no regular file"},
		{"/dev/zero", plugin.CodeInvalidInput, "no regular file"},
		{large, plugin.CodeInputTooLarge, "limits.artifact_bytes"},
	} {
		_, err := b.AddFile(ctx, "t", s.ID, test.path, session.Add{})
		wantCode(t, test.path, err, test.code, test.text)
	}
	if os.Getuid() != 0 {
		path := filepath.Join(dir, "locked")
		if err := os.WriteFile(path, nil, 0); err != nil {
			t.Fatal(err)
		}
		_, err := b.AddFile(ctx, "t", s.ID, path, session.Add{})
		wantCode(t, "unreadable", err, plugin.CodeInvalidInput, "may not be read")
	}

	broken := errors.New("input/output error")
	for _, test := range []struct {
		name string
		r    io.Reader
		add  session.Add
		code plugin.Code
		text string
	}{
		{"grows while it is read", io.LimitReader(zeros{}, 1<<20+1), session.Add{Name: "x"}, plugin.CodeInputTooLarge, "larger than"},
		{"ends with an error", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), session.Add{Name: "x"}, plugin.CodeInternal, "input/output"},
		{"no name", strings.NewReader("x"), session.Add{}, plugin.CodeInvalidInput, "file name"},
		{"a path", strings.NewReader("x"), session.Add{Name: "../x"}, plugin.CodeInvalidInput, "file name"},
		{"dots", strings.NewReader("x"), session.Add{Name: ".."}, plugin.CodeInvalidInput, "file name"},
		{"a long name", strings.NewReader("x"), session.Add{Name: strings.Repeat("x", 256)}, plugin.CodeInvalidInput, "file name"},
		{"a name that steers", strings.NewReader("x"), session.Add{Name: "x\x1b[2J"}, plugin.CodeInvalidInput, "file name"},
		{"no type", strings.NewReader("x"), session.Add{Name: "x", Type: "spreadsheet"}, plugin.CodeInvalidInput, "artifacts types"},
		{"no parent", strings.NewReader("x"), session.Add{Name: "x", Parents: []string{"art_00000000"}}, plugin.CodeNotFound, "art_00000000"},
		{"many parents", strings.NewReader("x"), session.Add{Name: "x", Parents: make([]string, 257)}, plugin.CodeInvalidInput, "at most 256"},
		{"no label", strings.NewReader("x"), session.Add{Name: "x", Labels: []string{""}}, plugin.CodeInvalidInput, "label"},
		{"no metadata", strings.NewReader("x"), session.Add{Name: "x", Metadata: json.RawMessage(`[]`)}, plugin.CodeInvalidInput, "no JSON object"},
		{"much metadata", strings.NewReader("x"), session.Add{Name: "x", Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`)}, plugin.CodeInputTooLarge, "metadata"},
		{"a long source", strings.NewReader("x"), session.Add{Name: "x", SourceTool: strings.Repeat("x", 256)}, plugin.CodeInvalidInput, "source"},
	} {
		_, err := b.Add(ctx, "t", s.ID, test.r, test.add)
		if plugin.CodeOf(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%s: %v, want %s with %q", test.name, err, test.code, test.text)
		}
	}
	if err := b.Close(ctx, "t", s.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.Add(ctx, "t", s.ID, strings.NewReader("x"), session.Add{Name: "x"})
	wantCode(t, "a closed session", err, plugin.CodeInvalidInput, "sessions resume "+s.ID)
	if n := b.blobs(t); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
	if all, err := b.Artifacts(ctx, "t", s.ID); len(all) != 0 || err != nil {
		t.Errorf("there are %v, %v", all, err)
	}
	if got := b.entries(t); len(got) != 2 {
		t.Errorf("the ledger has %v", got)
	}
}

// A session that is closed, or gone, by the time its bytes are in.
func TestASessionThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aSessionThatEndsMeanwhile(t, newBundle(t, change))
		})
	}
}

func aSessionThatEndsMeanwhile(t *testing.T, b *bundle) {
	ctx := t.Context()
	for name, end := range map[string]func(id string) error{
		"closed": func(id string) error { return b.Close(ctx, "t", id) },
		"gone":   func(id string) error { return b.Delete(ctx, "t", id) },
	} {
		s := b.create(t, "t")
		last := readerFunc(func([]byte) (int, error) {
			if err := end(s.ID); err != nil {
				return 0, err
			}
			return 0, io.EOF
		})
		_, err := b.Add(ctx, "t", s.ID, io.MultiReader(strings.NewReader("x"), last), session.Add{Name: "x"})
		if code := plugin.CodeOf(err); code != plugin.CodeInvalidInput && code != plugin.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := b.blobs(t); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
}

func TestAnEmptyFileIsAnArtifact(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	if a := b.add(t, s, "", session.Add{Name: "empty.pcap"}); a.Size != 0 || a.Type != "pcap" {
		t.Errorf("it is %+v", a)
	}
	v, err := b.View(t.Context(), "t", s.ID)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := b.Artifacts(t.Context(), "t", s.ID)
	if info, err := os.Stat(v.Path(all[0])); err != nil || info.Size() != 0 {
		t.Errorf("in the view it is %v, %v", info, err)
	}
}

// A large file passes through a constant amount of memory.
func TestALargeFileStreams(t *testing.T) {
	b := newBundle(t, func(o *session.Options) { o.MaxArtifact = 1 << 30 })
	s := b.create(t, "t")
	path := filepath.Join(t.TempDir(), "large.pcap")
	f, err := os.Create(path)
	if err := errors.Join(err, f.Truncate(100<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a, err := b.AddFile(t.Context(), "t", s.ID, path, session.Add{})
	if err != nil || a.Size != 100<<20 {
		t.Fatalf("it is %+v, %v", a, err)
	}
	if _, err := b.View(t.Context(), "t", s.ID); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	t.Run("memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the memory that a large file takes")
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%d bytes were allocated for it", used)
		}
	})
}

func TestOnlyUnsharedBytesAreDeleted(t *testing.T) {
	t.Parallel()
	b := newBundle(t, amongBlobs)
	ctx := t.Context()
	one, two := b.create(t, "t"), b.create(t, "t")
	b.add(t, one, "own", session.Add{Name: "own"})
	b.add(t, one, "shared", session.Add{Name: "shared"})
	kept := b.add(t, two, "shared", session.Add{Name: "shared"})
	v, err := b.View(ctx, "t", one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(ctx, "t", one.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(v.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its view is %v", err)
	}
	if n := b.blobs(t); n != 1 {
		t.Errorf("%d blobs are left, want 1", n)
	}
	if r, err := b.Open(ctx, "t", two.ID, kept.ID); err != nil {
		t.Error(err)
	} else if data, err := io.ReadAll(r); string(data) != "shared" || err != nil || r.Close() != nil {
		t.Errorf("the other's reads %q, %v", data, err)
	}
}

// Sessions with the same bytes come and go: while an artifact exists, its bytes exist.
func TestDeletingBesideAdding(t *testing.T) {
	t.Parallel()
	b := newBundle(t, amongBlobs)
	ctx := t.Context()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 10 {
				s, err := b.Create(ctx, "t", session.Open{})
				if err != nil {
					t.Error(err)
					return
				}
				a, err := b.Add(ctx, "t", s.ID, strings.NewReader("same"), session.Add{Name: "a"})
				if err != nil {
					t.Error(err)
					return
				}
				if r, err := b.Open(ctx, "t", s.ID, a.ID); err != nil {
					t.Errorf("its bytes: %v", err)
				} else if data, err := io.ReadAll(r); string(data) != "same" || err != nil || r.Close() != nil {
					t.Errorf("its bytes are %q, %v", data, err)
				}
				if i > 0 {
					if err := b.Delete(ctx, "t", s.ID); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := b.blobs(t); n != 1 {
		t.Errorf("%d blobs are left, want 1", n)
	}
}

func TestAViewHasEveryArtifactReadOnly(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*session.Options){
		"links":  amongBlobs,
		"copies": func(o *session.Options) { amongBlobs(o); o.Blobs = struct{ blob.Store }{o.Blobs} },
		"inline": inline,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, change)
			s := b.create(t, "t")
			ctx := t.Context()
			if v, err := b.View(ctx, "t", s.ID); err != nil {
				t.Fatal(err)
			} else if info, err := os.Stat(v.Dir); err != nil || !info.IsDir() {
				t.Errorf("an empty view is %v, %v", info, err)
			}
			want := map[string]string{"a b.log": "one", "é.txt": "two"}
			for name, data := range want {
				b.add(t, s, data, session.Add{Name: name})
			}
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					v, err := b.View(ctx, "t", s.ID)
					if err != nil {
						t.Error(err)
						return
					}
					all, err := b.Artifacts(ctx, "t", s.ID)
					if err != nil || len(all) != 2 {
						t.Error(all, err)
					}
					for _, a := range all {
						data, err := os.ReadFile(v.Path(a))
						info, _ := os.Stat(v.Path(a))
						if string(data) != want[a.Name] || err != nil || info.Mode().Perm() != 0o400 || filepath.Base(v.Path(a)) != a.Name {
							t.Errorf("%s is %q, %v, %v", v.Path(a), data, info, err)
						}
					}
				})
			}
			wg.Wait()
			v, _ := b.View(ctx, "t", s.ID)
			if left, _ := filepath.Glob(filepath.Join(v.Dir, ".new-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestBytesThatChangedAreNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBundle(t, amongBlobs)
	s := b.create(t, "t")
	ctx := t.Context()
	a := b.add(t, s, "genuine", session.Add{Name: "a.txt"})
	path := filepath.Join(b.home, "blobs", a.SHA256[:2], a.SHA256)
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("changed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(ctx, "t", s.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(r)
	wantCode(t, "reading them", err, plugin.CodeInternal, a.ID)
	r.Close()
	_, err = b.View(ctx, "t", s.ID)
	wantCode(t, "the view", err, plugin.CodeInternal, "backup")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = b.Open(ctx, "t", s.ID, a.ID)
	wantCode(t, "bytes that are gone", err, plugin.CodeUnavailable, "blobs")
	_, err = b.View(ctx, "t", s.ID)
	wantCode(t, "the view of those", err, plugin.CodeUnavailable, a.ID)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// What may not be kept as it is, is not kept at all: neither its row nor its bytes.
func TestWhatIsSiftedOutLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(o *session.Options) {
		o.Sift = func(r io.Reader, name string) io.Reader {
			return io.MultiReader(io.LimitReader(r, 70_000), iotest.ErrReader(plugin.Errorf(plugin.CodeInvalidOutput, "%s may not be kept", name)))
		}
	})
	s := b.create(t, "t")
	_, err := b.Add(t.Context(), "t", s.ID, strings.NewReader(strings.Repeat("x", 200_000)), session.Add{Name: "report.txt"})
	if plugin.CodeOf(err) != plugin.CodeInvalidOutput || !strings.Contains(err.Error(), "report.txt") {
		t.Fatal(err)
	}
	if all, err := b.Artifacts(t.Context(), "t", s.ID); err != nil || len(all) != 0 || b.blobs(t) != 0 {
		t.Errorf("%+v, %v, and %d blobs", all, err, b.blobs(t))
	}
	if _, err := b.Add(t.Context(), "t", s.ID, strings.NewReader("small"), session.Add{Name: "small.txt"}); err != nil {
		t.Errorf("one that is kept in the store: %v", err)
	}
}
