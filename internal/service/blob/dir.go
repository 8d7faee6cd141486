package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
)

var _ Store = (*Dir)(nil)

// A Dir keeps blobs in a directory of one machine, each as a read-only file:
// <dir>/<2 hexadecimal digits>/<hash>. A blob that is being deleted is renamed
// to a name that begins with its hash and .gone; after an interruption it is
// found there.
type Dir struct {
	path    string
	swept   sync.Once // of what others left
	shelves sync.Map  // directories of blobs whose own names are on the disk: at most 256
}

const gone = ".gone-"

// OpenDir returns the store in a directory, which is made when it is needed.
func OpenDir(path string) *Dir { return &Dir{path: path} }

func wrap(sha256 string, err error) error { return fmt.Errorf("blob %s: %w", sha256, err) }

func (d *Dir) file(sha256 string) string { return filepath.Join(d.path, sha256[:2], sha256) }

// Put implements [Store].
func (d *Dir) Put(ctx context.Context, r io.Reader) (string, int64, error) { return put(ctx, d, r) }

// Stage implements [Store].
func (d *Dir) Stage(ctx context.Context, r io.Reader) (*Staged, error) {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, err
	}
	d.swept.Do(func() { sweep(d.path) })
	s, err := stage(ctx, d.path, r)
	if err != nil {
		return nil, err
	}
	s.keep = func(context.Context) error { return d.keep(s) }
	return s, nil
}

// keep gives what was staged its name, or finds that it is there already. The
// staged file keeps its own name too, until it is discarded.
func (d *Dir) keep(s *Staged) error {
	path := d.file(s.SHA256)
	if info, err := os.Lstat(path); err == nil && info.Size() == s.Size {
		return nil
	} else if err == nil { // cut short by a disk that failed
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	shelf := filepath.Dir(path)
	made := os.Mkdir(shelf, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	if err := os.Link(s.path, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDir(shelf); err != nil {
		return err
	}
	// A name that another process made may not be on the disk yet. This comes last,
	// for what was just written with the shelf costs next to nothing here.
	if _, sure := d.shelves.Load(shelf); sure && made != nil {
		return nil
	}
	if err := syncDir(d.path); err != nil {
		return err
	}
	d.shelves.Store(shelf, true)
	return nil
}

// Open implements [Store].
func (d *Dir) Open(_ context.Context, sha256 string) (io.ReadCloser, error) {
	f, err := d.open(sha256)
	if err != nil {
		return nil, err
	}
	return newChecked(f, sha256), nil
}

func (d *Dir) open(sha256 string) (*os.File, error) {
	if err := checkHash(sha256); err != nil {
		return nil, err
	}
	path := d.file(sha256)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		aside, _ := filepath.Glob(literal.Replace(path) + gone + "*")
		for _, name := range append(aside, path) { // it may have come back in between
			if f, err = os.Open(name); !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = wrap(sha256, ErrMissing)
	}
	return f, err
}

// Stat implements [Store].
func (d *Dir) Stat(_ context.Context, sha256 string) (int64, error) {
	f, err := d.open(sha256)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Delete implements [Store].
func (d *Dir) Delete(_ context.Context, sha256 string, needed func() (bool, error)) error {
	if err := checkHash(sha256); err != nil {
		return err
	}
	path := d.file(sha256)
	aside := path + gone + uuid.NewString() // a unique name: other processes may be deleting it too
	if err := os.Rename(path, aside); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	keep, err := false, error(nil)
	if needed != nil {
		keep, err = needed()
	}
	if keep || err != nil {
		// Perhaps over one that came in the meantime: they are the same.
		return errors.Join(err, os.Rename(aside, path))
	}
	return os.Remove(aside)
}

// Link makes path another name of a blob's file, having held its bytes against
// the hash. The error is of [os.LinkError] where that cannot be, as on another
// file system.
func (d *Dir) Link(ctx context.Context, sha256, path string) error {
	f, err := d.open(sha256)
	if err != nil {
		return err
	}
	sum := newChecked(f, sha256)
	defer sum.Close()
	if _, err := copyTo(io.Discard, reader{ctx, sum}); err != nil {
		return err
	}
	err = os.Link(d.file(sha256), path)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Link(f.Name(), path)
	}
	return err
}

// ID names this directory and no other. It stays with it when it is moved.
func (d *Dir) ID() (string, error) {
	path := filepath.Join(d.path, "id")
	for range 2 {
		raw, err := os.ReadFile(path)
		if err == nil && len(raw) > 0 {
			return string(raw), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := d.name(path); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s is empty", path)
}

// name writes the file that ID reads, unless another process was faster.
func (d *Dir) name(path string) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.path, ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(uuid.NewString())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(d.path)
}

// URI implements [Store].
func (d *Dir) URI(string) string { return "" }

// Close implements [Store].
func (d *Dir) Close() error { return nil }

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
