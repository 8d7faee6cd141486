package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// An archive keeps packages in the store that several nodes share: each as
// bodies of no tenant, which are its parts, and one more that lists their
// hashes and is what it is known by. Parts go in one by one, so that no write
// holds up the others for long.
type archive struct{ store Store }

var _ registry.Archive = archive{}

// NewArchive returns the archive in a store.
func NewArchive(st Store) registry.Archive { return archive{st} }

const partBytes = 1 << 20

func (a archive) Keep(ctx context.Context, write func(io.Writer) error) (string, error) {
	p := &partWriter{ctx: ctx, archive: a, part: make([]byte, 0, partBytes)}
	if err := write(p); err != nil {
		return "", err
	}
	if err := p.end(); err != nil {
		return "", err
	}
	list, err := json.Marshal(p.hashes)
	if err != nil {
		return "", err
	}
	return a.put(ctx, list)
}

func (a archive) put(ctx context.Context, data []byte) (hash string, err error) {
	err = a.store.Write(ctx, func(tx Tx) (err error) {
		hash, err = tx.PutBody("", data, time.Time{})
		return err
	})
	return hash, err
}

func (a archive) Open(ctx context.Context, ref string) (io.Reader, error) {
	list, err := a.body(ctx, ref)
	if err != nil {
		return nil, err
	}
	j := &partReader{ctx: ctx, archive: a}
	if err := json.Unmarshal(list, &j.hashes); err != nil {
		return nil, fmt.Errorf("the list of parts %s: %w", ref, err)
	}
	return j, nil
}

func (a archive) body(ctx context.Context, hash string) ([]byte, error) {
	data, err := a.store.Body(ctx, "", hash)
	if err == nil && data == nil {
		err = plugin.Errorf(plugin.CodeUnavailable, "the database lacks %s, which is part of a package: register the package again", hash)
	}
	return data, err
}

// A partWriter stores what is written to it in bodies of partBytes each.
type partWriter struct {
	ctx     context.Context
	archive archive
	part    []byte
	hashes  []string
}

func (p *partWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		taken := min(len(b)-n, partBytes-len(p.part))
		p.part = append(p.part, b[n:n+taken]...)
		n += taken
		if len(p.part) < partBytes {
			continue
		}
		if err := p.end(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// end stores the last part, unless it is empty.
func (p *partWriter) end() error {
	if len(p.part) == 0 {
		return nil
	}
	hash, err := p.archive.put(p.ctx, p.part)
	p.hashes, p.part = append(p.hashes, hash), p.part[:0]
	return err
}

// A partReader reads the parts of a package one after the other.
type partReader struct {
	ctx     context.Context
	archive archive
	part    []byte
	hashes  []string // of the parts that are still to be read
}

func (j *partReader) Read(b []byte) (n int, err error) {
	for len(j.part) == 0 {
		if len(j.hashes) == 0 {
			return 0, io.EOF
		}
		if j.part, err = j.archive.body(j.ctx, j.hashes[0]); err != nil {
			return 0, err
		}
		j.hashes = j.hashes[1:]
	}
	n = copy(b, j.part)
	j.part = j.part[n:]
	return n, nil
}
