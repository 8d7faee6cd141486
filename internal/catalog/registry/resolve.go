package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/reported"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// Resolve returns the operation that ref names: name, name/op, name@versions
// or name/op@versions, where versions is one exact version or a range. The
// highest active version counts; a pre-release only where the reference asks
// for one. Without an operation the plugin must have exactly one.
//
// What another process changed in the catalog counts a second later at most.
//
// The target is shared and must not be changed. The error is a [*plugin.Error]:
// not_found, disabled, quarantined, or invalid_input for a reference that
// cannot be read, that leaves the operation open, or whose plugin is linked
// and broken at the moment.
func (r *Registry) Resolve(ctx context.Context, ref string) (*plugin.Target, error) {
	if t := r.builtin.find(ref); t != nil {
		return t, nil
	}
	if t := reported.Resolve(ref, schema.Any); t != nil {
		return t, nil
	}
	now := r.now()
	if err := r.keepUp(ctx, now); err != nil {
		return nil, plugin.AsError(err)
	}
	if known, found := r.index.Load().answer(ref); found && (known.live == nil || known.live.well(now)) {
		return known.target, nil
	}
	target, err := r.resolve(ctx, ref, nil)
	if err != nil {
		return nil, plugin.AsError(err)
	}
	return target, nil
}

// Sees returns the operations of a plugin that a principal may see; whole reports
// that these are all, and may be more than the manifest has.
type Sees = func(m *plugin.Manifest) (operations []*plugin.Operation, whole bool)

// ResolveFor is [Registry.Resolve] for a principal: what they do not see is not
// there, neither as a target nor in what the error says.
func (r *Registry) ResolveFor(ctx context.Context, ref string, sees Sees) (*plugin.Target, error) {
	if t, err := r.Resolve(ctx, ref); err == nil {
		if operations, whole := sees(t.Manifest); whole || slices.Contains(operations, t.Operation) {
			return t, nil
		}
	}
	target, err := r.resolve(ctx, ref, sees)
	if err != nil {
		return nil, plugin.AsError(err)
	}
	return target, nil
}

// Find returns the plugin that ref names, name or name@versions, with its
// package: of the version that Resolve would choose, and without an operation. It
// may have none.
func (r *Registry) Find(ctx context.Context, ref string) (*plugin.Target, error) {
	if err := r.keepUp(ctx, r.now()); err != nil {
		return nil, plugin.AsError(err)
	}
	_, v, _, err := r.chosen(ctx, ref, nil)
	if err != nil {
		return nil, plugin.AsError(err)
	}
	m, err := v.manifest()
	if err != nil {
		return nil, plugin.AsError(err)
	}
	return &plugin.Target{Manifest: m, Package: v.pkg}, nil
}

// chosen returns the version that a reference means, as its files are now, and
// the index that it stands in, for one who sees that; for all where sees is nil.
func (r *Registry) chosen(ctx context.Context, ref string, sees Sees) (*index, *version, wanted, error) {
	want, err := parseWanted(ref)
	if err != nil {
		return nil, nil, want, err
	}
	for _, v := range r.index.Load().as(sees).versions(want.Plugin) {
		if v.state != Active {
			continue
		}
		if err := r.freshen(ctx, v); err != nil {
			return nil, nil, want, err
		}
	}
	ix := r.index.Load().as(sees)
	v, err := ix.choose(want, func(v *version) bool { return v.state == Active })
	if err != nil {
		return nil, nil, want, err
	}
	if v.live != nil && v.live.err() != nil {
		return nil, nil, want, broken(v, v.live.err())
	}
	return ix, v, want, nil
}

func (r *Registry) resolve(ctx context.Context, ref string, sees Sees) (*plugin.Target, error) {
	ix, v, want, err := r.chosen(ctx, ref, sees)
	if err != nil {
		return nil, err
	}
	m, err := v.manifest()
	if err != nil {
		return nil, err
	}
	op, err := pick(seenOf(m, sees), want.Operation)
	if err != nil {
		return nil, err
	}
	target, err := v.target(m, op)
	if err != nil {
		return nil, err
	}
	if err := r.confined(target); err != nil {
		return nil, err
	}
	known := answer{target, v.live}
	if v.live != nil && v.live.done.Load() {
		known.live = nil
	}
	ix.remember(ref, known)
	return target, nil
}

// broken says why a live version cannot be used.
func broken(v *version, err error) error {
	name := label(v.record.Name, v.record.Version)
	if e := plugin.AsError(err); e.Code != plugin.CodeInternal {
		return &plugin.Error{Code: e.Code, Message: name + ": " + e.Message, Err: err}
	}
	return fmt.Errorf("following %s: %w", name, err) // the host's own fault
}

// A wanted is a reference whose constraint is understood.
type wanted struct {
	contract.Reference
	exact    *semver.Version
	versions *semver.Constraints // nil, with exact nil too, for any release
}

func parseWanted(ref string) (wanted, error) {
	parsed, err := contract.ParseReference(ref)
	if err != nil {
		return wanted{}, plugin.Errorf(plugin.CodeInvalidInput, "%v", err)
	}
	w := wanted{Reference: parsed}
	if parsed.Constraint == "" {
		return w, nil
	}
	if exact, err := semver.StrictNewVersion(parsed.Constraint); err == nil {
		w.exact = exact
		return w, nil
	}
	if w.versions, err = semver.NewConstraint(parsed.Constraint); err != nil {
		return wanted{}, plugin.Errorf(plugin.CodeInvalidInput, "%q is no version or range of versions", parsed.Constraint)
	}
	return w, nil
}

// allows reports whether the constraint lets a version through.
func (w wanted) allows(v *version) bool {
	switch {
	case w.exact != nil:
		return v.semver.Equal(w.exact) && (w.exact.Metadata() == "" || w.exact.Metadata() == v.semver.Metadata())
	case w.versions != nil:
		return w.versions.Check(v.semver)
	default:
		return v.semver.Prerelease() == ""
	}
}

// choose returns the highest version that the reference allows and usable
// accepts. If there is none, the error says what stands in the way.
func (ix *index) choose(want wanted, usable func(*version) bool) (*version, error) {
	versions := ix.versions(want.Plugin)
	if len(versions) == 0 {
		return nil, ix.unknown(want.Plugin)
	}
	allows := want.allows
	if want.Constraint == "" && !slices.ContainsFunc(versions, allows) {
		// Who calls a tool of Event Mill or a plugin of Shu names no version: one that
		// has pre-releases only, as many published ones have, is meant all the same.
		allows = func(v *version) bool {
			m, err := v.manifest()
			return err == nil && m.Contract.AnyRelease
		}
	}
	var first *version
	for _, v := range versions {
		if !allows(v) {
			continue
		}
		if usable(v) {
			return v, nil
		}
		if first == nil {
			first = v
		}
	}
	switch {
	case first == nil && want.Constraint == "":
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s has pre-releases only, which must be asked for: %s", want.Plugin, numbers(versions))
	case first == nil:
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s has no version %s; there is %s", want.Plugin, want.Constraint, numbers(versions))
	case first.state == Quarantined:
		return nil, first.held()
	default:
		name := label(first.record.Name, first.record.Version)
		return nil, plugin.Errorf(plugin.CodeDisabled, "%s is disabled", name)
	}
}

// unknown says that nothing is called name, and what may have been meant.
func (ix *index) unknown(name string) error {
	var names []string
	for _, versions := range ix.plugins {
		names = append(names, versions[0].record.Name)
	}
	slices.Sort(names)
	for near, found := contract.Nearest(name, names); found; near, found = contract.Nearest(name, names) {
		if len(ix.versions(near)) > 0 {
			return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s; did you mean %s?", name, near)
		}
		names = slices.DeleteFunc(names, func(other string) bool { return other == near }) // it is not seen
	}
	return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", name)
}

func numbers(versions []*version) string {
	const most = 10
	var list []string
	for i, v := range versions {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(versions)-most))
			break
		}
		list = append(list, v.record.Version)
	}
	return strings.Join(list, ", ")
}

// pick returns the operation called name; without a name, the only one. A
// hidden one counts only where there is no other.
func pick(m *plugin.Manifest, name string) (*plugin.Operation, error) {
	if name != "" {
		if op := m.Operation(name); op != nil {
			return op, nil
		}
		message := fmt.Sprintf("%s %s has no operation %s", m.Name, m.Version, name)
		if near, found := contract.Nearest(name, operationNames(m)); found {
			message += fmt.Sprintf("; did you mean %s/%s?", m.Name, near)
		}
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s", message)
	}
	if len(m.Operations) == 1 {
		return m.Operations[0], nil
	}
	names := operationNames(m)
	if len(names) == 1 {
		return m.Operation(names[0]), nil
	}
	return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s has %d operations: name one, as in %s/%s", m.Name, len(names), m.Name, strings.Join(names, ", "+m.Name+"/"))
}

// operationNames returns the names that may be shown.
func operationNames(m *plugin.Manifest) []string {
	var names []string
	for _, op := range m.Operations {
		if !op.Hidden {
			names = append(names, op.Name)
		}
	}
	return names
}
