package service

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

const sessionName = "session"

// Sessions is where the artifacts of sessions are kept. Each method is about the
// session of a call.
type Sessions interface {
	// Open returns the kind of the investigation, "" if it is not set, and what is in it,
	// the oldest first. Each artifact has the path at which the session's processes find
	// it.
	Open(ctx context.Context, call *plugin.Call) (pillar string, all []Artifact, err error)
	// Add copies a file into it. Where no type is given, or one that does not
	// exist, it is inferred. The same bytes from the same source are the same
	// artifact, unless a names the id of a new one.
	Add(ctx context.Context, call *plugin.Call, r io.Reader, a Artifact) (Artifact, error)
}

// An Artifact is a file of a session, which never changes.
type Artifact struct {
	ID         string
	Type       string
	Name       string
	Path       string // where the session's processes find it
	StorageURI string // of an object that is kept elsewhere
	Hash       string // sha256, 64 hexadecimal digits
	Size       int64
	SourceTool string // "" for a person's file
	SourceCall string
	Parents    []string // the artifacts that it may be made of, by id
	Labels     []string
	Metadata   json.RawMessage
}

// A ref is an artifact as a plugin is told of it (Event Mill, ArtifactRef).
type ref struct {
	ID         string         `json:"artifact_id"`
	Type       string         `json:"artifact_type"`
	Path       string         `json:"file_path"`
	StorageURI *string        `json:"storage_uri"`
	SourceTool *string        `json:"source_tool"`
	Metadata   jsontext.Value `json:"metadata"`
}

// refOf tells a plugin of an artifact. The metadata of a person's file has the
// name that it had, where nothing else was said of it.
func refOf(a *Artifact) ref {
	r := ref{ID: a.ID, Type: a.Type, Path: a.Path, StorageURI: orNull(a.StorageURI), SourceTool: orNull(a.SourceTool), Metadata: jsontext.Value(a.Metadata)}
	if len(r.Metadata) == 0 {
		r.Metadata = jsontext.Value("{}")
	}
	if a.SourceTool == "" {
		var said struct {
			Name string `json:"original_filename"`
			At   string `json:"modified_at"` // which the file itself has
		}
		if json2.Unmarshal(r.Metadata, &said, json2.RejectUnknownMembers(true)) == nil {
			name, _ := jsontext.AppendQuote(nil, cmp.Or(said.Name, a.Name)) // of what is no text, the form that is next to it
			r.Metadata = slices.Concat(jsontext.Value(`{"original_filename":`), name, jsontext.Value("}"))
		}
	}
	return r
}

func refsOf(list []Artifact) []ref {
	refs := make([]ref, len(list))
	for i := range list {
		refs[i] = refOf(&list[i])
	}
	return refs
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// An opened is the value of session.open.
type opened struct {
	SessionID string         `json:"session_id"` // "" outside a session
	Pillar    string         `json:"pillar"`
	Artifacts []ref          `json:"artifacts"`
	Config    map[string]any `json:"config"`
	Model     bool           `json:"llm_enabled"`
	Required  string         `json:"llm_required,omitzero"` // "refuse" where a tool that asks for a model does not run without
	Limits    sessionLimits  `json:"limits"`
}

// sessionLimits are the bounds of one call, as a plugin is told of them.
type sessionLimits struct {
	Timeout     float64 `json:"timeout"` // seconds
	MaxOutput   int     `json:"max_output_size"`
	MaxArtifact int64   `json:"max_artifact_size"`
}

// sessionOpen tells a plugin what it works on.
func sessionOpen(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode("session.open", args, &nothing{}); err != nil {
		return nil, err
	}
	answer := opened{SessionID: g.call.Session, Config: map[string]any{}, Limits: g.sessionLimits()}
	if settings := g.broker.Settings[g.target.Manifest.Name]; settings != nil {
		answer.Config = settings
	}
	if g.broker.RefuseWithoutModel {
		answer.Required = "refuse"
	}
	answer.Model = g.broker.Models.Enabled(g.target.Manifest.Name)
	list, err := g.had(ctx)
	if err != nil {
		return nil, err
	}
	answer.Artifacts = refsOf(list)
	g.mu.Lock()
	defer g.mu.Unlock()
	answer.Pillar = g.pillar // the session's, and never the tool's own
	return answer, nil
}

func (g *grant) sessionLimits() sessionLimits {
	limit := g.target.Operation.Timeout
	if own := g.call.Timeout; own > 0 && own < limit {
		limit = own
	}
	l := sessionLimits{Timeout: limit.Round(time.Millisecond).Seconds(), MaxOutput: 4 << 20, MaxArtifact: g.broker.maxArtifact()}
	if g.broker.MaxOutput != nil {
		l.MaxOutput = g.broker.MaxOutput()
	}
	return l
}

// artifacts returns what the call may read: what is in its session or, outside of one,
// the files that its input names. The caller's answer inherits their taint.
func (g *grant) artifacts(ctx context.Context) ([]Artifact, error) {
	if g.call.Session == "" || g.broker.Sessions == nil {
		return g.named(), nil
	}
	pillar, list, err := g.broker.Sessions.Open(ctx, g.call)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.pillar = pillar
	g.mu.Unlock()
	more, _ := keptDry[[]Artifact](g, artifactsKey{g.call.Tenant, g.call.Session})
	list = append(list, more...)
	var labels []string
	for i := range list {
		labels = plugin.Labels(labels, list[i].Labels)
	}
	g.heard(labels)
	return list, nil
}

// named returns the files that were handed on with the call.
func (g *grant) named() []Artifact {
	var list []Artifact
	for _, f := range g.call.Files {
		list = append(list, Artifact{ID: f.Handle, Type: g.typeOf(f.Name), Name: f.Name, Path: f.Path, Size: f.Size})
	}
	return list
}

func (g *grant) typeOf(name string) string {
	if g.broker.TypeOf == nil {
		return "text"
	}
	return g.broker.TypeOf(name, nil)
}
