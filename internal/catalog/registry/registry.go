// Package registry installs plugins, keeps them and says which one is meant.
//
// A package of files is known by its digest. [Registry.Register] copies it
// into the host's own directory, read-only; with Dev it links the author's
// directory instead and follows every change there. [Registry.Resolve] turns a
// reference such as mail/send@^1 into one operation of one version in one
// exact package; nothing that is not registered can be resolved, so nothing
// else is ever called. [Registry.CheckPackage] holds a package whose files are
// no longer those that were registered, and fetches one that another node has.
//
// A plugin that was approved once and comes back as anything else waits:
// [Registry.Review] says what is different, and [Registry.Approve] lets
// exactly that be called. What was approved before stays as it is.
//
// Records are kept by a [Catalog]; plugins that the host's configuration binds
// are kept nowhere else. Whether a call is allowed is not decided here; see
// package policy.
package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all" // the contracts that there are
	runtimecontract "github.com/mortise-dev/mortise/internal/catalog/contract/runtime"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// A Registry holds all plugins. It is safe for concurrent use and owns no
// goroutines.
//
// Resolving reads one immutable index and never blocks, except for one caller that
// polls the catalog from time to time for changes of other processes. Changes are
// serialised: each reloads the catalog, writes to it, and then replaces the old index
// with a new one.
type Registry struct {
	catalog   Catalog
	archive   Archive // nil for one node
	describe  Describe
	define    Define
	trust     signed.Trust
	principal string
	now       func() time.Time
	packages  packageStore
	held      func(ctx context.Context, digest string) (bool, error)
	complete  func() bool

	turn  chan struct{} // holds one token while a change is being made
	index atomic.Pointer[index]
	seen  seen

	builtin builtin

	checksMu sync.Mutex
	checks   map[string]*check // by digest
}

// Describe asks a plugin's code what it does. It returns the zero
// [contract.Described] for code that does not know the question.
type Describe func(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (contract.Described, error)

// Options are what a registry needs.
type Options struct {
	Dir      string // where packages are installed; made if it is not there
	Catalog  Catalog
	Archive  Archive                   // where several nodes have packages from; nil for one node
	Bindings []runtimecontract.Binding // plugins of the runtime protocol
	Approver string                    // who approves what is registered, enabled and approved here
	Describe Describe
	Define   Define       // nil for a host that mounts no servers
	Trust    signed.Trust // whose signatures are believed

	// Bundled holds plugins that are part of the host, each in a directory at
	// the top; nil for none. BundledDirs names the directories, where it is
	// not all that have a manifest.
	Bundled     fs.FS
	BundledDirs []string

	// Held reports whether a plugin that another registry keeps has a package of the same
	// directory; nil where no other keeps any. Turn holds one token while one of them makes
	// a change: they share it. Where it is nil the registry has its own.
	Held func(ctx context.Context, digest string) (bool, error)
	Turn chan struct{}

	// Complete reports whether plugins run in a complete sandbox; they do not where it is nil.
	Complete func() bool

	// Builtin are plugins that the host carries out itself.
	Builtin []*plugin.Manifest

	Now func() time.Time // time.Now unless it is set
}

// Open reads the catalog, installs the bundled plugins that are not there yet
// and takes up the bindings, a wrong one of which is an error. No plugin's
// code is run.
func Open(ctx context.Context, o Options) (*Registry, error) {
	if o.Catalog == nil || o.Dir == "" || o.Approver == "" {
		return nil, errors.New("opening the registry: it needs a catalog, a directory and an approver")
	}
	packages, err := openPackageStore(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of packages: %w", err)
	}
	r := &Registry{
		catalog: o.Catalog, archive: o.Archive, describe: o.Describe, define: o.Define, trust: o.Trust, principal: o.Approver, now: o.Now, packages: packages,
		held: o.Held, complete: o.Complete, turn: o.Turn, seen: seen{turn: make(chan struct{}, 1)}, checks: map[string]*check{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.turn == nil {
		r.turn = make(chan struct{}, 1)
	}
	if r.builtin, err = newBuiltin(o.Builtin); err != nil {
		return nil, err
	}
	r.index.Store(&index{plugins: map[string][]*version{}})
	if err := r.bind(o.Bindings); err != nil {
		return nil, err
	}
	if err := r.keepUp(ctx, r.now()); err != nil {
		return nil, err
	}
	if o.Bundled != nil {
		if err := r.bundle(ctx, o.Bundled, o.BundledDirs); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Refresh takes up what other processes changed in the catalog.
func (r *Registry) Refresh(ctx context.Context) error {
	return r.change(ctx, func() error { return nil })
}

// change runs one change in turn, on an index that is up to date.
func (r *Registry) change(ctx context.Context, do func() error) error {
	if ctx.Err() != nil { // select would toss a coin
		return context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := r.reload(ctx); err != nil {
		return err
	}
	return do()
}

// reload makes an index of what the catalog holds; releases that have not
// changed are taken over with all that is known of them. The caller has the turn.
func (r *Registry) reload(ctx context.Context) error {
	records, err := r.catalog.Plugins(ctx)
	if err != nil {
		return fmt.Errorf("reading the catalog of plugins: %w", err)
	}
	before := r.index.Load()
	after, same, count := &index{plugins: map[string][]*version{}}, true, 0
	for v := range before.all {
		if v.record.Source == SourceConfig {
			after.add(v)
			count++
		}
	}
	for _, record := range records {
		if !record.Dev { // whatever node registered it
			record.Path = r.packages.path(record.Digest)
		}
		if bound := after.versions(record.Name); len(bound) > 0 && bound[0].record.Source == SourceConfig {
			return fmt.Errorf("the configuration binds %s, and a plugin of that name is registered: one of them must go", record.Name)
		}
		old := before.find(record.Name, record.Version, record.Beside)
		v := &version{state: record.State}
		if old != nil && old.is(record) {
			v.release = old.release
			same = same && old.state == record.State
		} else {
			same = false
			if v.release, err = newRelease(record, r.liveOf(record, old)); err != nil {
				return fmt.Errorf("reading the catalog of plugins: %w", err)
			}
		}
		after.add(v)
		count++
	}
	for range before.all {
		count--
	}
	if !same || count != 0 { // else keep the answers that are remembered
		r.index.Store(after)
	}
	return nil
}

// is reports whether a record, its state aside, is the one this release was made of.
func (r *release) is(record Record) bool {
	return r.record.Digest == record.Digest && r.record.Path == record.Path && r.record.Dev == record.Dev &&
		r.record.Source == record.Source && r.record.Archive == record.Archive && r.record.ApprovedBy == record.ApprovedBy && r.record.Signer == record.Signer && bytes.Equal(r.record.Manifest, record.Manifest)
}

// liveOf returns what may change the release of a record under us, nil for an
// installed package. What is known already is kept.
func (r *Registry) liveOf(record Record, old *version) *live {
	switch {
	case record.Dev && old != nil && old.record.Dev && old.record.Path == record.Path:
		return old.live
	case record.Dev:
		return r.liveDev(record.Path)
	case record.Source == SourceBundled:
		return r.liveBundled()
	default:
		return nil
	}
}

// put writes a record and puts it into the index. The caller has the turn.
func (r *Registry) put(ctx context.Context, record Record, l *live, kind plugin.EntryKind) (*version, error) {
	made, err := newRelease(record, l)
	if err != nil {
		return nil, err
	}
	if err := r.catalog.Put(ctx, record, kind); err != nil {
		return nil, fmt.Errorf("writing %s to the catalog: %w", label(record.Name, record.Version), err)
	}
	v := &version{release: made, state: record.State}
	r.index.Store(r.index.Load().with(v))
	return v, nil
}
