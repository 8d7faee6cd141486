// Package blob keeps bytes under their SHA-256: files that are too large for a
// database, written once and never changed.
//
// What is being written is nowhere to be found until all of it is safe, so that
// an interrupted write leaves nothing that could be taken for a blob. Every
// read is held against the hash: it ends with [ErrDamaged] instead of the end
// of the file if the bytes are not those that were put.
//
// Who needs which blob is not known here; see package session.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// A Store keeps blobs. All methods are safe for concurrent use, by several
// processes too. A hash is 64 hexadecimal digits, lower case.
type Store interface {
	// Put keeps what r holds until its end, and returns its hash and size.
	// Bytes that are there already are kept once.
	Put(ctx context.Context, r io.Reader) (sha256 string, size int64, err error)
	// Stage is the first half of Put: the bytes are here, and not yet kept.
	// Discard must be called.
	Stage(ctx context.Context, r io.Reader) (*Staged, error)
	// Open returns the bytes of a hash. Their reader must be read to its end
	// before they are believed. [ErrMissing] if there are none.
	Open(ctx context.Context, sha256 string) (io.ReadCloser, error)
	// Stat returns the size of a blob. [ErrMissing] if there is none.
	Stat(ctx context.Context, sha256 string) (size int64, err error)
	// Delete deletes a blob, if there is one. If needed is not nil, Delete calls
	// it once the blob can no longer be found by a new reader; if the blob is
	// still needed, it stays. So a caller that records its need for a staged
	// blob, and then calls Keep again, has it.
	Delete(ctx context.Context, sha256 string, needed func() (bool, error)) error
	// URI returns the address of a blob for other hosts, "" if they cannot reach
	// it.
	URI(sha256 string) string
	// Close releases what was opened.
	Close() error
}

// What stores say of blobs. Both are wrapped with the hash.
var (
	ErrMissing = errors.New("there is no such blob")
	ErrDamaged = errors.New("the bytes are not those that were put")
)

// Open returns the store at url: a directory, by its absolute path or as
// file:///path, a bucket as s3://name?region=..., or gs://name. A member prefix
// of a bucket's query is what the names of all blobs begin with. Bytes on their
// way to a bucket are held in the directory scratch meanwhile.
func Open(ctx context.Context, at, scratch string) (Store, error) {
	if err := Check(at); err != nil {
		return nil, err
	}
	if scheme, _, isURL := strings.Cut(at, "://"); isURL && scheme != "file" {
		return openBucket(ctx, at, scratch)
	}
	return OpenDir(strings.TrimPrefix(at, "file://")), nil
}

// Check refuses what [Open] would not understand.
func Check(at string) error {
	scheme, rest, isURL := strings.Cut(at, "://")
	switch {
	case !isURL && filepath.IsAbs(at), isURL && scheme == "file" && filepath.IsAbs(rest):
		return nil
	case isURL && (scheme == "s3" || scheme == "gs"):
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("%s:// is followed by the name of a bucket and perhaps ?prefix=..., and nothing else; credentials come from the environment", scheme)
		}
		if scheme == "gs" && !withGCS {
			return errors.New("gs:// needs a mortise that was built with '-tags gcs'; this one was not")
		}
		return nil
	}
	return errors.New("it is the absolute path of a directory, s3://BUCKET or gs://BUCKET")
}

// checkHash refuses what is no hash before it becomes part of a path.
func checkHash(sha256 string) error {
	if len(sha256) == 64 && strings.Trim(sha256, "0123456789abcdef") == "" {
		return nil
	}
	return fmt.Errorf("%.100q is no SHA-256 in hexadecimal: %w", sha256, ErrMissing)
}
