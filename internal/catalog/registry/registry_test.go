package registry_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A catalog keeps records in memory and writes down what was done.
type catalog struct {
	mu      sync.Mutex
	records map[string]registry.Record
	log     []string
	fail    error

	asked    int // how often for its version
	approval registry.Approval
}

// versionsAsked is how often the catalog was asked for its version.
func (c *catalog) versionsAsked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *catalog) Plugins(context.Context) ([]registry.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.records), func(a, b registry.Record) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	}), nil
}

func (c *catalog) write(entry string, do func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.log = append(c.log, entry)
	if c.records == nil {
		c.records = map[string]registry.Record{}
	}
	do()
	return nil
}

func (c *catalog) Version(context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return int64(len(c.log)), c.fail
}

// keyOf is what tells a record from all others.
func keyOf(r registry.Record) string {
	if r.Beside {
		return r.Name + "@" + r.Version + " beside"
	}
	return r.Name + "@" + r.Version
}

func (c *catalog) Put(_ context.Context, r registry.Record, kind plugin.EntryKind) error {
	return c.write(string(kind)+" "+keyOf(r), func() { c.records[keyOf(r)] = r })
}

func (c *catalog) SetState(_ context.Context, r registry.Record, s registry.State, kind plugin.EntryKind) error {
	return c.write(string(kind)+" "+keyOf(r), func() {
		now := c.records[keyOf(r)]
		now.State = s
		c.records[keyOf(r)] = now
	})
}

func (c *catalog) Delete(_ context.Context, r registry.Record) error {
	return c.write("delete "+keyOf(r), func() { delete(c.records, keyOf(r)) })
}

func (c *catalog) Approve(_ context.Context, waited, now registry.Record, a registry.Approval) error {
	return c.write("plugin.approved "+keyOf(now), func() {
		delete(c.records, keyOf(waited))
		c.records[keyOf(now)] = now
		c.approval = a
	})
}

func (c *catalog) entries() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.log, ", ")
}

// A bundle is a registry with all it stands on.
type bundle struct {
	*registry.Registry
	t         testing.TB
	home      string
	catalog   *catalog
	options   registry.Options
	clock     atomic.Int64 // seconds added to the time
	described atomic.Int64 // how often code was asked
}

func open(t testing.TB, change ...func(*registry.Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, home: t.TempDir(), catalog: &catalog{}}
	b.options = registry.Options{
		Dir: filepath.Join(b.home, "packages"), Catalog: b.catalog, Describe: b.describe, Approver: "ann",
		Now: func() time.Time { return time.Now().Add(time.Duration(b.clock.Load()) * time.Second) },
	}
	for _, c := range change {
		c(&b.options)
	}
	t.Cleanup(func() { // packages are read-only
		_ = filepath.WalkDir(b.home, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	b.reopen()
	return b
}

// reopen is what a restart of the host is.
func (b *bundle) reopen() {
	b.t.Helper()
	r, err := registry.Open(context.Background(), b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Registry = r
}

// describe answers with the describe.json beside the code, or the code itself
// where that is JSON; without one, the code does not know the question.
func (b *bundle) describe(_ context.Context, pkg plugin.Package, m *plugin.Manifest) (contract.Described, error) {
	b.described.Add(1)
	raw, err := os.ReadFile(filepath.Join(pkg.Dir, "describe.json"))
	if err != nil {
		raw, _ = os.ReadFile(filepath.Join(pkg.Dir, m.Runner.Entry))
	}
	switch text := strings.TrimSpace(string(raw)); {
	case text == "":
		return contract.Described{}, nil
	case text == "crash":
		return contract.Described{}, plugin.Errorf(plugin.CodeCrashed, "the plugin ended before it answered")
	case !strings.HasPrefix(text, "{"):
		return contract.Described{}, errors.New("no JSON")
	}
	var d contract.Described
	return d, json.Unmarshal(raw, &d)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// author writes a plugin with the operations given to a new directory.
func author(t testing.TB, name, version string, operations ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	write(t, filepath.Join(dir, "manifest.yaml"), manifest(name, version, operations...))
	write(t, filepath.Join(dir, "plugin.py"), "")
	return dir
}

func manifest(name, version string, operations ...string) string {
	text := fmt.Sprintf("name: %s\nversion: %s\noperations:\n", name, version)
	for _, op := range operations {
		text += fmt.Sprintf("  %s: {input: {type: object}, output: {type: string}}\n", op)
	}
	return text
}

// install registers and enables, or approves what is held, which must succeed.
func (b *bundle) install(path string) registry.Registered {
	b.t.Helper()
	one := b.register(path, registry.RegisterOptions{})
	ref := one.Name + "@" + one.Version
	if one.Held {
		one.Info = b.approve(ref)
	} else if info, err := b.Enable(context.Background(), ref); err != nil {
		b.t.Fatal(err)
	} else {
		one.Info = info
	}
	return one
}

// review returns what waits under ref, with what its code says.
func (b *bundle) review(ref string) registry.Review {
	b.t.Helper()
	review, err := b.Review(context.Background(), ref, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return review
}

func (b *bundle) approve(ref string) registry.Info {
	b.t.Helper()
	info, err := b.Approve(context.Background(), b.review(ref))
	if err != nil {
		b.t.Fatal(err)
	}
	return info
}

func (b *bundle) register(path string, o registry.RegisterOptions) registry.Registered {
	b.t.Helper()
	report, err := b.Register(context.Background(), path, o)
	if err != nil || len(report.Failed) > 0 || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
		b.t.Fatalf("registering %s: %+v, %v", path, report, err)
	}
	return report.Registered[0]
}

// resolved is a reference's answer as a line: version and operation, or the error.
func (b *bundle) resolved(ref string) string {
	target, err := b.Resolve(context.Background(), ref)
	if err != nil {
		return err.Error()
	}
	return target.Name() + "@" + target.Manifest.Version
}

func (b *bundle) expect(ref, want string) {
	b.t.Helper()
	for range 2 { // the second answer may be a remembered one
		if got := b.resolved(ref); got != want {
			b.t.Errorf("%s: got %q, want %q", ref, got, want)
		}
	}
}
