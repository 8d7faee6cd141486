package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// against returns what gives the plugins under a path as earlier versions, by
// name. They are read before what is checked takes their place.
func against(ctx context.Context, h *host, path string) (Earlier, error) {
	report, err := h.Registry.Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	if err != nil {
		return nil, err
	}
	known := map[string]*plugin.Manifest{}
	for _, r := range report.Registered {
		shown, err := h.Registry.Show(ctx, r.Name+"@"+r.Version)
		if err != nil {
			return nil, err
		}
		known[r.Name] = shown.Manifest
	}
	return func(_ context.Context, m *plugin.Manifest, _ string) ([]*plugin.Manifest, error) {
		if earlier := known[m.Name]; earlier != nil {
			return []*plugin.Manifest{earlier}, nil
		}
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no %s in %s to hold it against", m.Name, path)
	}, nil
}

// compatible holds a plugin against its earlier versions (kernel contracts, 5.7).
func (c *checker) compatible(ctx context.Context, s registry.Shown) error {
	if c.options.Earlier == nil {
		return nil
	}
	earlier, err := c.options.Earlier(ctx, s.Manifest, s.Digest)
	if err != nil {
		c.promised(s, Fail, "%s", messageOf(err))
		return ctx.Err()
	}
	for _, old := range earlier {
		if err := c.against(s, old); err != nil {
			return err
		}
	}
	return nil
}

// promised adds a result about what earlier versions promised, with the row of
// the plugin's own contract.
func (c *checker) promised(s registry.Shown, outcome Outcome, format string, args ...any) {
	row := rows[compatible]
	if v, has := contract.Of[contract.Versioner](s.Manifest); has {
		row = v.VersionRow()
	}
	c.result(Result{s.Name, compatible, outcome, fmt.Sprintf(format, args...), row})
}

// A step is how far a version is from an earlier one.
type step string

const (
	major step = "major" // may break
	minor step = "minor" // may add
	patch step = "patch" // may change no schema
	none  step = "the same version"
)

// stepOf tells how far a version went. Below 1.0.0 the first number that is not
// zero counts as the major one, as it does for ^.
func stepOf(from, to string) (step, error) {
	a, err := semver.NewVersion(from)
	if err != nil {
		return "", err
	}
	b, err := semver.NewVersion(to)
	if err != nil {
		return "", err
	}
	zero, small := a.Major() == 0, a.Major() == 0 && a.Minor() == 0
	switch {
	case a.Equal(b):
		return none, nil
	case b.LessThan(a):
		return "", fmt.Errorf("%s is lower than %s, which it is held against", to, from)
	case a.Major() != b.Major(), zero && a.Minor() != b.Minor(), small && a.Patch() != b.Patch():
		return major, nil
	case a.Minor() != b.Minor():
		return minor, nil
	default:
		return patch, nil
	}
}

// against holds a plugin against one earlier version.
func (c *checker) against(s registry.Shown, old *plugin.Manifest) error {
	label := old.Name + "@" + old.Version
	how, err := stepOf(old.Version, s.Version)
	switch {
	case err != nil:
		c.promised(s, Fail, "%s", err)
		return nil
	case len(old.Operations) == 0:
		c.promised(s, Skip, "only the code of %s knows its operations, and it was never enabled", label)
		return nil
	}
	found, err := differences(old, s.Manifest)
	if err != nil {
		return err
	}
	bad := false
	for _, d := range found {
		outcome := d.outcome(how)
		if outcome == Pass {
			continue
		}
		bad = true
		c.promised(s, outcome, "%s; %s", d, advice(label, how, d.impact))
	}
	switch {
	case bad:
	case how == major && len(found) > 0:
		c.promised(s, Pass, "%s: %d changes, and it is a new major version", label, len(found))
	default:
		c.promised(s, Pass, "%s", label)
	}
	return nil
}

// advice says what the version would have to be.
func advice(label string, how step, impact schema.Impact) string {
	switch {
	case impact == schema.Unclear && how == minor:
		return "make sure that it takes all that " + label + " took, or raise the major version"
	case impact == schema.Breaking:
		return fmt.Sprintf("%s promised otherwise: raise the major version", label)
	case how == none:
		return fmt.Sprintf("%s stands for other schemas already: raise the version", label)
	default:
		return fmt.Sprintf("a patch of %s may change no schema: raise the minor version", label)
	}
}

// A difference is one change between two versions of a plugin.
type difference struct {
	operation, part string // part is input, output, or empty
	pointer         string
	impact          schema.Impact
	says            string
}

func (d difference) String() string {
	return strings.Join(slices.DeleteFunc([]string{d.operation, d.part, "at " + d.pointer + ":", d.says}, func(s string) bool { return s == "" }), " ")
}

// outcome says what a difference means for a step.
func (d difference) outcome(how step) Outcome {
	switch {
	case how == major:
		return Pass
	case how == minor && d.impact == schema.Additive:
		return Pass
	case how == minor && d.impact == schema.Unclear:
		return Warn
	default:
		return Fail
	}
}

// differences returns all that changed for those who call a plugin.
func differences(old, now *plugin.Manifest) ([]difference, error) {
	var all []difference
	for _, was := range old.Operations {
		at := "/operations/" + was.Name
		is := now.Operation(was.Name)
		if is == nil {
			all = append(all, difference{was.Name, "", at, schema.Breaking, "the operation is gone"})
			continue
		}
		if was.Kind != is.Kind {
			all = append(all, difference{was.Name, "", at + "/kind", schema.Breaking, fmt.Sprintf("it was of kind %s, and is of kind %s", was.Kind, is.Kind)})
		}
		if !sameSet(was.Effects, is.Effects) {
			all = append(all, difference{was.Name, "", at + "/effects", schema.Breaking, fmt.Sprintf("its effects were [%s], and are [%s]", strings.Join(was.Effects, ", "), strings.Join(is.Effects, ", "))})
		}
		for _, scope := range is.Permissions {
			if !slices.Contains(was.Permissions, scope) {
				all = append(all, difference{was.Name, "", at + "/permissions", schema.Breaking, "it asks for the permission " + scope + " now"})
			}
		}
		for _, part := range []struct {
			name      string
			was, is   []byte
			direction schema.Direction
		}{{"input", was.Input, is.Input, schema.Input}, {"output", was.Output, is.Output, schema.Output}} {
			changes, err := schema.Compare(part.was, part.is, part.direction)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", part.name, was.Name, err)
			}
			for _, change := range changes {
				all = append(all, difference{was.Name, part.name, change.Pointer, change.Impact, change.Says})
			}
		}
	}
	for _, is := range now.Operations {
		if old.Operation(is.Name) == nil {
			all = append(all, difference{is.Name, "", "/operations/" + is.Name, schema.Additive, "the operation is new"})
		}
	}
	return all, nil
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
