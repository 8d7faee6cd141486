package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/service/blob"
)

// A View is a directory in which the artifacts of a session are read-only files.
type View struct{ Dir string }

// Path is where an artifact is in the view.
func (v View) Path(a Artifact) string { return filepath.Join(v.Dir, a.ID, a.Name) }

// A linker is a store whose blobs are files, which can have more names.
type linker interface {
	Link(ctx context.Context, sha256, path string) error
}

// View makes sure that every artifact which a session has by now is in its
// view. What is there stays, so that a process may read it meanwhile.
func (s *Sessions) View(ctx context.Context, tenant, session string) (View, error) {
	seen, err := s.See(ctx, tenant, session)
	return seen.View, err
}

// A Seen is a session with what is in it.
type Seen struct {
	Session
	Artifacts []Artifact // the oldest first
	View      View       // which shows them all
}

// See is View, and returns as well what there is to see.
func (s *Sessions) See(ctx context.Context, tenant, session string) (Seen, error) {
	in, err := find(ctx, s.Store, tenant, session)
	if err != nil {
		return Seen{}, err
	}
	all, err := s.of(ctx, in)
	if err != nil {
		return Seen{}, err
	}
	v := View{s.viewDir(tenant, in.ID)}
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return Seen{}, err
	}
	for i := range all {
		if err := s.show(ctx, tenant, v, &all[i], nil); err != nil {
			return Seen{}, err
		}
	}
	return Seen{Session: sessionOf(in), Artifacts: all, View: v}, nil
}

// show brings an artifact into the view, if it is not there. Its bytes may be
// given.
func (s *Sessions) show(ctx context.Context, tenant string, v View, a *Artifact, data []byte) error {
	if v.has(a) {
		return nil
	}
	// Another process may be faster.
	if err := s.place(ctx, tenant, v, a, data); err != nil && !v.has(a) {
		return unreadable(*a, err)
	}
	return nil
}

// has reports whether an artifact is in the view.
func (v View) has(a *Artifact) bool {
	info, err := os.Lstat(v.Path(*a))
	return err == nil && info.Mode().IsRegular() && info.Size() == a.Size
}

// place brings an artifact into the view: by a link where that can be, and else
// as a copy.
func (s *Sessions) place(ctx context.Context, tenant string, v View, a *Artifact, data []byte) error {
	dir := filepath.Dir(v.Path(*a))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // its contents may have been changed
		return err
	}
	err := errNoLinks
	if files, ok := s.Blobs.(linker); ok && !a.inline {
		if err = files.Link(ctx, a.SHA256, v.Path(*a)); err == nil {
			err = os.Chmod(v.Path(*a), s.mode())
		}
	}
	if err != nil && !errors.Is(err, blob.ErrMissing) && !errors.Is(err, blob.ErrDamaged) && ctx.Err() == nil {
		err = s.copy(ctx, tenant, v, a, data)
	}
	if err == nil {
		err = s.date(ctx, tenant, v, a, data)
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, 0o500)
}

var errNoLinks = errors.New("blobs are not files here")

// copy is place for bytes that are no file. What is read wrong, or in part,
// never has the artifact's name.
func (s *Sessions) copy(ctx context.Context, tenant string, v View, a *Artifact, data []byte) (err error) {
	r := io.NopCloser(bytes.NewReader(data))
	if data == nil {
		if r, err = s.open(ctx, tenant, *a); err != nil {
			return err
		}
	}
	defer r.Close()
	f, err := os.CreateTemp(v.Dir, ".new-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Chmod(s.mode()), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), v.Path(*a))
}

// mode is that of files in a view.
func (s *Sessions) mode() os.FileMode {
	if s.Walled != nil && s.Walled() {
		return 0o600
	}
	return 0o400
}

// viewDir is where the view of a session is. A tenant may have any name, so
// that it is a hash of it which is part of the path.
func (s *Sessions) viewDir(tenant, session string) string {
	sum := sha256.Sum256([]byte(tenant))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8]), session)
}
