package rest

import (
	"bytes"
	"context"

	"github.com/mortise-dev/mortise/internal/host"
)

// A SessionSpec is a session that is to be.
type SessionSpec struct {
	Name   string `json:"name,omitzero" maxLength:"800"`
	Pillar string `json:"pillar,omitzero" maxLength:"128" doc:"None yet where it is left out."`
}

// A SessionChanged is a session that is to change.
type SessionChanged struct {
	SessionNamed
	Match
}

// An ArtifactSpec is a file that is to be registered.
type ArtifactSpec struct {
	Name    string   `json:"name" maxLength:"255" doc:"A file name: no directory."`
	Type    string   `json:"type,omitzero" maxLength:"64" doc:"Found out where it is left out."`
	Parents []string `json:"parents,omitzero" maxItems:"256" nullable:"false" doc:"The artifacts of the session that it was made from, whose labels it gets."`
	Labels  []string `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private"`
	Content []byte   `json:"content" doc:"Its bytes, in base64; up to 3 MiB."`
}

func (r *registry) sessionChanges() {
	add(r, route{method: "POST", path: "sessions", id: "create-session", scope: host.ScopeRun, about: "Begin a session, which is then the caller's"}, r.createSession)
	add(r, route{method: "DELETE", path: "sessions/{id}", id: "delete-session", scope: host.ScopeRun, about: "Delete a session with its artifacts; what was recorded of it stays"}, r.changeSession(host.Sessions.Delete))
	add(r, route{method: "POST", path: "sessions/{id}:close", id: "close-session", scope: host.ScopeRun, about: "Let nothing more be added to a session, and end the conversation that it is"}, r.changeSession(host.Sessions.Close))
	add(r, route{method: "POST", path: "sessions/{id}:resume", id: "resume-session", scope: host.ScopeRun, about: "Open a closed session again"}, r.changeSession(host.Sessions.Resume))
	add(r, route{method: "POST", path: "sessions/{id}/artifacts", id: "add-artifact", scope: host.ScopeRun, about: "Register a file in a session; an equal one is the artifact that is there"}, r.addArtifact)
}

func (r *registry) createSession(ctx context.Context, q *request, in *struct{ Body SessionSpec }) (*Tagged[Session], error) {
	s, err := q.api.Sessions().Create(ctx, host.NewSession{Name: in.Body.Name, Pillar: in.Body.Pillar})
	if err != nil {
		return nil, err
	}
	return tagged(q, sessionOf(s))
}

// changeSession is a change that takes no more than the session's id, written whole.
func (r *registry) changeSession(do func(host.Sessions, context.Context, string) (host.Session, error)) func(context.Context, *request, *SessionChanged) (*Tagged[Session], error) {
	return func(ctx context.Context, q *request, in *SessionChanged) (*Tagged[Session], error) {
		if !host.WholeSession(in.ID) {
			return nil, missing("session", in.ID)
		}
		now := func(ctx context.Context) (Session, error) {
			s, err := q.session(ctx, in.ID)
			return sessionOf(s), err
		}
		s, err := change(ctx, q, host.Thing{Noun: host.ASession, ID: in.ID}, now, func(ctx context.Context) (Session, error) {
			s, err := do(q.api.Sessions(), ctx, in.ID)
			return sessionOf(s), unlessMissing(err, "session", in.ID)
		})
		if err != nil {
			return nil, err
		}
		return tagged(q, s)
	}
}

func (r *registry) addArtifact(ctx context.Context, q *request, in *struct {
	SessionNamed
	Body ArtifactSpec
}) (*struct{ Body Artifact }, error) {
	s, err := q.session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	a, err := q.api.Sessions().AddArtifact(ctx, s.ID, bytes.NewReader(in.Body.Content), host.NewArtifact{
		Name: in.Body.Name, Type: in.Body.Type, Parents: in.Body.Parents, Labels: in.Body.Labels,
	})
	if err != nil {
		return nil, err
	}
	return &struct{ Body Artifact }{artifactOf(a)}, nil
}
