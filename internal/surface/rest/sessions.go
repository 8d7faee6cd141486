package rest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/host"
)

// A Session is a session.
type Session struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Owner     string    `json:"owner"`
	Pillar    string    `json:"pillar"`
	State     string    `json:"state" enum:"open,closed"`
	Labels    []string  `json:"labels" nullable:"false" doc:"Those of all its artifacts."`
	Artifacts int       `json:"artifacts" doc:"How many it has."`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Directory string    `json:"directory,omitzero" doc:"Where its processes find its artifacts, where the request asks for that."`
}

// Sessions are a page of them.
type Sessions struct {
	Sessions []Session `json:"sessions" nullable:"false"`
	Next     string    `json:"next_page_token" doc:"Empty on the last page."`
}

// An Artifact is a file that a call made, or that was registered in a session.
type Artifact struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Name       string    `json:"name"`
	SHA256     string    `json:"sha256"`
	Size       int64     `json:"size"`
	SourceTool string    `json:"source_tool" doc:"Empty for a person's file."`
	SourceCall string    `json:"source_call"`
	Parents    []string  `json:"parents" nullable:"false"`
	Labels     []string  `json:"labels" nullable:"false"`
	CreatedAt  time.Time `json:"created_at"`

	Session    string          `json:"session"`
	Metadata   json.RawMessage `json:"metadata" doc:"An object: what is known of it beside that."`
	StorageURI string          `json:"storage_uri,omitzero" doc:"Where its bytes are, if that is an object store; for the owner, on their socket."`
}

// Artifacts are a page of them.
type Artifacts struct {
	Artifacts []Artifact `json:"artifacts" nullable:"false"`
	Next      string     `json:"next_page_token" doc:"Empty on the last page."`
}

func sessionOf(s host.Session) Session {
	return Session{s.ID, s.Name, s.Kind, s.Owner, s.Pillar, s.State, append([]string{}, s.Labels...), s.Artifacts, s.CreatedAt, s.UpdatedAt, ""}
}

func artifactOf(a host.Artifact) Artifact {
	return Artifact{a.ID, a.Type, a.Name, a.SHA256, a.Size, a.SourceTool, a.SourceCall, append([]string{}, a.Parents...), append([]string{}, a.Labels...), a.CreatedAt, a.Session, a.Metadata, ""}
}

// A SessionNamed is a session that is meant.
type SessionNamed struct {
	ID string `path:"id" maxLength:"64"`
}

func (r *registry) sessions() {
	add(r, route{method: "GET", path: "sessions", id: "list-sessions", scope: host.ScopeRead, about: "The sessions that the caller may use, by id"}, r.listSessions)
	add(r, route{method: "GET", path: "sessions/{id}", id: "get-session", scope: host.ScopeRead, about: "A session"}, r.getSession)
	r.sessionChanges()
	add(r, route{method: "GET", path: "sessions/{id}/artifacts", id: "list-artifacts", scope: host.ScopeRead, about: "The artifacts of a session, by id"}, r.listArtifacts)
	addStream(r, route{
		method: "GET", path: "sessions/{id}/artifacts/{artifact}", id: "get-artifact", scope: host.ScopeRead, stays: true, kind: "application/octet-stream",
		about: "The bytes of an artifact, with Repr-Digest; Range and If-None-Match are followed",
	}, r.getArtifact)
}

func (r *registry) listSessions(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body Sessions }, error) {
	last, err := in.after("sessions")
	if err != nil {
		return nil, err
	}
	all, err := q.api.Sessions().List(ctx)
	if err != nil {
		return nil, err
	}
	found := []Session{}
	for _, s := range all {
		if s.ID > last {
			found = append(found, sessionOf(s))
		}
	}
	slices.SortFunc(found, func(a, b Session) int { return strings.Compare(a.ID, b.ID) })
	out := new(struct{ Body Sessions })
	out.Body.Sessions, out.Body.Next = cut(found, in.size(), "", func(s *Session) string { return s.ID }, "sessions")
	return out, nil
}

func (r *registry) getSession(ctx context.Context, q *request, in *struct {
	SessionNamed
	Seen
	Short
	Directory bool `query:"directory" doc:"With where the processes of the session find its artifacts; on the owner's socket alone."`
}) (*Tagged[Session], error) {
	find := q.session
	if in.Short.Short {
		find = q.api.Sessions().Find
	}
	s, err := find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown := sessionOf(s)
	if in.Directory {
		if !q.caller.Owns {
			return nil, q.ofOwner("directory", s.ID)
		}
		view, err := q.api.Sessions().View(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		shown.Directory = view.Dir
	}
	return tagged(q, shown)
}

// session returns a session by its id, which is written whole.
func (q *request) session(ctx context.Context, id string) (host.Session, error) {
	s, err := q.api.Sessions().Get(ctx, id)
	if err == nil && s.ID != id {
		err = missing("session", id)
	}
	if isInvalid(err) {
		err = missing("session", id)
	}
	return s, unlessMissing(err, "session", id)
}

func (r *registry) listArtifacts(ctx context.Context, q *request, in *struct {
	SessionNamed
	Page
}) (*struct{ Body Artifacts }, error) {
	last, err := in.after("artifacts", in.ID)
	if err != nil {
		return nil, err
	}
	s, err := q.session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	all, err := q.api.Sessions().Artifacts(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	found := []Artifact{}
	for _, a := range all {
		if a.ID > last {
			shown := artifactOf(a)
			if q.caller.Owns {
				shown.StorageURI = a.StorageURI
			}
			found = append(found, shown)
		}
	}
	slices.SortFunc(found, func(a, b Artifact) int { return strings.Compare(a.ID, b.ID) })
	out := new(struct{ Body Artifacts })
	out.Body.Artifacts, out.Body.Next = cut(found, in.size(), "", func(a *Artifact) string { return a.ID }, "artifacts", in.ID)
	return out, nil
}

func (r *registry) getArtifact(ctx context.Context, q *request, in *struct {
	SessionNamed
	Artifact string `path:"artifact" maxLength:"64"`
}) (*Streamed, error) {
	s, err := q.session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	a, err := q.api.Sessions().Artifact(ctx, s.ID, in.Artifact)
	if isInvalid(err) || err == nil && a.ID != in.Artifact {
		err = missing("artifact", in.Artifact)
	}
	if err != nil {
		return nil, unlessMissing(err, "artifact", in.Artifact)
	}
	body, err := q.api.Sessions().OpenArtifact(ctx, s.ID, a.ID)
	if err != nil {
		return nil, err
	}
	return &Streamed{func(ctx huma.Context) {
		defer body.Close()
		_, w := humago.Unwrap(ctx)
		q.stays(r.RunTime)
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream") // no browser shows it
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
		h.Set("ETag", `"`+a.SHA256+`"`)
		if sum, err := hex.DecodeString(a.SHA256); err == nil {
			h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
		}
		if of := q.Header.Get("Range"); !oneRange.MatchString(of) {
			q.Header.Del("Range") // several, or none that is a range: the whole answers them too
		}
		http.ServeContent(w, q.Request, "", a.CreatedAt, &forward{Reader: body, size: a.Size})
	}}, nil
}

// oneRange is what is taken for a range of bytes.
var oneRange = pattern.New(`^bytes=([0-9]{1,18}-[0-9]{0,18}|-0*[1-9][0-9]{0,17})$`)

// A forward reader can seek as far as it is only read forward.
type forward struct {
	io.Reader
	size, at, read int64
}

// Seek implements [io.Seeker].
func (f *forward) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	f.at = offset
	return offset, nil
}

// Read implements [io.Reader].
func (f *forward) Read(b []byte) (int, error) {
	if f.at < f.read {
		return 0, errors.New("it can only be read forward")
	}
	if f.at > f.read {
		n, err := io.CopyN(io.Discard, f.Reader, f.at-f.read)
		if f.read += n; err != nil {
			return 0, err
		}
	}
	n, err := f.Reader.Read(b)
	f.read += int64(n)
	f.at = f.read
	return n, err
}
