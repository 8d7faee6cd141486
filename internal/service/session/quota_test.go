package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// sparse makes a file of that length with nothing in it.
func sparse(t *testing.T, name string, length int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err := errors.Join(err, f.Truncate(length), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// onDisk returns the bytes of the files below a directory.
func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		sum += info.Size()
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return sum
}

func TestArtifactsOfASessionAndOfATenantHaveAQuota(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	b := newBundle(t, func(o *session.Options) { o.MaxArtifact, o.MaxSession, o.MaxTenant = 64*mib, 10*mib, 25*mib })
	ctx := t.Context()
	add := func(in session.Session, name string, length int64) error {
		tenant := "t"
		if name == "other" {
			tenant = "u"
		}
		_, err := b.AddFile(ctx, tenant, in.ID, sparse(t, name, length), session.Add{})
		return err
	}
	refused := func(err error, setting string) {
		t.Helper()
		if plugin.CodeOf(err) != plugin.CodeLimitExceeded || !strings.Contains(err.Error(), setting) {
			t.Errorf("it is %v, and not over %s", err, setting)
		}
	}
	one := b.create(t, "t")
	for _, name := range []string{"a", "b"} {
		if err := add(one, name, 4*mib); err != nil {
			t.Fatal(err)
		}
	}
	refused(add(one, "c", 4*mib), "limits.session_artifact_bytes")
	if err := add(one, "d", 2*mib); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
	refused(add(one, "e", 1), "limits.session_artifact_bytes") // a small one is kept elsewhere, and counts as well
	two, three := b.create(t, "t"), b.create(t, "t")
	if err := add(two, "a", 10*mib); err != nil {
		t.Fatal(err)
	}
	refused(add(three, "a", 6*mib), "limits.tenant_artifact_bytes")
	other := b.create(t, "u")
	if err := add(other, "other", 10*mib); err != nil {
		t.Errorf("another tenant is refused: %v", err)
	}
	if sum := onDisk(t, filepath.Join(b.home, "blobs")); sum > 30*mib {
		t.Errorf("%d bytes are on the disk", sum)
	}
	if err := b.Delete(ctx, "t", two.ID); err != nil {
		t.Fatal(err)
	}
	if err := add(three, "a", 6*mib); err != nil {
		t.Errorf("after another session was deleted: %v", err)
	}
	// A host that starts knows what there is.
	again := session.New(b.Options)
	if _, err := again.AddFile(ctx, "t", one.ID, sparse(t, "f", mib), session.Add{}); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Errorf("after a new start: %v", err)
	}
}

// However many are registered at a time, no more is kept, nor on its way.
func TestAQuotaHoldsForWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	b := newBundle(t, func(o *session.Options) { o.MaxArtifact, o.MaxSession = 64*mib, 10*mib })
	in := b.create(t, "t")
	var all sync.WaitGroup
	for n := range 16 {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(strings.Repeat(string(rune('a'+n)), 3*mib)), 0o600); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if _, err := b.AddFile(t.Context(), "t", in.ID, path, session.Add{}); err != nil && plugin.CodeOf(err) != plugin.CodeLimitExceeded {
				t.Error(err)
			}
		})
	}
	all.Wait()
	kept, err := b.Artifacts(t.Context(), "t", in.ID)
	if err != nil || len(kept) > 3 {
		t.Errorf("%d artifacts of 3 MiB are kept, %v", len(kept), err)
	}
	if sum := onDisk(t, filepath.Join(b.home, "blobs")); sum > 10*mib {
		t.Errorf("%d bytes are on the disk", sum)
	}
	for n := range 4 { // what was refused left nothing behind that counts
		if _, err := b.Add(t.Context(), "t", in.ID, strings.NewReader(strings.Repeat("z", (10-3*len(kept))*mib/4)), session.Add{Name: string(rune('a' + n))}); err != nil {
			t.Errorf("what fits is refused: %v", err)
		}
	}
}
