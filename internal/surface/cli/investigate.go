package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// sessionOf returns the session that a call belongs to: the one that is named,
// a new one for an investigation plugin where none is, and else none.
func (c *command) sessionOf(ctx context.Context, a *app.App, t *plugin.Target, named string) (session.Session, error) {
	kept := a.As(a.Principal)
	if named == "" {
		if t == nil || !t.Manifest.Contract.Investigates || !c.mayCall(a, t) {
			return session.Session{}, nil // where it may not be called, the call says so
		}
		s, err := kept.Sessions().Create(ctx, session.Open{Name: t.Manifest.Name}) // its pillar is the analyst's to choose
		if err == nil {
			c.say("session %s", s.ID)
		}
		return s, err
	}
	s, err := findSession(ctx, kept, named)
	if err != nil {
		return s, err
	}
	if s.State != "open" {
		return s, plugin.Errorf(plugin.CodeInvalidInput, "session %s is closed; 'mortise sessions resume %s' opens it again", s.ID, s.ID)
	}
	return s, nil
}

// mayCall reports whether policy does not forbid it from the start.
func (c *command) mayCall(a *app.App, t *plugin.Target) bool {
	return a.Policy.Decide(t, &plugin.Call{Tenant: a.Config.Tenant, Principal: a.Principal, Origin: plugin.OriginCLI}).Verdict != plugin.Deny
}

// handOn opens each file as the user of this process and adds an item with
// its handle to the member artifacts; one that is an artifact of the call's
// session is named by its id. It returns the files that are handed on.
func (c *command) handOn(ctx context.Context, a *app.App, in session.Session, members map[string]any, given []string) ([]plugin.File, error) {
	if len(given) == 0 {
		return nil, nil
	}
	list, ok := members[handed.Member].([]any)
	if !ok && members[handed.Member] != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input's artifacts are not a list")
	}
	var files []plugin.File
	for _, path := range given {
		if _, missing := os.Lstat(path); in.ID != "" && artifactID.MatchString(path) && errors.Is(missing, fs.ErrNotExist) {
			found, err := findArtifact(ctx, a.As(a.Principal), in.ID, path)
			if err != nil {
				return nil, err
			}
			list = append(list, map[string]any{"artifact_id": found.ID, "name": found.Name, "size": found.Size})
			continue
		}
		if err := c.refuseOwn(path); err != nil {
			return nil, err
		}
		file, err := handed.Open(path)
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "--artifact: %s", plugin.AsError(err).Message)
		}
		files = append(files, file)
		list = append(list, map[string]any{"artifact_id": file.Handle, "name": file.Name, "size": file.Size})
	}
	members[handed.Member] = list
	return files, nil
}

var artifactID = regexp.MustCompile(`^art_[0-9a-f]{8}$`)

// takeArtifacts registers the files of --artifact into a session, where they are
// not in it yet, and returns those artifacts. One of the session's is named by
// its id.
func (c *command) takeArtifacts(ctx context.Context, a *app.App, s session.Session, f runFlags) ([]session.Artifact, error) {
	kept := a.As(a.Principal)
	var list []session.Artifact
	for _, given := range f.artifacts {
		_, missing := os.Lstat(given)
		if artifactID.MatchString(given) && errors.Is(missing, fs.ErrNotExist) {
			found, err := findArtifact(ctx, kept, s.ID, given)
			if err != nil {
				return nil, err
			}
			list = append(list, found)
			continue
		}
		added, err := c.addFile(given, session.Add{Labels: plugin.Labels(nil, f.labels)}, func(add session.Add) (session.Artifact, error) {
			return kept.Sessions().AddFile(ctx, s.ID, given, add)
		})
		if err != nil {
			return nil, fmt.Errorf("--artifact: %w", err)
		}
		list = append(list, added)
	}
	return list, nil
}

// nameArtifact fills in what the input schema of an investigation plugin asks
// for: the artifact's id or, where it knows no ids, its path. A schema that knows
// neither is advice: it is the id then, which brings the path. What the input
// says already stays.
func (c *command) nameArtifact(ctx context.Context, a *app.App, t *plugin.Target, s session.Session, members map[string]any, list []session.Artifact) error {
	if len(list) == 0 {
		return nil
	}
	view, err := a.As(a.Principal).Sessions().View(ctx, s.ID)
	if err != nil {
		return err
	}
	for _, member := range []struct{ name, value string }{
		{"artifact_id", list[0].ID}, {"file_path", view.Path(list[0])}, {"path", view.Path(list[0])},
	} {
		if propertyOf(t.Operation.Input, member.name) == nil {
			continue
		}
		if _, given := members[member.name]; !given {
			members[member.name] = member.value
		}
		return nil
	}
	for _, name := range []string{"artifact_id", "file_path", "path"} {
		if _, given := members[name]; given {
			return nil
		}
	}
	members["artifact_id"] = list[0].ID
	return nil
}
