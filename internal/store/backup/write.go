package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
)

// ErrBusy is what a writer gets whose file another one is writing at the moment.
var ErrBusy = errors.New("another backup is being written there")

// A Writer writes one backup. It appears under its name once it is whole; until
// then it is beside it, under one that ends in .part, whose lock the writer holds:
// of all that would write to one path at once, from any process, one does.
type Writer struct {
	path    string
	force   bool
	file    *os.File
	closers []io.Closer // innermost first
	tar     *tar.Writer
	members []Member
	seen    map[string]bool
	written int64
}

// Create begins a backup at path, for the recipients alone if there are some. A
// file that is there already is refused unless force is set, with [fs.ErrExist],
// and one that another writer is about to put there with [ErrBusy].
func Create(path string, force bool, recipients ...age.Recipient) (_ *Writer, err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	w := &Writer{path: path, force: force, seen: map[string]bool{}}
	if w.file, err = lockPart(path + ".part"); err != nil {
		return nil, err
	}
	// An interrupted backup left a partial file here; it is not resumed.
	if err := errors.Join(w.file.Truncate(0), w.file.Chmod(0o600)); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	buffer := bufio.NewWriterSize(w.file, 1<<20)
	var out io.Writer = buffer
	w.closers = []io.Closer{closer(buffer.Flush)}
	if len(recipients) > 0 {
		sealed, err := age.Encrypt(out, recipients...)
		if err != nil {
			return nil, errors.Join(err, w.Abort())
		}
		out, w.closers = sealed, append([]io.Closer{sealed}, w.closers...)
	}
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.tar = tar.NewWriter(packed)
	w.closers = append([]io.Closer{w.tar, packed}, w.closers...)
	return w, nil
}

// lockPart opens the file that becomes a backup, for one writer alone. The lock is
// the file's own: it ends with the writer, however that ends.
func lockPart(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		for {
			if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
				break
			}
		}
		if err == syscall.EWOULDBLOCK {
			return nil, errors.Join(&fs.PathError{Op: "create", Path: strings.TrimSuffix(path, ".part"), Err: ErrBusy}, f.Close())
		}
		if err != nil {
			return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: err}, f.Close())
		}
		// The writer that had it may have given it its name, or taken it away.
		ours, err := f.Stat()
		if err == nil {
			var named fs.FileInfo
			if named, err = os.Lstat(path); err == nil && os.SameFile(ours, named) {
				return f, nil
			}
		}
		if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

type closer func() error

func (c closer) Close() error { return c() }

// Has reports whether a member was written.
func (w *Writer) Has(name string) bool { return w.seen[name] }

// Written is how many bytes of members there are so far.
func (w *Writer) Written() int64 { return w.written }

// Add adds a member of so many bytes; a directory has none, and no reader.
func (w *Writer) Add(ctx context.Context, name string, mode fs.FileMode, size int64, r io.Reader) error {
	if err := checkName(name); err != nil {
		return err
	}
	if w.seen[name] {
		return fmt.Errorf("%s is in the backup already", name)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	m := Member{Name: name, Mode: mode.Perm(), Dir: r == nil, Size: size}
	header := &tar.Header{Name: name, Mode: int64(m.Mode), Size: size, Typeflag: tar.TypeReg, Format: tar.FormatPAX, ModTime: time.Unix(0, 0)}
	if m.Dir {
		header.Typeflag, header.Name, header.Size, m.Size = tar.TypeDir, name+"/", 0, 0
	}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	if !m.Dir {
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(reader{ctx, r}, size))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if n != size {
			return fmt.Errorf("%s became shorter while it was read", name)
		}
		m.SHA256 = hex.EncodeToString(sum.Sum(nil))
		w.written += size
	}
	w.seen[name] = true
	w.members = append(w.members, m)
	return nil
}

// AddFile adds a regular file of the disk.
func (w *Writer) AddFile(ctx context.Context, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	return w.Add(ctx, name, info.Mode(), info.Size(), f)
}

// Finish writes the manifest, to which it adds the members, and gives the backup
// its name, durably.
func (w *Writer) Finish(ctx context.Context, m *Manifest) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	m.Format, m.Members = Format, w.members
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := w.Add(ctx, manifestName, 0o600, int64(len(raw)), strings.NewReader(string(raw))); err != nil {
		return err
	}
	for len(w.closers) > 0 {
		c := w.closers[0]
		w.closers = w.closers[1:]
		if err := c.Close(); err != nil {
			return err
		}
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if w.force {
		err = os.Rename(w.path+".part", w.path)
	} else if err = os.Link(w.path+".part", w.path); err == nil { // not over one that came in the meantime
		err = os.Remove(w.path + ".part")
	}
	if err != nil {
		return err
	}
	file := w.file
	w.file = nil // its name is not ours any more
	if err := file.Close(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Abort leaves nothing behind. It may be called more than once, and changes nothing
// after the backup has its name.
func (w *Writer) Abort() error {
	if w.file == nil {
		return nil
	}
	err := os.Remove(w.path + ".part") // while the lock is held
	w.file.Close()                     // what could not be written is not wanted
	w.file = nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
