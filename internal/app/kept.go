package app

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// What stands for each sort of kept thing where policy is asked who may use those
// of others; see docs/policy.md.
const (
	SessionsPlugin  = "mortise.sessions"
	CallsPlugin     = "mortise.calls"
	KnowledgePlugin = "mortise.knowledge"
	ReferencePlugin = "mortise.reference"
	LedgerPlugin    = "mortise.ledger"
	BackupPlugin    = "mortise.backup"
)

// Kept is what the host keeps, as one principal may use it: what the principal
// began, and what policy permits beyond that. The administrator may use all of it.
// What belongs to another is not found, and the refusal is recorded.
//
// Every surface reaches sessions, artifacts, calls, plans, knowledge bases and
// reference data through it.
type Kept struct {
	app      *App // nil where the administrator reads without a host
	store    store.Store
	sessions *session.Sessions
	tenant   string
	by       plugin.Principal
}

// Kept returns what the host keeps as a principal may use it.
func (a *App) Kept(by plugin.Principal) Kept {
	return Kept{app: a, store: a.Store, sessions: a.Sessions.As(MemberName(by)), tenant: a.Config.Tenant, by: by}
}

// KeptIn returns what is kept in a store that is open for reading, for the
// administrator: who owns the data directory and acts under no other name.
func KeptIn(st store.Store, tenant string) Kept {
	return Kept{store: st, sessions: session.New(session.Options{Store: st}), tenant: tenant}
}

// Tenant returns whose things these are.
func (k Kept) Tenant() string { return k.tenant }

// Store returns the store that they are in, for reading.
func (k Kept) Store() store.Reader { return k.store }

// Unbounded reports whether all that is kept is theirs to use.
func (k Kept) Unbounded() bool { return k.app == nil || k.app.administers(k.by) }

// administers reports whether a principal is the host's administrator: who runs
// the program on this data directory under no other name, and so has all of it.
func (a *App) administers(by plugin.Principal) bool {
	return MemberName(by) == MemberName(ParseMember(a.Config.Principal))
}

// all reports whether a right to everything of a sort is given, without recording
// anything: lists leave out what is not shown.
func (k Kept) all(target string) bool {
	return k.Unbounded() || k.right(target).Verdict == plugin.Allow
}

// right is what policy says of the use of what others keep.
func (k Kept) right(target string) plugin.Decision {
	return k.app.Policy.May(policy.Configure, hostTarget(target), k.app.call(k.by))
}

// own reports whether something that a principal began is theirs.
func (k Kept) own(owner string) bool { return owner != "" && owner == MemberName(k.by) }

// hide refuses the use of something that belongs to another: to who asks it is not
// there.
func (k Kept) hide(ctx context.Context, target string, u use, missing *plugin.Error) error {
	return k.app.refuse(ctx, k.by, u, missing, k.right(target))
}

// allow refuses what takes a right to a part of the host as a whole.
func (k Kept) allow(ctx context.Context, target string, u use) error {
	if k.Unbounded() {
		return nil
	}
	return k.app.authorise(ctx, k.by, hostTarget(target), u)
}

// CreateSession begins a session, which is then theirs.
func (k Kept) CreateSession(ctx context.Context, o session.Open) (session.Session, error) {
	return k.sessions.Create(ctx, k.tenant, o)
}

// Sessions returns the sessions that they may use, the newest first.
func (k Kept) Sessions(ctx context.Context) ([]session.Session, error) {
	all, err := k.sessions.List(ctx, k.tenant)
	if err != nil || k.all(SessionsPlugin) {
		return all, err
	}
	return slices.DeleteFunc(all, func(s session.Session) bool { return !k.own(s.Owner) }), nil
}

// Session returns a session; its id may be cut short.
func (k Kept) Session(ctx context.Context, id string) (session.Session, error) {
	return k.session(ctx, id, "see")
}

// session returns a session that they may use, for what action says.
func (k Kept) session(ctx context.Context, id, action string) (session.Session, error) {
	s, err := k.sessions.Get(ctx, k.tenant, id)
	if err == nil && k.own(s.Owner) || k.all(SessionsPlugin) {
		return s, err
	}
	if plugin.CodeOf(err) == plugin.CodeInvalidInput { // it may mean several: among their own, one
		return k.abbreviated(ctx, id)
	}
	if err != nil {
		return s, err
	}
	return session.Session{}, k.hide(ctx, SessionsPlugin, use{kind: plugin.EntrySessionRefused, subject: s.ID, action: action}, session.Missing(id))
}

// abbreviated returns the one session of theirs whose id begins so.
func (k Kept) abbreviated(ctx context.Context, id string) (session.Session, error) {
	mine, err := k.Sessions(ctx)
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

// ResumeSession opens a closed session again.
func (k Kept) ResumeSession(ctx context.Context, id string) (session.Session, error) {
	return k.change(ctx, id, "resume", func(id string) error { return k.sessions.Resume(ctx, k.tenant, id) })
}

// CloseSession lets nothing more be added to a session, and ends the conversation
// that it is.
func (k Kept) CloseSession(ctx context.Context, id string) (session.Session, error) {
	return k.change(ctx, id, "close", func(id string) error { return k.app.EndSession(ctx, id) })
}

func (k Kept) change(ctx context.Context, id, action string, do func(id string) error) (session.Session, error) {
	s, err := k.session(ctx, id, action)
	if err != nil {
		return s, err
	}
	if err := do(s.ID); err != nil {
		return s, err
	}
	return k.sessions.Get(ctx, k.tenant, s.ID)
}

// DeleteSession deletes a session with its artifacts, and returns what it was.
// before is called once they may; it may be nil.
func (k Kept) DeleteSession(ctx context.Context, id string, before func(session.Session) error) (session.Session, error) {
	s, err := k.session(ctx, id, "delete")
	if err == nil && before != nil {
		err = before(s)
	}
	if err != nil {
		return s, err
	}
	return s, k.app.DeleteSession(ctx, s.ID)
}

// Artifacts returns the artifacts of a session, the oldest first.
func (k Kept) Artifacts(ctx context.Context, in string) ([]session.Artifact, error) {
	s, err := k.session(ctx, in, "see")
	if err != nil {
		return nil, err
	}
	return k.sessions.Artifacts(ctx, k.tenant, s.ID)
}

// Artifact returns an artifact of a session, by its id or its name.
func (k Kept) Artifact(ctx context.Context, in, name string) (session.Artifact, error) {
	s, err := k.session(ctx, in, "see")
	if err != nil {
		return session.Artifact{}, err
	}
	return k.sessions.Artifact(ctx, k.tenant, s.ID, name)
}

// OpenArtifact returns the bytes of an artifact.
func (k Kept) OpenArtifact(ctx context.Context, in, name string) (io.ReadCloser, error) {
	s, err := k.session(ctx, in, "read")
	if err != nil {
		return nil, err
	}
	return k.sessions.Open(ctx, k.tenant, s.ID, name)
}

// AddArtifact registers what r holds in a session.
func (k Kept) AddArtifact(ctx context.Context, in string, r io.Reader, a session.Add) (session.Artifact, error) {
	s, err := k.session(ctx, in, "add to")
	if err != nil {
		return session.Artifact{}, err
	}
	return k.sessions.Add(ctx, k.tenant, s.ID, r, a)
}

// AddFile registers a person's file in a session.
func (k Kept) AddFile(ctx context.Context, in, path string, a session.Add) (session.Artifact, error) {
	s, err := k.session(ctx, in, "add to")
	if err != nil {
		return session.Artifact{}, err
	}
	return k.sessions.AddFile(ctx, k.tenant, s.ID, path, a)
}

// SessionView returns where processes of a session find its artifacts.
func (k Kept) SessionView(ctx context.Context, in string) (session.View, error) {
	s, err := k.session(ctx, in, "see")
	if err != nil {
		return session.View{}, err
	}
	return k.sessions.View(ctx, k.tenant, s.ID)
}
