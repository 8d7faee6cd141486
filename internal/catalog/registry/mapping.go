package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// A MappingWord is what an administrator says that one operation does.
type MappingWord struct {
	Effects  []string // all that it may have; none for a tool
	Tool     bool     // it computes, and has no effects
	Brokered bool     // all its effects go through host services, also where it does not say so
	Approval bool     // a person agrees to each call, wherever policy allows it
}

const maxEffects = 64

var effectName = pattern.New(`^[a-z][a-z0-9_]{0,63}$`)

// Map puts an administrator's word on what an operation does in the place of what its plugin
// declares: policy judges by it, and the broker refuses every other effect. A nil word takes
// the declared back. ref is name/operation, with a version where that is not the active one.
//
// What a plugin's author wants stays: a tag that asks for a person is not taken away. The word
// is part of the stored manifest, which the head of the ledger signs, and of what is compared
// when the plugin changes. A word that is narrower than the declaration holds only where
// plugins run in a complete sandbox, which leaves them no way past the broker: elsewhere the
// operation is refused.
//
// The error is invalid_input for an operation that can have none: an agent's or adapter's, or
// one of a plugin that is linked, bound or part of the host.
func (r *Registry) Map(ctx context.Context, ref string, word *MappingWord) (Info, error) {
	want, err := parseWanted(ref)
	if err == nil && want.Operation == "" {
		err = plugin.Errorf(plugin.CodeInvalidInput, "an operation is meant here: %s/OPERATION", want.Plugin)
	}
	if err == nil && word != nil {
		err = word.check()
	}
	if err != nil {
		return Info{}, plugin.AsError(err)
	}
	var info Info
	err = r.change(ctx, func() error {
		ix := r.index.Load()
		v, err := ix.choose(want, func(v *version) bool { return v.state == Active })
		if err != nil {
			if v, err = ix.choose(want, func(*version) bool { return true }); err != nil {
				return err
			}
		}
		if v, err = r.mapped(ctx, v, want.Operation, word); err != nil {
			return err
		}
		info = v.info()
		return nil
	})
	if err != nil {
		return Info{}, plugin.AsError(err)
	}
	return info, nil
}

func (w *MappingWord) check() error {
	switch {
	case w.Tool && len(w.Effects) > 0:
		return plugin.Errorf(plugin.CodeInvalidInput, "a tool has no effects: name some, or say that it is one")
	case len(w.Effects) > maxEffects:
		return plugin.Errorf(plugin.CodeInvalidInput, "an operation has at most %d effects", maxEffects)
	}
	for _, effect := range w.Effects {
		if !effectName.MatchString(effect) {
			return plugin.Errorf(plugin.CodeInvalidInput, "%.80q is no name of an effect", effect)
		}
	}
	return nil
}

// mapped writes the word on an operation of a version. The caller has the turn.
func (r *Registry) mapped(ctx context.Context, v *version, operation string, word *MappingWord) (*version, error) {
	if v.record.Dev || v.record.Source == SourceConfig || v.record.Source == SourceBundled {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is linked, bound or part of the host: what it does is said where its files are", label(v.record.Name, v.record.Version))
	}
	before, err := v.manifest()
	if err != nil {
		return nil, err
	}
	if _, err := pick(before, operation); err != nil {
		return nil, err
	}
	if before.Runner.Kind == contract.MCPRunner {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s mounts a server: its manifest says under operations what %s does", label(v.record.Name, v.record.Version), operation)
	}
	m := *before
	m.Operations = slices.Clone(before.Operations)
	i := slices.IndexFunc(m.Operations, func(op *plugin.Operation) bool { return op.Name == operation })
	op := *m.Operations[i]
	declared(&op)
	if word != nil {
		if op.Kind != plugin.Operator && op.Kind != plugin.Tool {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s/%s is of kind %s, which has no effects of its own", m.Name, op.Name, op.Kind)
		}
		apply(&op, plugin.Mapping{By: Author(ctx, r.principal), Effects: word.Effects, Tool: word.Tool, Brokered: word.Brokered, Approval: word.Approval})
	}
	m.Operations[i] = &op
	record := v.record
	record.State = v.state
	if record.Manifest, err = json.Marshal(&m); err != nil {
		return nil, fmt.Errorf("storing the manifest: %w", err)
	}
	return r.put(ctx, record, v.live, plugin.EntryPluginMapped)
}

// declared takes the word of an administrator back from an operation.
func declared(op *plugin.Operation) {
	if was := op.Mapped; was != nil {
		op.Kind, op.Effects, op.Brokered, op.PolicyTags, op.Mapped = was.Declared.Kind, was.Declared.Effects, was.Declared.Brokered, was.Declared.PolicyTags, nil
	}
}

// apply puts a word on an operation that has none.
func apply(op *plugin.Operation, word plugin.Mapping) {
	word.Declared = plugin.Declared{Kind: op.Kind, Effects: op.Effects, Brokered: op.Brokered, PolicyTags: op.PolicyTags}
	word.Brokered = word.Brokered || op.Brokered
	op.Kind, op.Effects, op.Brokered = plugin.Operator, slices.Compact(slices.Sorted(slices.Values(word.Effects))), word.Brokered
	if word.Tool {
		op.Kind, op.Effects, op.Brokered = plugin.Tool, nil, false
	}
	word.Effects = op.Effects
	if word.Approval && !slices.Contains(op.PolicyTags, plugin.TagRequiresApproval) {
		op.PolicyTags = append(slices.Clone(op.PolicyTags), plugin.TagRequiresApproval)
	}
	op.Mapped = &word
}

// remap carries the words that an administrator has put on operations over to another manifest
// of the plugin. Where that declares something else than the word was put on, the wider of the
// two holds for each part, until the administrator has looked: nothing becomes less guarded by
// a change.
func remap(to, from *plugin.Manifest) {
	if to == nil || from == nil {
		return
	}
	for i, op := range to.Operations {
		was := from.Operation(op.Name)
		if was == nil || was.Mapped == nil || op.Mapped != nil || op.Kind != plugin.Operator && op.Kind != plugin.Tool {
			continue
		}
		word, copied := *was.Mapped, *op
		if d := word.Declared; d.Kind != op.Kind || d.Brokered != op.Brokered || !slices.Equal(d.Effects, op.Effects) {
			word.Effects = slices.Concat(word.Effects, op.Effects)
			word.Tool = word.Tool && op.Kind == plugin.Tool
			word.Brokered = word.Brokered && op.Brokered
		}
		apply(&copied, word)
		to.Operations[i] = &copied
	}
}

// confined refuses an operation that an administrator has narrowed on a host where nothing
// but the broker holds it to that.
func (r *Registry) confined(t *plugin.Target) error {
	if w := t.Operation.Mapped; w == nil || !w.Narrower() || r.complete != nil && r.complete() {
		return nil
	}
	return plugin.Errorf(plugin.CodeIsolationUnavailable, "%s is mapped to less than it declares, which only a complete sandbox holds it to, and this host has none: see mortise doctor, or take the mapping back", t.Name())
}

// remap carries the words on the operations of versions that a record takes the place of over
// to its manifest m.
func (record *Record) remap(m *plugin.Manifest, from ...*version) (err error) {
	for _, v := range from {
		if v == nil {
			continue
		}
		before, err := v.manifest()
		if err != nil {
			return err
		}
		remap(m, before)
	}
	record.Manifest, err = json.Marshal(m)
	return err
}

// merged is [Registry.merge] for a version that has operations only now: the words on those of
// the version before it are carried over to them.
func (r *Registry) merged(ctx context.Context, v *version, m *plugin.Manifest) (*plugin.Manifest, error) {
	bare := *m // the code knows nothing of an administrator's word
	bare.Operations = slices.Clone(m.Operations)
	for i, op := range bare.Operations {
		copied := *op
		declared(&copied)
		bare.Operations[i] = &copied
	}
	made, err := r.merge(ctx, v.pkg, &bare)
	if err != nil {
		return nil, err
	}
	whole := *made
	whole.Operations = slices.Clone(made.Operations)
	remap(&whole, m)
	if base := r.index.Load().baseline(v.record); base != nil {
		before, err := base.manifest()
		if err != nil {
			return nil, err
		}
		remap(&whole, before)
	}
	return &whole, nil
}
