// Package carried compresses the programs that a host carries inside of it, and puts
// them on the disk again.
//
// make build packs a program (cmd/pack) before go build embeds it. Its digest stands in
// front, so that a copy on the disk is compared without unpacking anything.
package carried

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxSize is the size of a program.
const maxSize = 256 << 20

// A Program is one that was packed.
type Program struct {
	Size   int64
	Digest [sha256.Size]byte // of what it is unpacked

	tree fs.FS
	name string // in it
}

// Pack compresses a program: a gzip file whose comment is the SHA-256 of what is in it.
// The same program gives the same bytes.
func Pack(code []byte) ([]byte, error) {
	if len(code) == 0 || len(code) > maxSize {
		return nil, fmt.Errorf("a program of %d bytes cannot be packed; it has 1 to %d", len(code), maxSize)
	}
	digest := sha256.Sum256(code)
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w.Comment = hex.EncodeToString(digest[:])
	_, err = w.Write(code)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Find opens the packed program that stands under a name. It reads what stands around the
// program, and not the program. The error is [fs.ErrNotExist] where the host was built
// without it, as by go build and go install.
func Find(tree fs.FS, name string) (*Program, error) {
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s is no packed program: %w", name, err)
	}
	size, err := sizeOf(file)
	if err != nil {
		return nil, fmt.Errorf("%s is no packed program: %w", name, err)
	}
	p := &Program{Size: size, tree: tree, name: name}
	if n, err := hex.Decode(p.Digest[:], []byte(r.Comment)); err != nil || n != sha256.Size || len(r.Comment) != 2*sha256.Size {
		return nil, fmt.Errorf("%s is no packed program: it does not give its digest", name)
	}
	return p, nil
}

// sizeOf returns what the end of a gzip file says of the size of what is in it.
func sizeOf(file fs.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	at, ok := file.(io.ReaderAt)
	if !ok {
		return 0, errors.New("it can be read from its beginning only")
	}
	var end [4]byte
	if _, err := at.ReadAt(end[:], info.Size()-int64(len(end))); err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint32(end[:])), nil
}

// Code unpacks it.
func (p *Program) Code() ([]byte, error) {
	file, err := p.tree.Open(p.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpacking a program: %w", err)
	}
	code := make([]byte, 0, min(p.Size, maxSize)+bytes.MinRead)
	b := bytes.NewBuffer(code)
	if _, err := b.ReadFrom(io.LimitReader(r, maxSize+1)); err != nil {
		return nil, fmt.Errorf("unpacking a program: %w", err)
	}
	if b.Len() > maxSize || sha256.Sum256(b.Bytes()) != p.Digest {
		return nil, errors.New("unpacking a program: it is another than its digest says")
	}
	return b.Bytes(), nil
}

// Install puts it on the disk, whole or not at all, unless it is there: a file of the
// same bytes that may be executed.
func (p *Program) Install(path string) error {
	if p.installed(path) {
		return nil
	}
	code, err := p.Code()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Write(path, code)
}

// Write puts a program on the disk, whole or not at all, in a directory that is there.
func Write(path string, code []byte) error {
	temp, err := write(path, code)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil && temp != "" {
		_ = os.Remove(temp)
	}
	return err
}

// write writes a program to a file beside its place. No process is started meanwhile: one
// that had the file open for writing would keep the system from executing it.
func write(path string, code []byte) (name string, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = temp.Write(code)
	if err == nil {
		err = temp.Chmod(0o500)
	}
	return temp.Name(), errors.Join(err, temp.Close())
}

func (p *Program) installed(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() != p.Size || info.Mode().Perm()&0o500 != 0o500 {
		return false
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false
	}
	return [sha256.Size]byte(sum.Sum(nil)) == p.Digest
}
