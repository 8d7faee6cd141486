package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// A release is one version of one plugin with one exact content. It never
// changes; what changes is in the version that holds it.
type release struct {
	record   Record // its State is not kept up to date: see version
	semver   *semver.Version
	pkg      plugin.Package
	live     *live // what may change it under us; nil for installed packages
	manifest func() (*plugin.Manifest, error)

	mu      sync.Mutex
	targets map[string]*plugin.Target // by operation; compiled when first asked for
}

// newRelease returns the release that a record describes. The manifest is
// decoded when it is first needed.
// Newer reports whether version a comes after version b.
func Newer(a, b string) bool {
	x, errX := semver.StrictNewVersion(a)
	y, errY := semver.StrictNewVersion(b)
	return errX == nil && errY == nil && x.GreaterThan(y)
}

func newRelease(r Record, l *live) (*release, error) {
	v, err := semver.StrictNewVersion(r.Version)
	if err != nil {
		return nil, fmt.Errorf("the version %q of %s: %w", r.Version, r.Name, err)
	}
	return &release{
		record: r, semver: v, live: l,
		pkg: plugin.Package{Digest: r.Digest, Dir: packageDir(r), Dev: r.Dev},
		manifest: sync.OnceValues(func() (*plugin.Manifest, error) {
			m, err := contract.Decode(r.Manifest)
			if err != nil {
				return nil, fmt.Errorf("the stored manifest of %s: %w", label(r.Name, r.Version), err)
			}
			return m, nil
		}),
		targets: map[string]*plugin.Target{},
	}, nil
}

// target returns the operation with its schemas compiled, always the same for
// the same operation.
func (r *release) target(m *plugin.Manifest, op *plugin.Operation) (*plugin.Target, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.targets[op.Name]; t != nil {
		return t, nil
	}
	in, err := schema.Compile(op.Input)
	if err != nil {
		return nil, fmt.Errorf("the input schema of %s/%s: %w", m.Name, op.Name, err)
	}
	out, err := schema.Compile(op.Output)
	if err != nil {
		return nil, fmt.Errorf("the output schema of %s/%s: %w", m.Name, op.Name, err)
	}
	t := plugin.NewTarget(m, op, r.pkg, in, out)
	r.targets[op.Name] = t
	return t, nil
}

// A version is a release and how it stands.
type version struct {
	*release
	state State
}

// An index is all plugins there are at one moment. Once in use it is never
// changed: every change makes another, so that looking something up takes no lock.
type index struct {
	plugins map[string][]*version // by folded name, the highest version first
	sees    Sees                  // what is left out for; nil where nothing is
	answers atomic.Pointer[map[string]answer]
}

// as returns the index as one who sees part of it has it.
func (ix *index) as(sees Sees) *index {
	if sees == nil {
		return ix
	}
	return &index{plugins: ix.plugins, sees: sees}
}

// seenOf returns a manifest with the operations that are seen.
func seenOf(m *plugin.Manifest, sees Sees) *plugin.Manifest {
	if sees == nil {
		return m
	}
	operations, whole := sees(m)
	if whole {
		return m
	}
	seen := *m
	seen.Operations = operations
	return &seen
}

// An answer is what a reference was resolved to.
type answer struct {
	target *plugin.Target
	live   *live
}

// maxAnswers bounds how many references are remembered.
const maxAnswers = 256

func fold(name string) string { return strings.ToLower(name) }

func label(name, version string) string { return name + "@" + version }

// with returns an index that has v, in the place of a version of that name and number.
func (ix *index) with(v *version) *index {
	next := &index{plugins: maps.Clone(ix.plugins)}
	next.add(v)
	return next
}

// add puts v into an index that is not published yet.
func (ix *index) add(v *version) {
	key := fold(v.record.Name)
	kept := slices.DeleteFunc(slices.Clone(ix.plugins[key]), v.standsFor)
	at, _ := slices.BinarySearchFunc(kept, v, higherFirst)
	ix.plugins[key] = slices.Insert(kept, at, v)
}

// standsFor reports whether v has the place of another one of its plugin.
func (v *version) standsFor(other *version) bool {
	return other.record.Version == v.record.Version && other.record.Beside == v.record.Beside
}

// waits reports whether v is quarantined until it is approved.
func (v *version) waits() bool { return v.state == Quarantined && !v.record.approved() }

// without returns an index that lacks a version.
func (ix *index) without(v *version) *index {
	next := &index{plugins: maps.Clone(ix.plugins)}
	key := fold(v.record.Name)
	kept := slices.DeleteFunc(slices.Clone(next.plugins[key]), v.standsFor)
	if next.plugins[key] = kept; len(kept) == 0 {
		delete(next.plugins, key)
	}
	return next
}

// higherFirst orders versions; numbers that differ in build metadata alone
// have the same rank and go by their spelling. What waits beside another comes
// after it.
func higherFirst(a, b *version) int {
	after := func(v *version) int {
		if v.record.Beside {
			return 1
		}
		return 0
	}
	return cmp.Or(b.semver.Compare(a.semver), strings.Compare(b.record.Version, a.record.Version), after(a)-after(b))
}

// versions returns those of the plugin of exactly that name.
func (ix *index) versions(name string) []*version {
	vs := ix.plugins[fold(name)]
	if len(vs) == 0 || vs[0].record.Name != name {
		return nil
	}
	if ix.sees == nil {
		return vs
	}
	return slices.DeleteFunc(slices.Clone(vs), func(v *version) bool {
		operations, whole := ix.sees(v.described())
		return !whole && len(operations) == 0
	})
}

// version returns one version, nil if there is none.
func (ix *index) version(name, number string) *version { return ix.find(name, number, false) }

// beside returns what waits for approval beside a version.
func (ix *index) beside(name, number string) *version { return ix.find(name, number, true) }

func (ix *index) find(name, number string, beside bool) *version {
	for _, v := range ix.versions(name) {
		if v.record.Version == number && v.record.Beside == beside {
			return v
		}
	}
	return nil
}

// all yields every version: by name, the highest first.
func (ix *index) all(yield func(*version) bool) {
	for _, key := range slices.Sorted(maps.Keys(ix.plugins)) {
		for _, v := range ix.plugins[key] {
			if !yield(v) {
				return
			}
		}
	}
}

// answer returns what ref was resolved to before.
func (ix *index) answer(ref string) (answer, bool) {
	if known := ix.answers.Load(); known != nil {
		a, found := (*known)[ref]
		return a, found
	}
	return answer{}, false
}

// remember keeps an answer as long as the index is in use. A full memory is
// emptied: what is asked for often is back in it at once.
func (ix *index) remember(ref string, a answer) {
	for {
		known := ix.answers.Load()
		next := map[string]answer{}
		if known != nil && len(*known) < maxAnswers {
			maps.Copy(next, *known)
		}
		next[strings.Clone(ref)] = a
		if ix.answers.CompareAndSwap(known, &next) {
			return
		}
	}
}
