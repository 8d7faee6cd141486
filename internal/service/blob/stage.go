package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Staged is bytes that were read to their end and can be kept. It belongs to
// one goroutine.
type Staged struct {
	SHA256 string
	Size   int64

	keep func(ctx context.Context) error
	path string // the file they are in, readable for its owner only
}

// Keep makes sure that the bytes are in the store. It may be called again.
func (s *Staged) Keep(ctx context.Context) error { return s.keep(ctx) }

// Discard removes what was staged. What was kept stays.
func (s *Staged) Discard() { os.Remove(s.path) }

// stage reads r to its end into a file of its own in dir.
func stage(ctx context.Context, dir string, r io.Reader) (_ *Staged, err error) {
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	sum := sha256.New()
	size, err := copyTo(io.MultiWriter(f, sum), reader{ctx, r})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(0o400), f.Sync()); err != nil {
		return nil, err
	}
	return &Staged{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size, path: f.Name()}, nil
}

// buffers are what bytes are copied through. Most blobs are small, and making
// such a buffer for each would take longer than to copy them.
var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// copyTo copies to the end of r, and through nothing but a buffer.
func copyTo(w io.Writer, r io.Reader) (int64, error) {
	buf := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
}

const abandoned = 24 * time.Hour // age after which a staged file counts as orphaned

// sweep removes what processes that are gone had staged in dir.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(literal.Replace(dir), ".new-*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > abandoned {
			os.Remove(path)
		}
	}
}

// literal makes a path a pattern that matches nothing else.
var literal = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)

// put is Put by way of Stage.
func put(ctx context.Context, s Store, r io.Reader) (string, int64, error) {
	staged, err := s.Stage(ctx, r)
	if err != nil {
		return "", 0, err
	}
	defer staged.Discard()
	if err := staged.Keep(ctx); err != nil {
		return "", 0, err
	}
	return staged.SHA256, staged.Size, nil
}

// A reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// Checked returns r as a reader that ends with [ErrDamaged] in place of the end
// where its bytes are not those of the hash.
func Checked(r io.ReadCloser, sha256 string) io.ReadCloser { return newChecked(r, sha256) }

// A checked reader is what Checked returns.
type checked struct {
	io.ReadCloser
	sum  hash.Hash
	want string
}

func newChecked(r io.ReadCloser, want string) io.ReadCloser { return &checked{r, sha256.New(), want} }

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.sum.Write(b[:n])
	if err == io.EOF && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		err = wrap(c.want, ErrDamaged)
	}
	return n, err
}
