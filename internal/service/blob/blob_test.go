package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/service/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hashOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, s blob.Store, hash string) (string, error) {
	t.Helper()
	r, err := s.Open(t.Context(), hash)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), err
}

// suite is what every store must pass. damage changes the bytes of a blob
// behind its back.
func suite(t *testing.T, s blob.Store, damage func(t *testing.T, hash, data string)) {
	put := func(t *testing.T, data string) string {
		t.Helper()
		hash, size, err := s.Put(t.Context(), iotest.OneByteReader(strings.NewReader(data)))
		if err != nil || hash != hashOf(data) || size != int64(len(data)) {
			t.Fatalf("put %q: %s, %d, %v", data, hash, size, err)
		}
		return hash
	}
	t.Run("what was put is read", func(t *testing.T) {
		for _, data := range []string{"one", "", "one"} {
			hash := put(t, data)
			if got, err := read(t, s, hash); got != data || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if size, err := s.Stat(t.Context(), hash); size != int64(len(data)) || err != nil {
				t.Errorf("its size is %d, %v", size, err)
			}
		}
	})
	t.Run("what is not there is missing", func(t *testing.T) {
		for _, hash := range []string{hashOf("never"), "", "../../etc/passwd", strings.ToUpper(hashOf("one"))} {
			if _, err := s.Open(t.Context(), hash); !errors.Is(err, blob.ErrMissing) {
				t.Errorf("opening %q: %v", hash, err)
			}
			if _, err := s.Stat(t.Context(), hash); !errors.Is(err, blob.ErrMissing) {
				t.Errorf("size of %q: %v", hash, err)
			}
		}
		if err := s.Delete(t.Context(), hashOf("never"), nil); err != nil {
			t.Errorf("deleting it: %v", err)
		}
	})
	t.Run("a read that fails keeps nothing", func(t *testing.T) {
		failure := errors.New("the disk is gone")
		if _, _, err := s.Put(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(failure))); !errors.Is(err, failure) {
			t.Errorf("put ended with %v", err)
		}
		if _, err := s.Stat(t.Context(), hashOf("half")); !errors.Is(err, blob.ErrMissing) {
			t.Errorf("half of it is there: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(failure)
		if _, _, err := s.Put(ctx, strings.NewReader("half")); !errors.Is(err, failure) {
			t.Errorf("put after its caller had cancelled ended with %v", err)
		}
	})
	t.Run("damaged bytes are not believed", func(t *testing.T) {
		hash := put(t, "genuine")
		damage(t, hash, "falsified")
		if got, err := read(t, s, hash); !errors.Is(err, blob.ErrDamaged) {
			t.Errorf("read %q, %v", got, err)
		}
	})
	t.Run("deleted is missing", func(t *testing.T) {
		hash := put(t, "old")
		if err := s.Delete(t.Context(), hash, func() (bool, error) { return false, nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(t.Context(), hash); !errors.Is(err, blob.ErrMissing) {
			t.Errorf("opening it: %v", err)
		}
	})
	t.Run("what is needed after all stays", func(t *testing.T) {
		hash := put(t, "wanted")
		failure := errors.New("the store does not answer")
		for _, test := range []struct {
			needed bool
			err    error
		}{{true, nil}, {false, failure}} {
			err := s.Delete(t.Context(), hash, func() (bool, error) {
				if got, err := read(t, s, hash); got != "wanted" || err != nil {
					t.Errorf("meanwhile it is %q, %v", got, err)
				}
				return test.needed, test.err
			})
			if !errors.Is(err, test.err) {
				t.Errorf("deleting it: %v", err)
			}
			if got, err := read(t, s, hash); got != "wanted" || err != nil {
				t.Errorf("then it is %q, %v", got, err)
			}
		}
	})
	t.Run("kept once more after a deletion it is there", func(t *testing.T) {
		put(t, "shared")
		staged, err := s.Stage(t.Context(), strings.NewReader("shared"))
		if err != nil {
			t.Fatal(err)
		}
		defer staged.Discard()
		if err := staged.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = s.Delete(t.Context(), staged.SHA256, func() (bool, error) { return false, staged.Keep(t.Context()) })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, s, staged.SHA256); got != "shared" || err != nil {
			t.Errorf("it is %q, %v", got, err)
		}
	})
	t.Run("many put and delete the same at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				staged, err := s.Stage(t.Context(), strings.NewReader("busy"))
				if err != nil {
					t.Error(err)
					return
				}
				defer staged.Discard()
				err = errors.Join(staged.Keep(t.Context()), s.Delete(t.Context(), staged.SHA256, func() (bool, error) { return true, nil }), staged.Keep(t.Context()))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, err := read(t, s, hashOf("busy")); got != "busy" || err != nil {
			t.Errorf("then it is %q, %v", got, err)
		}
	})
}

func TestDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs [1]*")
	s, err := blob.Open(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("opening it made a directory that is not needed yet")
	}
	file := func(hash string) string { return filepath.Join(dir, hash[:2], hash) }
	suite(t, s, func(t *testing.T, hash, data string) {
		path := file(hash)
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(data), 0o400)); err != nil {
			t.Fatal(err)
		}
	})
	if info, err := os.Stat(file(hashOf("one"))); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("a blob's file is %v, %v", info, err)
	}
	for _, pattern := range []string{".new-*", "*/*.gone-*"} {
		if left, _ := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`, "*", `\*`).Replace(dir), pattern)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	if s.URI(hashOf("one")) != "" {
		t.Error("a local file has a URI")
	}
}

// A crash leaves a blob that was being deleted aside, and one cut short under
// its name: the first is found, the second is put again.
func TestDirAfterACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := blob.OpenDir(dir)
	for _, data := range []string{"aside", "cut short"} {
		if _, _, err := s.Put(t.Context(), strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	aside := filepath.Join(dir, hashOf("aside")[:2], hashOf("aside"))
	cut := filepath.Join(dir, hashOf("cut short")[:2], hashOf("cut short"))
	if err := errors.Join(os.Rename(aside, aside+".gone-x"), os.Remove(cut), os.WriteFile(cut, []byte("cut"), 0o400)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, s, hashOf("aside")); got != "aside" || err != nil {
		t.Errorf("the one aside is %q, %v", got, err)
	}
	if _, _, err := s.Put(t.Context(), strings.NewReader("cut short")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, s, hashOf("cut short")); got != "cut short" || err != nil {
		t.Errorf("the one cut short is %q, %v", got, err)
	}
}

func TestDirLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := blob.OpenDir(filepath.Join(dir, "blobs"))
	hash, _, err := s.Put(t.Context(), strings.NewReader("linked"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "name")
	if err := s.Link(t.Context(), hash, path); err != nil {
		t.Fatal(err)
	}
	one, err1 := os.Stat(path)
	two, err2 := os.Stat(filepath.Join(dir, "blobs", hash[:2], hash))
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(one, two) {
		t.Errorf("it is another file: %v", err)
	}
	if err := s.Link(t.Context(), hash, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("linking again: %v", err)
	}
	if err := s.Link(t.Context(), hashOf("never"), path); !errors.Is(err, blob.ErrMissing) {
		t.Errorf("linking what is not there: %v", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("changed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Link(t.Context(), hash, path+"2"); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("linking damaged bytes: %v", err)
	}
	if _, err := os.Lstat(path + "2"); err == nil {
		t.Error("they are linked all the same")
	}
}

func TestDirHasOneID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ids [8]string
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = blob.OpenDir(dir).ID(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("it is called %q", ids)
		}
	}
	if other, err := blob.OpenDir(t.TempDir()).ID(); other == ids[0] || err != nil {
		t.Errorf("another is called %q too, %v", other, err)
	}
}

func TestS3(t *testing.T) {
	backend := s3mem.New()
	server := httptest.NewServer(gofakes3.New(backend).Server())
	defer server.Close()
	if err := backend.CreateBucket("case-files"); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	scratch := t.TempDir()
	s, err := blob.Open(t.Context(), "s3://case-files?region=eu-west-1&use_path_style=true&prefix=mortise/&endpoint="+server.URL, scratch)
	if err != nil {
		t.Fatal(err)
	}
	suite(t, s, func(t *testing.T, hash, data string) {
		if _, err := backend.DeleteObject("case-files", "mortise/"+hash); err != nil {
			t.Fatal(err)
		}
		_, err := backend.PutObject("case-files", "mortise/"+hash, map[string]string{}, strings.NewReader(data), int64(len(data)), nil)
		if err != nil {
			t.Fatal(err)
		}
	})
	if got, want := s.URI(hashOf("one")), "s3://case-files/mortise/"+hashOf("one"); got != want {
		t.Errorf("it is found at %s, want %s", got, want)
	}
	objects, err := backend.ListBucket("case-files", &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil || len(objects.Contents) == 0 {
		t.Fatal(objects, err)
	}
	for _, object := range objects.Contents {
		if !strings.HasPrefix(object.Key, "mortise/") || strings.Contains(object.Key, ".gone-") {
			t.Errorf("there is an object %s", object.Key)
		}
	}

	// More than one part of an upload.
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	hash, size, err := s.Put(t.Context(), bytes.NewReader(large))
	if err != nil || size != int64(len(large)) {
		t.Fatal(hash, size, err)
	}
	if got, err := read(t, s, hash); got != string(large) || err != nil {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	server.Close()
	if _, err := s.Open(t.Context(), hash); err == nil || errors.Is(err, blob.ErrMissing) {
		t.Errorf("a server that is away: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"/data/blobs": "", "file:///data/blobs": "", "s3://bucket": "", "s3://bucket?region=eu-west-1&prefix=a/": "",
		"": "absolute path", "data/blobs": "absolute path", "file://data": "absolute path", "ftp://host": "absolute path",
		"s3://": "name of a bucket", "s3://key:secret@bucket": "name of a bucket", "s3://bucket/prefix": "name of a bucket",
	} {
		err := blob.Check(at)
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", at, err, want)
		}
	}
}
