package pack

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"time"
)

// A Writer makes a package file of which every byte follows from what is in it: the
// same files make the same package, on any machine and at any time. Files are written
// in the order of their names.
type Writer struct {
	tar *tar.Writer
	zip *gzip.Writer // nil for a plain tar
}

// Written are the names of package files that a [Writer] makes.
var Written = []string{".tar.gz", ".tgz", ".tar"}

// NewWriter begins a package file that is called name. A zip is invalid_input.
func NewWriter(name string, to io.Writer) (*Writer, error) {
	switch suffix := suffixOf(name); suffix {
	case ".tar":
		return &Writer{tar: tar.NewWriter(to)}, nil
	case ".tar.gz", ".tgz":
		zip, err := gzip.NewWriterLevel(to, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		return &Writer{tar: tar.NewWriter(zip), zip: zip}, nil
	}
	return nil, refused("%s is no name for a package file: it ends in %s", name, strings.Join(Written, ", "))
}

// Add begins the next file, of a size in bytes; its content is written to what is returned.
func (w *Writer) Add(f File, size int64) (io.Writer, error) {
	mode := int64(0o644)
	if f.Executable {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: size, Mode: mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	return w.tar, w.tar.WriteHeader(header)
}

// Close ends the package file; without it there is none.
func (w *Writer) Close() error {
	err := w.tar.Close()
	if w.zip != nil {
		err = errors.Join(err, w.zip.Close())
	}
	return err
}
