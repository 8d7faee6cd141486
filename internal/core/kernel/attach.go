package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/plugin"
)

// attach finds the files that the input names among those that the call may
// see: what was handed on with it, and the artifacts of its session. From there
// on these are the call's files, and the only ones that what it asks for may be
// shown. What they are tainted with, the call is.
//
// A call that waited goes on with the very files that were handed on: one that
// is another now, or has other bytes, is refused.
func (a *attempt) attach(ctx context.Context) error {
	if err := hostsOwn(a.target, a.call.Input); err != nil {
		return err
	}
	shown, used, err := a.k.resolve(ctx, a.call)
	if err != nil {
		return named(a.target, err)
	}
	for _, f := range used {
		if a.row == nil || f.Session {
			continue
		}
		if err := handed.Same(f); errors.Is(err, handed.ErrChanged) {
			return a.changed(ctx, f, err)
		} else if err != nil {
			return plugin.Errorf(plugin.CodeUnavailable, "%s: %s, which was handed on, cannot be looked at: %w", a.target.Name(), f.Path, err)
		}
	}
	a.shown, a.call.Files = shown, used
	for _, f := range used {
		a.call.Labels = plugin.Labels(a.call.Labels, f.Labels)
		if a.call.Plan != "" { // who approved it was shown a name, and never what is in the file
			a.call.Filled = plugin.Labels(a.call.Filled, f.Labels)
		}
	}
	a.record.Labels = a.call.Labels
	return nil
}

// changed refuses a call whose file is another by now: where it was approved,
// what would run is not what the person agreed to.
func (a *attempt) changed(ctx context.Context, f plugin.File, why error) error {
	code := plugin.CodeInvalidInput
	given, err := a.k.Ledger.ApprovalOf(ctx, a.call.Tenant, a.call.ID)
	if err != nil {
		return err
	}
	if given != nil {
		code, a.void = plugin.CodeApprovalVoid, f.Path+" is not the file that it was given for"
	}
	return plugin.Errorf(code, "%s: %s changed while the call waited: %w; make the call again, or keep the file in a session with 'mortise artifacts add'", a.target.Name(), f.Path, why)
}

// hostsOwn refuses an input that speaks for the host. Surfaces take the member
// out of what a person wrote before they build the call.
func hostsOwn(t *plugin.Target, input []byte) error {
	hostMember := t.Manifest.Contract.HostMember
	if hostMember == "" || !bytes.Contains(input, []byte(hostMember)) && !bytes.Contains(input, []byte(`\u`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || members[hostMember] == nil {
		return nil
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "%s: input at /%s: only the host decides what stands there; leave it out, or have a person give it with 'mortise run' or 'mortise feeds create'", t.Name(), hostMember)
}

// named says which operation an error is about.
func named(t *plugin.Target, err error) error {
	e := *plugin.AsError(err)
	if e.Code != plugin.CodeInternal {
		e.Message = t.Name() + ": " + e.Message
	}
	return &e
}

// reattach is attach for a call that only answers how it ended.
func (k *Kernel) reattach(ctx context.Context, call *plugin.Call) error {
	shown, used, err := k.resolve(ctx, call)
	if err != nil {
		return err
	}
	call.Input, call.Files = shown, slices.DeleteFunc(used, func(f plugin.File) bool { return !f.Session && handed.Same(f) != nil })
	return nil
}

// resolve finds the files that the input of a call names.
func (k *Kernel) resolve(ctx context.Context, call *plugin.Call) (shown []byte, used []plugin.File, err error) {
	return handed.Resolve(call.Input, func(name string) (plugin.File, bool, error) {
		path := filepath.Clean(name)
		for _, f := range call.Files {
			if f.Handle == name || f.Path == path {
				return f, true, nil
			}
		}
		if k.Artifact == nil || call.Session == "" {
			return plugin.File{}, false, nil
		}
		return k.Artifact(ctx, call, name)
	})
}

// handedOn are the files that are kept with a call: what is in its session is
// looked up again.
func handedOn(files []plugin.File) []plugin.File {
	return slices.DeleteFunc(slices.Clone(files), func(f plugin.File) bool { return f.Session })
}
