package pack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"hash"
	"io"
	"os"
	"strings"
)

// readTar reads a tar twice: the first time all of it is looked at, and the
// second time each file is given to visit.
func readTar(ctx context.Context, file *os.File, size int64, suffix string, visit func(File, io.Reader) error) error {
	for _, visit := range []func(File, io.Reader) error{look, visit} {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := walkTar(ctx, io.LimitReader(file, size), size, suffix != ".tar", visit); err != nil {
			return err
		}
	}
	return nil
}

// look reads a file to its end.
func look(_ File, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

func walkTar(ctx context.Context, file io.Reader, size int64, zipped bool, visit func(File, io.Reader) error) error {
	in := bufio.NewReader(file)
	stream := &counted{from: in, most: MaxBytes + MaxHeaders}
	if zipped {
		unzip, err := gzip.NewReader(in)
		if err != nil {
			return refused("it is no gzip: %w", err)
		}
		unzip.Multistream(false) // a second one could hide behind the first
		stream.from, stream.sent = unzip, size
	}
	from, names, total := tar.NewReader(Until(ctx, stream)), newIntake(), int64(0)
	for {
		header, err := from.Next()
		switch {
		case err == io.EOF:
			return stream.endOfTar(in)
		case err != nil:
			return damaged(err)
		case header.Typeflag == tar.TypeXGlobalHeader: // a comment, as git archive writes it
			continue
		}
		f := File{Name: header.Name, Dir: header.Typeflag == tar.TypeDir, Executable: header.Mode&0o100 != 0}
		if !f.Dir && header.Typeflag != tar.TypeReg || sparse(header) || f.Dir && header.Size != 0 {
			return refused("%s is neither a file nor a directory", header.Name)
		}
		if total += header.Size; header.Size < 0 || total > MaxBytes {
			return refused("a package is at most %d MiB large", MaxBytes>>20)
		}
		if f.Name, err = names.admit(header.Name, f.Dir); err != nil {
			return err
		}
		if f.Name == "" {
			continue
		}
		if err := visit(f, from); err != nil {
			return damaged(err)
		}
	}
}

// sparse reports whether a file has holes that only its header fills.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// endOfTar makes sure that the end is there, and that nothing follows it.
func (c *counted) endOfTar(in *bufio.Reader) error {
	behind := &counted{from: c}
	if _, err := io.Copy(io.Discard, behind); err != nil {
		return damaged(err)
	}
	switch _, err := in.ReadByte(); {
	case c.zeros < 2*tarBlock:
		if behind.zeros < behind.n {
			return refused("something follows its end")
		}
		return refused("it is damaged or no tar: it was cut off")
	case behind.zeros < behind.n, err != io.EOF:
		return refused("something follows its end")
	}
	return nil
}

// tarBlock is the unit of a tar, two of which end it, full of zeros.
const tarBlock = 512

// damaged says that a tar or gzip cannot be read.
func damaged(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, tar.ErrFieldTooLong):
		return refused("it is damaged or no tar: %w", err)
	}
	return err
}

// A counted reader counts what comes out of another, and stops what grows
// beyond most or beyond any proportion to what was sent; 0 sets no bound.
type counted struct {
	from  io.Reader
	n     int64
	zeros int64 // zero bytes that came last
	most  int64
	sent  int64
	sum   hash.Hash32 // of what came; it may be nil
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if rest := len(bytes.TrimRight(p[:n], "\x00")); rest > 0 {
		c.zeros = int64(n - rest)
	} else {
		c.zeros += int64(n)
	}
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	if c.most > 0 && c.n > c.most {
		return 0, refused("a package is at most %d MiB large", MaxBytes>>20)
	}
	if c.sent > 0 {
		if tooLarge := inflated("it", c.n, c.sent); tooLarge != nil {
			return 0, tooLarge
		}
	}
	return n, err
}
