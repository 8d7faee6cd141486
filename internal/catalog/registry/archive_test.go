package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// An archive keeps packages in memory.
type archive struct {
	mu     sync.Mutex
	kept   map[string][]byte
	opened int
	fail   error

	meanwhile func() // is run once, while something is being kept
}

func (a *archive) Keep(_ context.Context, write func(io.Writer) error) (string, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return "", err
	}
	if do := a.meanwhile; do != nil {
		a.meanwhile = nil
		do()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := sha256.Sum256(b.Bytes())
	ref := "sha256:" + hex.EncodeToString(sum[:])
	a.kept[ref] = b.Bytes()
	return ref, nil
}

func (a *archive) Open(_ context.Context, ref string) (io.Reader, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	if a.fail != nil {
		return nil, a.fail
	}
	return bytes.NewReader(a.kept[ref]), nil
}

// nodes are two registries with directories of their own that share a catalog
// and an archive.
func nodes(t *testing.T, change ...func(*registry.Options)) (one, two *bundle, shared *archive) {
	t.Helper()
	shared = &archive{kept: map[string][]byte{}}
	one = open(t, append(change, func(o *registry.Options) { o.Archive = shared })...)
	two = open(t, append(change, func(o *registry.Options) { o.Archive, o.Catalog = shared, one.catalog })...)
	return one, two, shared
}

// target returns what a reference stands for on a node that has reloaded the catalog.
func (b *bundle) target(ref string) *plugin.Target {
	b.t.Helper()
	if err := b.Refresh(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	target, err := b.Resolve(context.Background(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	return target
}

// packages are the names in a node's directory of packages.
func (b *bundle) packages() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.options.Dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// What one node registered is on another when it is launched there, file for
// file, and is fetched once.
func TestAPackageComesFromTheArchive(t *testing.T) {
	t.Parallel()
	one, two, shared := nodes(t)
	dir := author(t, "p", "1.0.0", "x")
	deep := filepath.Join(strings.Repeat("d", 120), strings.Repeat("é", 60), "f.txt")
	write(t, filepath.Join(dir, deep), strings.Repeat("text", 1<<18))
	write(t, filepath.Join(dir, "empty"), "")
	write(t, filepath.Join(dir, "run"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	registered := one.install(dir)
	if err := os.Rename(one.options.Dir, one.options.Dir+"-away"); err != nil {
		t.Fatal(err)
	}

	target := two.target("p")
	if filepath.Dir(target.Package.Dir) != two.options.Dir {
		t.Errorf("its directory is %s", target.Package.Dir)
	}
	if got := two.packages(); len(got) != 0 {
		t.Errorf("fetched before it was needed: %q", got)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := two.CheckPackage(t.Context(), target.Package); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if shared.opened != 1 {
		t.Errorf("fetched %d times", shared.opened)
	}
	if got := two.packages(); len(got) != 1 || "sha256:"+got[0] != registered.Digest {
		t.Errorf("packages %q", got)
	}
	for name, mode := range map[string]fs.FileMode{deep: 0o444, "empty": 0o444, "run": 0o555, ".": 0o555 | fs.ModeDir} {
		if info, err := os.Stat(filepath.Join(target.Package.Dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if got, want := one.catalog.entries(), "plugin.registered p@1.0.0, plugin.enabled p@1.0.0"; got != want {
		t.Errorf("ledger %s, want %s", got, want)
	}
}

// Each node looks at its own files; what is changed on one is held on all.
func TestTamperingIsDetectedOnEachNode(t *testing.T) {
	t.Parallel()
	one, two, _ := nodes(t)
	dir := author(t, "p", "1.0.0", "x")
	one.install(dir)
	target := two.target("p")
	if err := two.CheckPackage(t.Context(), target.Package); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(target.Package.Dir, 0o755)
	write(t, target.Package.Dir+"/more.py", "")
	held := "quarantined: p@1.0.0 is held: its files were changed after it was registered; register it again and enable it"
	if err := two.CheckPackage(t.Context(), target.Package); err == nil || err.Error() != held {
		t.Errorf("%v", err)
	}
	if err := one.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.expect("p", held)
	if again := two.register(dir, registry.RegisterOptions{Enable: true}); again.State != registry.Active {
		t.Errorf("%+v", again)
	}
	for _, b := range []*bundle{one, two} {
		if err := b.CheckPackage(t.Context(), b.target("p").Package); err != nil {
			t.Error(err)
		}
	}
}

// What an archive gives back is used only if it is what was registered.
func TestAChangedArchiveIsNotUsed(t *testing.T) {
	t.Parallel()
	archived := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			_, _ = io.CopyN(w, strings.NewReader(strings.Repeat("x", 100)), h.Size)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, change := range map[string]func(good []byte) []byte{
		"nothing":             func([]byte) []byte { return nil },
		"no tar":              func([]byte) []byte { return bytes.Repeat([]byte("x"), 2048) },
		"cut off in a file":   func(good []byte) []byte { return good[:513] },
		"cut off in a header": func(good []byte) []byte { return good[:100] },
		"another content":     func(good []byte) []byte { return bytes.Replace(good, []byte("version: 1"), []byte("version: 2"), 1) },
		"a file more":         func(good []byte) []byte { return append(archived(&tar.Header{Name: "a", Size: 1})[:1024], good...) },
		"a way out":           func([]byte) []byte { return archived(&tar.Header{Name: "../out", Size: 1}) },
		"an absolute path":    func([]byte) []byte { return archived(&tar.Header{Name: "/tmp/out", Size: 1}) },
		"a symbolic link":     func([]byte) []byte { return archived(&tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/"}) },
		"a file twice":        func([]byte) []byte { return archived(&tar.Header{Name: "a", Size: 1}, &tar.Header{Name: "a", Size: 1}) },
		"a file within a file": func([]byte) []byte {
			return archived(&tar.Header{Name: "a", Size: 1}, &tar.Header{Name: "a/b", Size: 1})
		},
		"too large a file": func([]byte) []byte {
			var b bytes.Buffer
			_ = tar.NewWriter(&b).WriteHeader(&tar.Header{Name: "a", Size: 65 << 20})
			return b.Bytes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, shared := nodes(t)
			one.install(author(t, "p", "1.0.0", "x"))
			for ref, good := range shared.kept {
				shared.kept[ref] = change(good)
			}
			target := two.target("p")
			if err := two.CheckPackage(t.Context(), target.Package); plugin.CodeOf(err) != plugin.CodeQuarantined {
				t.Errorf("%v", err)
			}
			if got := two.packages(); len(got) != 0 {
				t.Errorf("it left %q", got)
			}
			if _, err := os.Stat(filepath.Join(two.home, "out")); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

// An archive that cannot be read at the moment holds nothing.
func TestAnArchiveThatIsAwayHoldsNothing(t *testing.T) {
	t.Parallel()
	one, two, shared := nodes(t)
	one.install(author(t, "p", "1.0.0", "x"))
	target := two.target("p")
	shared.fail = errors.New("the database is away")
	if err := two.CheckPackage(t.Context(), target.Package); !errors.Is(err, shared.fail) || plugin.CodeOf(err) == plugin.CodeQuarantined {
		t.Errorf("%v", err)
	}
	shared.fail = nil
	if err := two.CheckPackage(t.Context(), target.Package); err != nil {
		t.Error(err)
	}
}

// Records of earlier releases have the directory of the node that made them,
// and no archive: nodes that have the package use it, others say how to bring it.
func TestAPackageOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	shared := &archive{kept: map[string][]byte{}}
	one := open(t)
	dir := author(t, "p", "1.0.0", "x")
	registered := one.install(dir)
	if record := one.catalog.records["p@1.0.0"]; record.Path != registered.Path || record.Archive != "" {
		t.Fatalf("%+v", record)
	}
	share := func(o *registry.Options) { o.Archive, o.Catalog = shared, one.catalog }
	two, three := open(t, share), open(t, share)
	if err := one.CheckPackage(t.Context(), one.target("p").Package); err != nil {
		t.Error(err)
	}
	place := filepath.Join(two.options.Dir, strings.TrimPrefix(registered.Digest, "sha256:"))
	want := "unavailable: the files of p@1.0.0 are not on this node, in " + place + ", and the database does not keep them: `mortise plugins register` brings them, given their directory"
	if err := two.CheckPackage(t.Context(), two.target("p").Package); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if again := two.register(dir, registry.RegisterOptions{}); again.State != registry.Active || again.Path != place {
		t.Errorf("%+v", again)
	}
	for _, b := range []*bundle{two, three} {
		if err := b.CheckPackage(t.Context(), b.target("p").Package); err != nil {
			t.Error(err)
		}
	}
	if again := two.register(dir, registry.RegisterOptions{}); !again.Unchanged {
		t.Errorf("%+v", again)
	}
}

// What a review compares is fetched as well.
func TestAnotherNodeApproves(t *testing.T) {
	t.Parallel()
	one, two, _ := nodes(t)
	dir := author(t, "p", "1.0.0", "x")
	one.install(dir)
	write(t, filepath.Join(dir, "manifest.yaml"), manifest("p", "1.1.0", "x", "y"))
	if held := one.register(dir, registry.RegisterOptions{}); !held.Held {
		t.Fatalf("%+v", held)
	}
	here, there := one.review("p@1.1.0"), two.review("p@1.1.0")
	if here.Hash != there.Hash || len(two.packages()) != 2 {
		t.Errorf("%s and %s, packages %q", here.Hash, there.Hash, two.packages())
	}
	two.approve("p@1.1.0")
	if target := one.target("p/y"); target.Manifest.Version != "1.1.0" {
		t.Errorf("%+v", target.Manifest)
	}
}

func TestWhatIsTooLargeToShareIsRefused(t *testing.T) {
	t.Parallel()
	one, _, shared := nodes(t)
	dir := author(t, "p", "1.0.0", "x")
	write(t, filepath.Join(dir, "model"), "")
	if err := os.Truncate(filepath.Join(dir, "model"), 64<<20+1); err != nil {
		t.Fatal(err)
	}
	_, err := one.Register(t.Context(), dir, registry.RegisterOptions{})
	want := "invalid_input: a package is at most 64 MiB large where nodes share a database, which keeps it for all of them; this one has 65 MiB: let it fetch what is large when it runs"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if len(shared.kept) != 0 || len(one.packages()) != 0 || one.catalog.entries() != "" {
		t.Errorf("it left %d archives, packages %q, entries %s", len(shared.kept), one.packages(), one.catalog.entries())
	}
	open(t).install(dir) // on one node it may
}

// A node unpacks what it carries itself, and writes nothing down. One that
// carries something else fetches it.
func TestBundledPluginsOnSeveralNodes(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"text/manifest.yaml": {Data: []byte(manifest("text", "1.0.0", "count"))}, "text/plugin.py": {}}
	one, two, shared := nodes(t, func(o *registry.Options) { o.Bundled = tree })
	if got, want := one.catalog.entries(), "plugin.registered text@1.0.0"; got != want {
		t.Errorf("ledger %s, want %s", got, want)
	}
	if got := two.packages(); len(got) != 1 {
		t.Errorf("packages %q", got)
	}
	if err := two.CheckPackage(t.Context(), two.target("text").Package); err != nil || shared.opened != 0 {
		t.Errorf("%v, fetched %d times", err, shared.opened)
	}
	three := open(t, func(o *registry.Options) { o.Archive, o.Catalog = shared, one.catalog })
	if err := three.CheckPackage(t.Context(), three.target("text").Package); err != nil || shared.opened != 1 {
		t.Errorf("%v, fetched %d times", err, shared.opened)
	}
}

// Of two nodes that start at once the slower finds what the faster wrote.
func TestTwoNodesBundleAtOnce(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"text/manifest.yaml": {Data: []byte(manifest("text", "1.0.0", "count"))}, "text/plugin.py": {}}
	shared, records := &archive{kept: map[string][]byte{}}, &catalog{}
	start := func() *bundle {
		return open(t, func(o *registry.Options) { o.Archive, o.Catalog, o.Bundled = shared, records, tree })
	}
	var faster *bundle
	shared.meanwhile = func() { faster = start() }
	slower := start()
	if got, want := records.entries(), "plugin.registered text@1.0.0"; got != want {
		t.Errorf("ledger %s, want %s", got, want)
	}
	for _, b := range []*bundle{faster, slower} {
		if err := b.CheckPackage(t.Context(), b.target("text").Package); err != nil {
			t.Error(err)
		}
	}
	if shared.opened != 0 {
		t.Errorf("fetched %d times", shared.opened)
	}
}
