package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// A packageStore is the directory of installed packages. Each is in a directory named after
// its digest, read-only and complete from the moment it appears: it is staged under
// another name, flushed to disk and then renamed.
type packageStore struct{ dir string }

// unfinished begins the names of what is being put together or taken apart.
const unfinished = ".tmp-"

// abandoned is the age after which its maker must be dead.
const abandoned = time.Hour

// openPackageStore creates the directory if it is missing and removes abandoned staging
// directories.
func openPackageStore(dir string) (packageStore, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return packageStore{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return packageStore{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return packageStore{}, err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = rmtree.Remove(filepath.Join(dir, entry.Name())) // the next start tries again
		}
	}
	return packageStore{dir}, nil
}

// path returns where the package of that digest stands, or would.
func (d packageStore) path(digest string) string { return filepath.Join(d.dir, folder(digest)) }

// has reports whether there is a package of that digest. Whether its files
// still are what they were is for the launch to check.
func (d packageStore) has(digest string) bool {
	info, err := os.Stat(d.path(digest))
	return err == nil && info.IsDir()
}

// A staged package is copied and hashed, but not yet in its place.
type staged struct {
	dir    string
	digest string
	size   int64 // of its files
}

// stageDir copies the package in dir.
func (d packageStore) stageDir(ctx context.Context, dir string) (staged, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return staged{}, err
	}
	defer root.Close()
	return d.stage(ctx, root.FS(), func(f file) (io.ReadCloser, error) { return open(root, f) })
}

// stageFS copies a package that is not on disk.
func (d packageStore) stageFS(ctx context.Context, tree fs.FS) (staged, error) {
	return d.stage(ctx, tree, func(f file) (io.ReadCloser, error) { return tree.Open(f.name) })
}

// stage copies a package. What is hashed is what is written, so that a file
// which changes meanwhile cannot get past its own digest.
func (d packageStore) stage(ctx context.Context, tree fs.FS, open func(file) (io.ReadCloser, error)) (_ staged, err error) {
	files, err := scan(ctx, tree, false)
	if err != nil {
		return staged{}, err
	}
	p, err := d.begin()
	if err != nil {
		return staged{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rmtree.Remove(p.dir))
		}
	}()
	for _, f := range files {
		if err := p.add(ctx, f, open); err != nil {
			return staged{}, err
		}
	}
	return p.finish(ctx)
}

// A staging is a package that is being put together: its files come in the order of
// their names. The caller that began it removes its directory when that fails.
type staging struct {
	dir  string
	sum  digest
	size int64
	dirs map[string]bool // slash paths within the package
	done []string        // likewise, of the files that are written
}

func (d packageStore) begin() (*staging, error) {
	dir, err := os.MkdirTemp(d.dir, unfinished)
	if err != nil {
		return nil, err
	}
	return &staging{dir: dir, sum: newDigest(), dirs: map[string]bool{".": true}}, nil
}

func (p *staging) add(ctx context.Context, f file, open func(file) (io.ReadCloser, error)) error {
	for dir := path.Dir(f.name); !p.dirs[dir]; dir = path.Dir(dir) {
		p.dirs[dir] = true
	}
	if err := os.MkdirAll(filepath.Join(p.dir, filepath.FromSlash(path.Dir(f.name))), 0o700); err != nil {
		return err
	}
	content, err := copyFile(ctx, filepath.Join(p.dir, filepath.FromSlash(f.name)), f, open)
	if err != nil {
		return err
	}
	p.sum.add(f, content)
	p.done = append(p.done, f.name)
	p.size += f.info.Size()
	return nil
}

// finish flushes all of it to disk and makes it read-only.
func (p *staging) finish(ctx context.Context) (staged, error) {
	if err := p.together(ctx, p.done, flush); err != nil {
		return staged{}, err
	}
	if err := p.together(ctx, slices.Collect(maps.Keys(p.dirs)), settle); err != nil {
		return staged{}, err
	}
	return staged{p.dir, p.sum.String(), p.size}, nil
}

// flushers is how many files are flushed at a time: a disk that is told of
// several takes about as long as for one.
const flushers = 16

// together does something to each of the paths within the package.
func (p *staging) together(ctx context.Context, paths []string, do func(string) error) error {
	errs := make([]error, len(paths))
	var begun atomic.Int64
	var flushing sync.WaitGroup
	for range min(flushers, len(paths)) {
		flushing.Go(func() {
			for i := begun.Add(1) - 1; i < int64(len(paths)); i = begun.Add(1) - 1 {
				if errs[i] = ctx.Err(); errs[i] != nil {
					return
				}
				errs[i] = do(filepath.Join(p.dir, filepath.FromSlash(paths[i])))
			}
		})
	}
	flushing.Wait()
	return errors.Join(errs...)
}

// copyFile writes one file and returns its hash.
func copyFile(ctx context.Context, to string, f file, open func(file) (io.ReadCloser, error)) (content []byte, err error) {
	from, err := open(f)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	if err := copyExactly(ctx, io.MultiWriter(out, sum), from, f); err != nil {
		return nil, err
	}
	if err := out.Chmod(f.mode()); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}

// settle flushes a directory to disk and makes it read-only.
func settle(dir string) error {
	if err := os.Chmod(dir, 0o555); err != nil {
		return err
	}
	return flush(dir)
}

// flush flushes a file or a directory to disk.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// install renames a staged package into place. If one of the same digest is there and
// unchanged, the staged one is removed.
func (d packageStore) install(ctx context.Context, p staged) error {
	place := d.path(p.digest)
	for range 2 {
		if d.has(p.digest) {
			if found, err := digestDir(ctx, place, true); err == nil && found == p.digest {
				return rmtree.Remove(p.dir)
			} else if ctx.Err() != nil { // it was not read to its end
				return ctx.Err()
			}
			if err := d.discard(p.digest); err != nil { // what stands there was tampered with
				return err
			}
		}
		err := os.Rename(p.dir, place)
		if err == nil {
			return flush(d.dir)
		}
		if !d.has(p.digest) { // else another process was faster: look at what it made
			return err
		}
	}
	return fmt.Errorf("putting the package in its place: %s changes all the time", place)
}

// discard removes a package. It is gone at once, if not yet all of its files.
func (d packageStore) discard(digest string) error {
	aside, err := os.MkdirTemp(d.dir, unfinished)
	if err != nil {
		return err
	}
	if err := os.Remove(aside); err != nil { // its name is what was wanted
		return err
	}
	if err := os.Rename(d.path(digest), aside); err != nil {
		return err
	}
	return rmtree.Remove(aside)
}
