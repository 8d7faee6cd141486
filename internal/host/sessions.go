package host

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// Sessions are the sessions of the host's tenant with their artifacts, as one
// principal may use them.
type Sessions struct {
	kept
	ends   conversing
	engine *session.Sessions
	end    func(ctx context.Context, tenant, id string, forget bool) error
	caller *Caller
}

// What sessions are, and what is registered in them.
type (
	Session      = session.Session
	NewSession   = session.Open
	Artifact     = session.Artifact
	NewArtifact  = session.Add
	ArtifactType = session.Type
	SessionView  = session.View
)

// Pillars are the usual fields of sessions.
var Pillars = session.Pillars

// WholeSession reports whether an id of a session is written out, and can mean no other.
func WholeSession(id string) bool { return session.Whole(id) }

// ArtifactTypes returns the types of artifacts.
func ArtifactTypes() []ArtifactType { return session.Types() }

// DetectType returns the type of a file, by its name and how it begins.
func DetectType(name string, head []byte) string { return session.Detect(name, head) }

// NamedArtifact returns the one of a session's artifacts that has an id, or a name that no
// other has.
func NamedArtifact(all []Artifact, in, name string) (Artifact, error) {
	return session.Named(all, in, name)
}

// Lineage returns what an artifact was made from, and what was made from it.
func Lineage(all []Artifact, id string) (ancestors, descendants []Artifact) {
	return session.Lineage(all, id)
}

// For returns the session that a call belongs to: the one of an id, which is open, or,
// where the id is empty, a new one if the operation needs one, and neither policy nor
// the caller's token forbids the call from the start. Else it is none.
func (m Sessions) For(ctx context.Context, t *plugin.Target, id string) (Session, error) {
	if id == "" {
		if t == nil || !t.Manifest.Contract.Investigates || m.g.Policy.Decide(t, m.g.call(m.by)).Verdict == plugin.Deny ||
			m.caller != nil && !(m.caller.Has(ScopeRun) && m.caller.Covers(t.Name())) {
			return Session{}, nil // where it may not be called, the call says so
		}
		return m.Create(ctx, NewSession{Name: t.Manifest.Name}) // its pillar is the analyst's to choose
	}
	s, err := m.Get(ctx, id)
	if err == nil && s.State != "open" {
		err = plugin.Errorf(plugin.CodeInvalidInput, "session %s is closed; 'mortise sessions resume %s' opens it again", s.ID, s.ID)
	}
	return s, err
}

// Create begins a session, which is then theirs.
func (m Sessions) Create(ctx context.Context, o session.Open) (session.Session, error) {
	return m.engine.Create(ctx, m.g.Tenant, o)
}

// List returns the sessions that they may use, the newest first.
func (m Sessions) List(ctx context.Context) ([]session.Session, error) {
	all, err := m.engine.List(ctx, m.g.Tenant)
	if err != nil || m.all(SessionsPlugin) {
		return all, err
	}
	return slices.DeleteFunc(all, func(s session.Session) bool { return !m.own(s.Owner) }), nil
}

// Get returns a session; its id may be cut short.
func (m Sessions) Get(ctx context.Context, id string) (session.Session, error) {
	return m.get(ctx, id, "see")
}

// get returns a session that they may use, for what action says.
func (m Sessions) get(ctx context.Context, id, action string) (session.Session, error) {
	s, err := m.engine.Get(ctx, m.g.Tenant, id)
	if err == nil && m.own(s.Owner) || m.all(SessionsPlugin) {
		return s, err
	}
	if plugin.CodeOf(err) == plugin.CodeInvalidInput { // it may mean several: among their own, one
		return m.abbreviated(ctx, id)
	}
	if err != nil {
		return s, err
	}
	return session.Session{}, m.hide(ctx, SessionsPlugin, use{kind: plugin.EntrySessionRefused, subject: s.ID, action: action}, session.Missing(id))
}

// abbreviated returns the one session of theirs whose id begins so.
func (m Sessions) abbreviated(ctx context.Context, id string) (session.Session, error) {
	mine, err := m.List(ctx)
	if err != nil {
		return session.Session{}, err
	}
	mine = slices.DeleteFunc(mine, func(s session.Session) bool {
		return !strings.HasPrefix(strings.TrimPrefix(s.ID, "sess_"), strings.TrimPrefix(id, "sess_"))
	})
	switch len(mine) {
	case 0:
		return session.Session{}, session.Missing(id)
	case 1:
		return mine[0], nil
	}
	return session.Session{}, plugin.Errorf(plugin.CodeInvalidInput, "%s may mean session %s or %s; write more of the id", id, mine[0].ID, mine[1].ID)
}

// Resume opens a closed session again.
func (m Sessions) Resume(ctx context.Context, id string) (session.Session, error) {
	return m.change(ctx, id, "resume", func(id string) error { return m.engine.Resume(ctx, m.g.Tenant, id) })
}

// Close lets nothing more be added to a session, and ends the conversation
// that it is and the processes that it has here.
func (m Sessions) Close(ctx context.Context, id string) (session.Session, error) {
	s, err := m.change(ctx, id, "close", func(id string) error { return m.ends.close(ctx, id) })
	if err == nil {
		err = m.end(ctx, m.g.Tenant, s.ID, false)
	}
	return s, err
}

func (m Sessions) change(ctx context.Context, id, action string, do func(id string) error) (session.Session, error) {
	s, err := m.get(ctx, id, action)
	if err != nil {
		return s, err
	}
	if err := do(s.ID); err != nil {
		return s, err
	}
	return m.engine.Get(ctx, m.g.Tenant, s.ID)
}

// Delete ends the processes that a session has here, deletes the session with its artifacts,
// and returns what it was.
func (m Sessions) Delete(ctx context.Context, id string) (session.Session, error) {
	s, err := m.get(ctx, id, "delete")
	if err == nil {
		err = m.end(ctx, m.g.Tenant, s.ID, true)
	}
	if err != nil {
		return s, err
	}
	return s, m.ends.drop(ctx, s.ID)
}

// Artifacts returns the artifacts of a session, the oldest first.
func (m Sessions) Artifacts(ctx context.Context, in string) ([]session.Artifact, error) {
	s, err := m.get(ctx, in, "see")
	if err != nil {
		return nil, err
	}
	return m.engine.Artifacts(ctx, m.g.Tenant, s.ID)
}

// Artifact returns an artifact of a session, by its id or its name.
func (m Sessions) Artifact(ctx context.Context, in, name string) (session.Artifact, error) {
	s, err := m.get(ctx, in, "see")
	if err != nil {
		return session.Artifact{}, err
	}
	return m.engine.Artifact(ctx, m.g.Tenant, s.ID, name)
}

// OpenArtifact returns the bytes of an artifact.
func (m Sessions) OpenArtifact(ctx context.Context, in, name string) (io.ReadCloser, error) {
	s, err := m.get(ctx, in, "read")
	if err != nil {
		return nil, err
	}
	return m.engine.Open(ctx, m.g.Tenant, s.ID, name)
}

// AddArtifact registers what r holds in a session.
func (m Sessions) AddArtifact(ctx context.Context, in string, r io.Reader, a session.Add) (session.Artifact, error) {
	s, err := m.get(ctx, in, "add to")
	if err != nil {
		return session.Artifact{}, err
	}
	return m.engine.Add(ctx, m.g.Tenant, s.ID, r, a)
}

// AddFile registers a person's file in a session.
func (m Sessions) AddFile(ctx context.Context, in, path string, a session.Add) (session.Artifact, error) {
	s, err := m.get(ctx, in, "add to")
	if err != nil {
		return session.Artifact{}, err
	}
	return m.engine.AddFile(ctx, m.g.Tenant, s.ID, path, a)
}

// View returns where processes of a session find its artifacts.
func (m Sessions) View(ctx context.Context, in string) (session.View, error) {
	s, err := m.get(ctx, in, "see")
	if err != nil {
		return session.View{}, err
	}
	return m.engine.View(ctx, m.g.Tenant, s.ID)
}
