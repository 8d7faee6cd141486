package bridge

import (
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// Artifacts are the sessions as plugins see them while they work on a call.
type Artifacts struct{ Of *session.Sessions }

// Open returns the pillar of a call's session and what is in it, with the paths
// that its artifacts have in its view.
func (s Artifacts) Open(ctx context.Context, call *plugin.Call) (pillar string, all []service.Artifact, err error) {
	seen, err := s.Of.See(ctx, call.Tenant, call.Session)
	if err != nil {
		return "", nil, err
	}
	all = make([]service.Artifact, len(seen.Artifacts))
	for i := range all {
		all[i] = shownAs(&seen.Artifacts[i], seen.View)
	}
	return seen.Pillar, all, nil
}

// Add registers a file that a plugin made. A type that there is not, of which
// published plugins have several, is no reason to lose the file: what it is gets
// found out.
func (s Artifacts) Add(ctx context.Context, call *plugin.Call, r io.Reader, a service.Artifact) (service.Artifact, error) {
	add := session.Add{
		ID: a.ID, Name: a.Name, Type: a.Type, SourceTool: a.SourceTool, SourceCall: a.SourceCall, Parents: a.Parents, Labels: a.Labels, Metadata: a.Metadata,
	}
	if !slices.ContainsFunc(session.Types(), func(t session.Type) bool { return t.Name == a.Type }) {
		add.Type = ""
	}
	kept, view, err := s.Of.As(principal.Name(call.Principal)).AddShown(ctx, call.Tenant, call.Session, r, add)
	if err != nil {
		return service.Artifact{}, err
	}
	return shownAs(&kept, view), nil
}

func shownAs(a *session.Artifact, view session.View) service.Artifact {
	return service.Artifact{
		ID: a.ID, Type: a.Type, Name: a.Name, Path: view.Path(*a), StorageURI: a.StorageURI, Hash: a.SHA256, Size: a.Size,
		SourceTool: a.SourceTool, SourceCall: a.SourceCall, Parents: a.Parents, Labels: a.Labels, Metadata: a.Metadata,
	}
}

// View returns the directory in which the processes of a session find its
// artifacts. A session id that was never opened as a session only groups calls;
// it has no artifacts and no directory.
func (s Artifacts) View(ctx context.Context, tenant, id string) (string, error) {
	v, err := s.Of.View(ctx, tenant, id)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return "", nil
	}
	return v.Dir, err
}

// Find returns the artifact of a call's session that an id or a path means.
func (s Artifacts) Find(ctx context.Context, call *plugin.Call, name string) (plugin.File, bool, error) {
	seen, err := s.Of.See(ctx, call.Tenant, call.Session)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return plugin.File{}, false, nil // no more than a name that calls share
	}
	if err != nil {
		return plugin.File{}, false, err
	}
	for i := range seen.Artifacts {
		a := &seen.Artifacts[i]
		path := seen.View.Path(*a)
		if a.ID != name && path != filepath.Clean(name) {
			continue
		}
		is, err := handed.Identity(path)
		if err != nil {
			return plugin.File{}, false, plugin.Errorf(plugin.CodeUnavailable, "artifact %s cannot be read: %w", a.ID, err)
		}
		return plugin.File{Handle: a.ID, Name: a.Name, Size: a.Size, Path: path, Is: is, Session: true, Labels: a.Labels}, true, nil
	}
	return plugin.File{}, false, nil
}
