package registry

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// Rollback goes back from the highest active version that ref, a name or
// name@versions, allows to the next lower one that was approved: that one can
// be called, the other no longer. It returns both, first the one that was left.
// Where there is none to go back to, nothing happens.
func (r *Registry) Rollback(ctx context.Context, ref string) (left, back Info, err error) {
	if left, back, err = r.rollback(ctx, ref); err != nil {
		return Info{}, Info{}, plugin.AsError(err)
	}
	return left, back, nil
}

func (r *Registry) rollback(ctx context.Context, ref string) (left, back Info, err error) {
	want, err := parsePlugin(ref)
	if err != nil {
		return left, back, err
	}
	if err := r.Refresh(ctx); err != nil {
		return left, back, err
	}
	from, to, err := r.index.Load().step(want)
	if err != nil {
		return left, back, err
	}
	// Enable does all that has to be looked at, and that before the other goes.
	if back, err = r.enable(ctx, label(to.record.Name, to.record.Version)); err != nil {
		return left, back, err
	}
	err = r.change(ctx, func() error {
		now := r.index.Load().version(from.record.Name, from.record.Version)
		if now == nil {
			return nil // deleted meanwhile
		}
		if now.state == Active {
			if now, err = r.setState(ctx, now, Disabled, plugin.EntryPluginDisabled); err != nil {
				return err
			}
		}
		left = now.info()
		return nil
	})
	return left, back, err
}

// step returns the version that can be called and the one below it.
func (ix *index) step(want wanted) (from, to *version, err error) {
	if from, err = ix.choose(want, func(v *version) bool { return v.state == Active }); err != nil {
		return nil, nil, err
	}
	if from.record.Source == SourceConfig {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is bound in the host's configuration: change it there", want.Plugin)
	}
	for _, v := range ix.versions(want.Plugin) {
		if v.semver.LessThan(from.semver) && want.allows(v) && v.record.approved() {
			return from, v, nil
		}
	}
	return nil, nil, plugin.Errorf(plugin.CodeNotFound, "%s has no approved version below %s to go back to; there is %s",
		want.Plugin, from.record.Version, numbers(ix.versions(want.Plugin)))
}
