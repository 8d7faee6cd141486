package registry

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/plugin"
)

// An Archive keeps packages where all nodes of a host can have them.
type Archive interface {
	// Keep keeps what write writes, for good, and returns what Open knows it by.
	Keep(ctx context.Context, write func(io.Writer) error) (ref string, err error)
	// Open returns what was kept. The reader fails once ctx has ended.
	Open(ctx context.Context, ref string) (io.Reader, error)
}

// The bounds of what is archived: of the files, and of what stands around them.
const (
	maxArchived = 64 << 20
)

// archived returns what is known of the package of that digest, with the
// archive it is in wherever that is known.
func (ix *index) archived(digest string) (found Record) {
	for v := range ix.all {
		if v.record.Digest == digest && !v.record.Dev && found.Archive == "" {
			found = v.record
		}
	}
	return found
}

// publish stores a staged package for the other nodes and returns a reference to it. It
// holds no lock, since it may take long. A package that is stored already is stored
// again, which restores parts that were lost.
func (r *Registry) publish(ctx context.Context, p staged) (ref string, err error) {
	if r.archive == nil {
		return "", nil
	}
	if p.size > maxArchived {
		return "", refused("a package is at most %d MiB large where nodes share a database, which keeps it for all of them; this one has %d MiB: let it fetch what is large when it runs",
			maxArchived>>20, (p.size+1<<20-1)>>20)
	}
	if ref, err = r.archive.Keep(ctx, func(w io.Writer) error { return packTree(ctx, w, p.dir) }); err != nil {
		return "", fmt.Errorf("keeping the package for the other nodes: %w", err)
	}
	return ref, nil
}

// bring makes sure that a package is on this node, where another can have
// registered it: it is fetched once, and used only if it has its digest.
func (r *Registry) bring(ctx context.Context, digest string) error {
	if r.archive == nil || r.packages.has(digest) {
		return nil
	}
	c := r.checkOf(digest)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.packages.has(digest) {
		return nil // another caller fetched it while we waited
	}
	record := r.index.Load().archived(digest)
	if record.Archive == "" {
		return plugin.Errorf(plugin.CodeUnavailable, "the files of %s are not on this node, in %s, and the database does not keep them: `mortise plugins register` brings them, given their directory",
			record.title(), r.packages.path(digest))
	}
	from, err := r.archive.Open(ctx, record.Archive)
	if err != nil {
		return fmt.Errorf("fetching the files of %s: %w", record.title(), err)
	}
	fetched, err := r.packages.unpack(ctx, from)
	if err != nil {
		return fmt.Errorf("fetching the files of %s: %w", record.title(), err)
	}
	defer rmtree.Remove(fetched.dir) // gone already where it was kept
	if fetched.digest != digest {
		return errChanged
	}
	return r.packages.install(ctx, fetched)
}

// packTree writes the package in dir as a tar that depends on nothing but what its
// digest covers.
func packTree(ctx context.Context, w io.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := scan(ctx, root.FS(), true)
	if err != nil {
		return err
	}
	to := tar.NewWriter(w)
	for _, f := range files {
		if err := packFile(ctx, to, root, f); err != nil {
			return err
		}
	}
	return to.Close()
}

func packFile(ctx context.Context, to *tar.Writer, root *os.Root, f file) error {
	from, err := open(root, f)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: f.info.Size(), Mode: int64(f.mode())}); err != nil {
		return err
	}
	return copyExactly(ctx, to, from, f)
}

// unpack stages what pack wrote. What it cannot have written is errChanged.
func (d packageStore) unpack(ctx context.Context, r io.Reader) (_ staged, err error) {
	p, err := d.begin()
	if err != nil {
		return staged{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rmtree.Remove(p.dir))
		}
	}()
	from, last := tar.NewReader(io.LimitReader(r, maxArchived+pack.MaxHeaders)), ""
	for count := 1; ; count++ {
		header, err := from.Next()
		switch {
		case err == io.EOF:
			return p.finish(ctx)
		case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrInsecurePath), errors.Is(err, io.ErrUnexpectedEOF):
			return staged{}, fmt.Errorf("%w: %w", errChanged, err)
		case err != nil:
			return staged{}, err
		case header.Typeflag != tar.TypeReg, count > pack.MaxFiles, header.Size > maxArchived-p.size,
			!fs.ValidPath(header.Name), strings.Contains(header.Name, `\`), header.Name <= last:
			return staged{}, errChanged
		}
		last = header.Name
		err = p.add(ctx, file{header.Name, header.FileInfo()}, func(file) (io.ReadCloser, error) { return io.NopCloser(from), nil })
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ENOTDIR) { // a file's name is a directory's too
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
		if err != nil {
			return staged{}, err
		}
	}
}
