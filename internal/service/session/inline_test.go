package session_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// Up to the bound artifacts are in the store, and above it among the blobs. To
// who reads them there is no difference.
func TestSmallArtifactsAreInTheStore(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	for _, test := range []struct{ size, blobs int }{
		{0, 0}, {1, 0}, {session.MaxInline, 0}, {session.MaxInline + 1, 1}, {3 * session.MaxInline, 2},
	} {
		data := strings.Repeat("x", test.size)
		a := b.add(t, s, data, session.Add{Name: "x"})
		if n := b.blobs(t); a.Size != int64(test.size) || n != test.blobs {
			t.Errorf("%d bytes: it has %d, and %d blobs are kept, want %d", test.size, a.Size, n, test.blobs)
		}
		if got := b.read(t, s, a); got != data {
			t.Errorf("%d bytes: %d others are read", test.size, len(got))
		}
		v, err := b.View(t.Context(), "t", s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(v.Path(a)); string(got) != data || err != nil {
			t.Errorf("%d bytes: in the view are %d others, %v", test.size, len(got), err)
		}
	}
}

// read returns the bytes of an artifact.
func (b *bundle) read(t *testing.T, in session.Session, a session.Artifact) string {
	t.Helper()
	r, err := b.Open(t.Context(), "t", in.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Error(err)
	}
	return string(data)
}

// A small artifact waits for the disk once, for its row: nothing of it is a file.
func TestASmallArtifactTouchesNoBlobs(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(o *session.Options) { o.Blobs = noBlobs{} })
	s := b.create(t, "t")
	a := b.add(t, s, "small", session.Add{Name: "a.txt"})
	if got := b.read(t, s, a); got != "small" {
		t.Errorf("it reads %q", got)
	}
	if err := b.Delete(t.Context(), "t", s.ID); err != nil {
		t.Error(err)
	}
}

// noBlobs are blobs that a test must not use.
type noBlobs struct{ blob.Store }

func (noBlobs) URI(string) string { panic("a small artifact is no blob") }

// The bytes go with their session, also where others have the same: each has
// its own, and those among the blobs stay with whom they belong to.
func TestInlineBytesGoWithTheirSession(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	large := session.New(func() session.Options { o := b.Options; o.MaxInline = -1; return o }())
	one, two, three := b.create(t, "t"), b.create(t, "t"), b.create(t, "t")
	b.add(t, one, "same", session.Add{Name: "a"})
	kept := b.add(t, two, "same", session.Add{Name: "a"})
	if _, err := large.Add(ctx, "t", three.ID, strings.NewReader("same"), session.Add{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []struct {
		id    string
		blobs int
	}{{one.ID, 1}, {three.ID, 0}} { // then the one artifact there is has its bytes with it
		if err := b.Delete(ctx, "t", gone.id); err != nil {
			t.Fatal(err)
		}
		if n := b.blobs(t); n != gone.blobs {
			t.Errorf("%d blobs are left, want %d", n, gone.blobs)
		}
	}
	if got := b.read(t, two, kept); got != "same" {
		t.Errorf("the other's reads %q", got)
	}
	var rows int
	if err := b.database(t).QueryRow(`SELECT count(*) FROM artifacts WHERE data IS NOT NULL`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d artifacts have bytes, %v", rows, err)
	}
}

// database opens the store's file beside it.
func (b *bundle) database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.home, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// What was changed in the database is not believed either.
func TestInlineBytesThatChangedAreNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	ctx := t.Context()
	a := b.add(t, s, "genuine", session.Add{Name: "a.txt"})
	if _, err := b.database(t).Exec(`UPDATE artifacts SET data = ?`, []byte("changed")); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(ctx, "t", s.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(r)
	wantCode(t, "reading them", err, plugin.CodeInternal, a.ID)
	_, err = b.View(ctx, "t", s.ID)
	wantCode(t, "the view", err, plugin.CodeInternal, "backup")
}

// A reader whose end is an error leaves nothing, whichever side of the bound it
// is on, and one that ends with its bytes is read once.
func TestTheEndOfTheBytesIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	for _, size := range []int{10, session.MaxInline, session.MaxInline + 1} {
		var read bytes.Buffer
		r := io.TeeReader(&trickle{left: size}, &read)
		a, err := b.Add(t.Context(), "t", s.ID, r, session.Add{Name: "x"})
		if err != nil || int(a.Size) != size || read.Len() != size {
			t.Errorf("%d bytes: it is %+v, %v; %d were read", size, a, err, read.Len())
		}
	}
}

// A trickle gives few bytes at a time.
type trickle struct{ left int }

func (r *trickle) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left, 1000)
	clear(p[:n])
	r.left -= n
	return n, nil
}

// A commit that fails leaves neither row nor bytes.
func TestARefusedRowHasNoBytes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	refused := errors.New("refused")
	err := b.st.Write(context.Background(), func(tx store.Tx) error {
		if _, _, _, err := tx.InsertArtifact(store.ArtifactRow{Tenant: "t", SessionID: s.ID, ID: "art_1", Labels: []string{}, Parents: []string{}}, []byte("x")); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if data, err := b.st.ArtifactData(t.Context(), "t", s.ID, "art_1"); data != nil || err != nil {
		t.Errorf("it has %q, %v", data, err)
	}
}
