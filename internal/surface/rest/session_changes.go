package rest

import (
	"bytes"
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
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
	Name      string   `json:"name,omitzero" maxLength:"255" doc:"A file name: no directory. Needed but with path."`
	Type      string   `json:"type,omitzero" maxLength:"64" doc:"Found out where it is left out."`
	Parents   []string `json:"parents,omitzero" maxItems:"256" nullable:"false" doc:"The artifacts of the session that it was made from, whose labels it gets."`
	Labels    []string `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private"`
	Content   []byte   `json:"content,omitzero" doc:"Its bytes, in base64; up to 3 MiB."`
	Path      string   `json:"path,omitzero" maxLength:"4096" doc:"In place of its bytes: the file on the host's machine, absolute. On the owner's socket alone."`
	Directory string   `json:"directory,omitzero" maxLength:"255" doc:"The name of that directory."`
	Files     []Laid   `json:"files,omitzero" maxItems:"10000" nullable:"false" doc:"In place of its bytes: the files of a directory, which are artifacts already."`
}

// A Laid is a file of a directory.
type Laid struct {
	Path     string `json:"path" maxLength:"4096" doc:"Where it lies in the directory, with slashes."`
	Artifact string `json:"artifact_id" maxLength:"64"`
}

func (r *registry) sessionChanges() {
	add(r, route{method: "POST", path: "sessions", id: "create-session", scope: host.ScopeRun, about: "Begin a session, which is then the caller's"}, r.createSession)
	add(r, route{method: "DELETE", path: "sessions/{id}", id: "delete-session", scope: host.ScopeRun, about: "Delete a session with its artifacts; what was recorded of it stays"}, r.changeSession(host.Sessions.Delete))
	add(r, route{method: "POST", path: "sessions/{id}:close", id: "close-session", scope: host.ScopeRun, about: "Let nothing more be added to a session, and end the conversation that it is"}, r.changeSession(host.Sessions.Close))
	add(r, route{method: "POST", path: "sessions/{id}:resume", id: "resume-session", scope: host.ScopeRun, about: "Open a closed session again"}, r.changeSession(host.Sessions.Resume))
	add(r, route{method: "POST", path: "sessions/{id}/artifacts", id: "add-artifact", scope: host.ScopeRun, stays: true, about: "Register a file in a session; an equal one is the artifact that is there"}, r.addArtifact)
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
	a, err := r.register(ctx, q, s.ID, &in.Body)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Artifact }{artifactOf(a)}, nil
}

// register adds what a request has: bytes, the files of a directory, or a file of the host's
// machine, which takes as long as it is large.
func (r *registry) register(ctx context.Context, q *request, id string, spec *ArtifactSpec) (host.Artifact, error) {
	add := host.NewArtifact{Name: spec.Name, Type: spec.Type, Parents: spec.Parents, Labels: spec.Labels}
	if spec.Path == "" && spec.Name == "" {
		return host.Artifact{}, refused(0, plugin.CodeInvalidInput, "an artifact has a name", Place{Pointer: "/name", Detail: "it is missing"})
	}
	if spec.Path != "" {
		if err := q.ofOwner("/path", spec.Path); err != nil {
			return host.Artifact{}, err
		}
		if err := q.api.OwnFile(spec.Path); err != nil {
			return host.Artifact{}, err
		}
		ctx, cancel := r.staying(ctx, q)
		defer cancel()
		return q.api.Sessions().AddFile(ctx, id, spec.Path, add)
	}
	ctx, cancel := context.WithTimeout(ctx, r.WorkTime)
	defer cancel()
	if spec.Files == nil {
		return q.api.Sessions().AddArtifact(ctx, id, bytes.NewReader(spec.Content), add)
	}
	files := make([]host.LaidFile, len(spec.Files))
	for i, f := range spec.Files {
		files[i] = host.LaidFile(f)
	}
	return q.api.Sessions().AddDirectory(ctx, id, spec.Directory, files, add)
}
