package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/s3blob" // s3://
	"gocloud.dev/gcerrors"
)

var _ Store = (*bucket)(nil)

// A bucket keeps blobs in an object store, which any number of nodes may share.
type bucket struct {
	*blob.Bucket
	uri     string // of the bucket, with the prefix
	scratch string // where bytes are staged
}

func openBucket(ctx context.Context, at, scratch string) (Store, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	prefix := q.Get("prefix")
	q.Del("prefix")
	if validation := "response_checksum_validation"; u.Scheme == "s3" && !q.Has(validation) {
		q.Set(validation, "when_required") // what is read is held against its hash here
	}
	u.RawQuery = q.Encode()
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("opening the bucket %s: %w", u.Host, err)
	}
	if prefix != "" {
		b = blob.PrefixedBucket(b, prefix)
	}
	return &bucket{Bucket: b, uri: u.Scheme + "://" + u.Host + "/" + prefix, scratch: scratch}, nil
}

// Put implements [Store].
func (b *bucket) Put(ctx context.Context, r io.Reader) (string, int64, error) { return put(ctx, b, r) }

// Stage implements [Store].
func (b *bucket) Stage(ctx context.Context, r io.Reader) (*Staged, error) {
	if err := os.MkdirAll(b.scratch, 0o700); err != nil {
		return nil, err
	}
	sweep(b.scratch)
	s, err := stage(ctx, b.scratch, r)
	if err != nil {
		return nil, err
	}
	s.keep = func(ctx context.Context) error { return b.keep(ctx, s) }
	return s, nil
}

// keep uploads what was staged, unless it is there already.
func (b *bucket) keep(ctx context.Context, s *Staged) error {
	if a, err := b.Attributes(ctx, s.SHA256); err == nil && a.Size == s.Size {
		return nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.Upload(ctx, s.SHA256, f, &blob.WriterOptions{ContentType: "application/octet-stream"})
}

// Open implements [Store].
func (b *bucket) Open(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	if err := checkHash(sha256); err != nil {
		return nil, err
	}
	r, err := b.NewReader(ctx, sha256, nil)
	if missing(err) {
		var aside string
		if aside, err = b.aside(ctx, sha256); err == nil {
			r, err = b.NewReader(ctx, aside, nil)
		}
	}
	if err != nil {
		return nil, meaning(sha256, err)
	}
	return newChecked(r, sha256), nil
}

// Stat implements [Store].
func (b *bucket) Stat(ctx context.Context, sha256 string) (int64, error) {
	if err := checkHash(sha256); err != nil {
		return 0, err
	}
	a, err := b.Attributes(ctx, sha256)
	if missing(err) {
		var aside string
		if aside, err = b.aside(ctx, sha256); err == nil {
			a, err = b.Attributes(ctx, aside)
		}
	}
	if err != nil {
		return 0, meaning(sha256, err)
	}
	return a.Size, nil
}

// Delete implements [Store]. There is no renaming in a bucket; a copy stands
// for it, so that a blob which cannot be copied stays.
func (b *bucket) Delete(ctx context.Context, sha256 string, needed func() (bool, error)) error {
	if err := checkHash(sha256); err != nil {
		return err
	}
	aside := sha256 + gone + uuid.NewString()
	if err := b.Copy(ctx, aside, sha256, nil); missing(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("setting blob %s aside: %w", sha256, err)
	}
	if err := b.remove(ctx, sha256); err != nil {
		return errors.Join(err, b.remove(ctx, aside))
	}
	keep, err := false, error(nil)
	if needed != nil {
		keep, err = needed()
	}
	if keep || err != nil {
		if back := b.Copy(ctx, sha256, aside, nil); back != nil {
			return errors.Join(err, fmt.Errorf("bringing blob %s back: %w", sha256, back)) // it is found where it is
		}
	}
	return errors.Join(err, b.remove(ctx, aside))
}

// aside returns the name under which a blob is found that was being deleted.
func (b *bucket) aside(ctx context.Context, sha256 string) (string, error) {
	object, err := b.List(&blob.ListOptions{Prefix: sha256 + gone}).Next(ctx)
	if err == io.EOF {
		return "", wrap(sha256, ErrMissing)
	}
	if err != nil {
		return "", err
	}
	return object.Key, nil
}

func (b *bucket) remove(ctx context.Context, key string) error {
	if err := b.Bucket.Delete(ctx, key); err != nil && !missing(err) {
		return err
	}
	return nil
}

// URI implements [Store].
func (b *bucket) URI(sha256 string) string { return b.uri + sha256 }

func missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

// meaning says which blob an error is of.
func meaning(sha256 string, err error) error {
	switch {
	case errors.Is(err, ErrMissing):
		return err
	case missing(err):
		return wrap(sha256, ErrMissing)
	}
	return wrap(sha256, err)
}
