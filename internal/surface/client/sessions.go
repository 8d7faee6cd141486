package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// sessions are the sessions of a remote host.
type sessions struct{ *remote }

// Sessions implements [Host].
func (r *remote) Sessions() Sessions { return sessions{r} }

// maxSent is how many bytes of a file a request has room for.
const maxSent = 3 << 20

// List implements [Sessions]: the newest first, as they are shown.
func (s sessions) List(ctx context.Context) ([]host.Session, error) {
	all, err := rowsOf[host.Session](ctx, s.remote, "sessions", nil, 0, "sessions")
	slices.SortStableFunc(all, func(a, b host.Session) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return all, err
}

// Get implements [Sessions].
func (s sessions) Get(ctx context.Context, id string) (host.Session, error) { return s.Find(ctx, id) }

// Find implements [Sessions].
func (s sessions) Find(ctx context.Context, given string) (out host.Session, err error) {
	return out, s.get(ctx, &out, url.Values{"short": {"true"}}, "sessions", given)
}

// For implements [Sessions]. A session that the call needs begins with the call.
func (s sessions) For(ctx context.Context, t *plugin.Target, id string) (host.Session, error) {
	if id == "" {
		if t == nil || !t.Manifest.Contract.Investigates {
			return host.Session{}, nil
		}
		return s.Create(ctx, host.NewSession{Name: t.Manifest.Name})
	}
	found, err := s.Find(ctx, id)
	if err == nil && found.State != "open" {
		err = plugin.Errorf(plugin.CodeInvalidInput, "session %s is closed; 'mortise sessions resume %s' opens it again", found.ID, found.ID)
	}
	return found, err
}

// Create implements [Sessions].
func (s sessions) Create(ctx context.Context, o host.NewSession) (out host.Session, err error) {
	return out, s.post(ctx, rest.SessionSpec{Name: o.Name, Pillar: o.Pillar}, &out, "sessions")
}

// Close implements [Sessions].
func (s sessions) Close(ctx context.Context, id string) (host.Session, error) {
	return s.changed(ctx, http.MethodPost, id, ":close")
}

// Resume implements [Sessions].
func (s sessions) Resume(ctx context.Context, id string) (host.Session, error) {
	return s.changed(ctx, http.MethodPost, id, ":resume")
}

// Delete implements [Sessions].
func (s sessions) Delete(ctx context.Context, id string) (host.Session, error) {
	return s.changed(ctx, http.MethodDelete, id, "")
}

func (s sessions) changed(ctx context.Context, method, id, verb string) (out host.Session, err error) {
	found, err := s.Find(ctx, id)
	if err != nil {
		return out, err
	}
	return out, s.change(ctx, method, nil, &out, "", "sessions", found.ID+verb)
}

// Artifacts implements [Sessions]: the oldest first.
func (s sessions) Artifacts(ctx context.Context, in string) ([]host.Artifact, error) {
	found, err := s.Find(ctx, in)
	if err != nil {
		return nil, err
	}
	all, err := rowsOf[host.Artifact](ctx, s.remote, "artifacts", nil, 0, "sessions", found.ID, "artifacts")
	slices.SortStableFunc(all, func(a, b host.Artifact) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, err
}

// AtHand implements [Sessions].
func (s sessions) AtHand(ctx context.Context, q *host.RouteQuery, in string) ([]host.Artifact, error) {
	found, err := s.Find(ctx, in)
	if err != nil {
		return nil, err
	}
	q.Session = found.Pillar
	list, err := s.Artifacts(ctx, found.ID)
	for _, artifact := range slices.Backward(list) { // the newest that a tool made
		if q.Last == "" {
			q.Last = artifact.SourceTool
		}
	}
	return list, err
}

// Artifact implements [Sessions].
func (s sessions) Artifact(ctx context.Context, in, name string) (host.Artifact, error) {
	all, err := s.Artifacts(ctx, in)
	if err != nil {
		return host.Artifact{}, err
	}
	return host.NamedArtifact(all, in, name)
}

// FindArtifact implements [Sessions].
func (s sessions) FindArtifact(ctx context.Context, in, given string) (host.Artifact, error) {
	all, err := s.Artifacts(ctx, in)
	if err != nil {
		return host.Artifact{}, err
	}
	return host.ArtifactAmong(all, in, given)
}

// OpenArtifact implements [Sessions].
func (s sessions) OpenArtifact(ctx context.Context, in, name string) (io.ReadCloser, error) {
	res, err := s.send(ctx, asking{method: http.MethodGet, path: at("sessions", in, "artifacts", name)})
	if err != nil {
		return nil, err
	}
	return checked(res)
}

// AddArtifact implements [Sessions].
func (s sessions) AddArtifact(ctx context.Context, in string, r io.Reader, a host.NewArtifact) (host.Artifact, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxSent+1))
	if err != nil {
		return host.Artifact{}, err
	}
	if len(content) > maxSent {
		return host.Artifact{}, plugin.Errorf(plugin.CodeInputTooLarge, "%s has more than the %d bytes that can be sent to %s", a.Name, maxSent, s.where())
	}
	return s.add(ctx, in, rest.ArtifactSpec{Content: content}, a)
}

// AddFile implements [Sessions]. On the socket the host opens the file, as the user that it
// and this process are of.
func (s sessions) AddFile(ctx context.Context, in, path string, a host.NewArtifact) (host.Artifact, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return host.Artifact{}, err
	}
	if s.who.Manner == OverSocket {
		added, err := s.add(ctx, in, rest.ArtifactSpec{Path: whole}, a)
		return added, asTyped(err, whole, path)
	}
	if _, err := os.Stat(whole); errors.Is(err, fs.ErrNotExist) {
		return host.Artifact{}, plugin.Errorf(plugin.CodeNotFound, "there is no file %s", path)
	}
	file, err := host.OpenFile(whole)
	if err != nil {
		return host.Artifact{}, err
	}
	f, err := os.Open(file.Path)
	if err != nil {
		return host.Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", path, err)
	}
	defer f.Close()
	if a.Name == "" {
		a.Name = filepath.Base(whole)
	}
	return s.AddArtifact(ctx, in, f, a)
}

// AddDirectory implements [Sessions].
func (s sessions) AddDirectory(ctx context.Context, in, name string, files []host.LaidFile, a host.NewArtifact) (host.Artifact, error) {
	spec := rest.ArtifactSpec{Files: []rest.Laid{}, Directory: name}
	for _, f := range files {
		spec.Files = append(spec.Files, rest.Laid(f))
	}
	return s.add(ctx, in, spec, a)
}

func (s sessions) add(ctx context.Context, in string, spec rest.ArtifactSpec, a host.NewArtifact) (out host.Artifact, err error) {
	found, err := s.Find(ctx, in)
	if err != nil {
		return out, err
	}
	spec.Name, spec.Type, spec.Parents, spec.Labels = a.Name, a.Type, a.Parents, a.Labels
	return out, s.post(ctx, spec, &out, "sessions", found.ID, "artifacts")
}

// MadeFor implements [Sessions].
func (s sessions) MadeFor(ctx context.Context, in, member, name string, made []plugin.Artifact) (string, error) {
	all, err := s.Artifacts(ctx, in)
	if err != nil {
		return "", err
	}
	return host.MadeAmong(all, member, name, made), nil
}

// View implements [Sessions].
func (s sessions) View(ctx context.Context, in string) (host.SessionView, error) {
	if s.who.Manner != OverSocket {
		return host.SessionView{}, plugin.Errorf(plugin.CodeInvalidInput, "where the plugins of %s find files is known there alone: 'mortise artifacts add' registers one, and --artifact names it by its id", s.base)
	}
	var out rest.Session
	if err := s.get(ctx, &out, url.Values{"short": {"true"}, "directory": {"true"}}, "sessions", in); err != nil {
		return host.SessionView{}, err
	}
	return host.SessionView{Dir: out.Directory}, nil
}

// ledger is the ledger of a remote host.
type ledger struct{ *remote }

// Ledger implements [Host].
func (r *remote) Ledger() Ledger { return ledger{r} }

// List implements [Ledger].
func (l ledger) List(ctx context.Context, f host.EntryQuery) ([]plugin.Entry, int, error) {
	query := url.Values{"newest": {number(f.Limit)}}
	for name, value := range map[string]string{"kind": f.Kind, "subject": f.Subject, "operation": f.Operation, "code": string(f.Code)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.After != 0 {
		query.Set("after", number(int(f.After)))
	}
	if f.Until != 0 {
		query.Set("chain", number(int(f.Chain)))
		query.Set("until", number(int(f.Until)))
	}
	var out rest.Entries
	err := l.get(ctx, &out, query, "ledger", "entries")
	return out.Entries, out.Chains, err
}

// Find implements [Ledger].
func (l ledger) Find(ctx context.Context, given string) ([]plugin.Entry, error) {
	var out rest.Entries
	err := l.get(ctx, &out, url.Values{"id": {given}}, "ledger", "entries")
	return out.Entries, err
}

// offers are what a shell is offered of a remote host.
type offers struct{ *remote }

// Offers implements [Host].
func (r *remote) Offers() Offers { return offers{r} }

// offered is how many are.
const offered = 50

// Calls implements [Offers].
func (o offers) Calls(ctx context.Context) ([]host.Offer, error) {
	rows, err := o.remote.Calls().List(ctx, host.CallFilter{Limit: offered})
	var all []host.Offer
	for _, row := range rows {
		all = append(all, host.Offer{Value: row.ID, About: row.Operation + " " + string(host.StatusOf(row.State))})
	}
	return all, err
}

// Plans implements [Offers].
func (o offers) Plans(ctx context.Context) ([]host.Offer, error) {
	rows, err := o.remote.Plans().List(ctx, host.PlanFilter{Limit: offered})
	var all []host.Offer
	for _, v := range rows {
		all = append(all, host.Offer{Value: v.ID, About: v.Agent + " " + string(v.State)})
	}
	return all, err
}

// Approvals implements [Offers].
func (o offers) Approvals(ctx context.Context) ([]host.Offer, error) {
	rows, err := o.remote.Approvals().Questions(ctx, false, offered)
	var all []host.Offer
	for _, q := range rows {
		all = append(all, host.Offer{Value: q.ID, About: q.Why})
	}
	return all, err
}

// Agents implements [Offers].
func (o offers) Agents(ctx context.Context) ([]host.Offer, error) {
	all, err := o.remote.Agents().List(ctx)
	return each(all, func(a host.Agent) host.Offer { return host.Offer{Value: a.ID, About: string(a.State) + " " + a.Prompt} }), err
}

// Feeds implements [Offers].
func (o offers) Feeds(ctx context.Context) ([]host.Offer, error) {
	all, err := o.remote.Feeds().List(ctx)
	return each(all[:min(len(all), offered)], func(f host.Feed) host.Offer { return host.Offer{Value: f.ID, About: f.Operation + " " + f.Spec} }), err
}

// Memories implements [Offers].
func (o offers) Memories(ctx context.Context, agent string) ([]host.Offer, error) {
	all, err := o.remote.Agents().Memories(ctx, agent, "", offered)
	return each(all, func(m host.Memory) host.Offer { return host.Offer{Value: m.Key, About: m.Content} }), err
}

// Conversations implements [Offers].
func (o offers) Conversations(ctx context.Context, agent string) ([]host.Offer, error) {
	all, err := o.remote.Agents().Conversations(ctx, agent, offered)
	return each(all, func(c host.Conversation) host.Offer {
		return host.Offer{Value: c.Session, About: c.Channel + " " + c.Peer}
	}), err
}

// plugins are the plugins of a remote host.
type plugins struct{ *remote }

// Plugins implements [Host].
func (r *remote) Plugins() Plugins { return plugins{r} }

// Operation implements [Plugins]. A host that cannot be asked says so when the call is made.
func (p plugins) Operation(ctx context.Context, ref string, input json.RawMessage) (string, *plugin.Target) {
	var out rest.Resolved
	if err := p.post(ctx, rest.ResolveSpec{Operation: ref, Input: input}, &out, "operations:resolve"); err != nil || out.Operation == nil {
		return ref, nil
	}
	o := out.Operation
	name, op, _ := strings.Cut(o.Name, "/")
	t := &plugin.Target{Operation: &plugin.Operation{
		Name: op, Title: o.Title, Kind: o.Kind, Description: o.Description, Effects: o.Effects, PolicyTags: o.PolicyTags, Permissions: o.Permissions,
		Input: o.Input, Output: o.Output,
	}}
	t.Manifest = &plugin.Manifest{Name: name, Version: o.Version, Dialect: out.Contract, Operations: []*plugin.Operation{t.Operation}}
	t.Manifest.Contract.Investigates = out.Investigates
	return out.Reference, t
}

// Link implements [Plugins].
func (p plugins) Link(ctx context.Context, path string) (string, error) {
	if p.who.Manner != OverSocket {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s is a path of this machine, and a plugin is linked where its host runs: 'mortise --embedded run %s' runs it here", path, path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	var out rest.Linked
	err = p.post(ctx, rest.LinkSpec{Path: whole}, &out, "plugins:link")
	return out.Name, asTyped(err, whole, path)
}

// Route implements [Plugins].
func (p plugins) Route(ctx context.Context, q host.RouteQuery) (answer host.Route, err error) {
	spec := rest.RouteSpec{Text: q.Text, Pillar: q.Pillar, Of: q.Session, Last: q.Last, Hidden: q.Hidden, Full: true}
	for _, a := range q.Artifacts {
		spec.Files = append(spec.Files, rest.RouteArtifact{ID: a.ID, Type: a.Type, Name: a.Name})
	}
	var out rest.Route
	if err := p.post(ctx, spec, &out, "operations:route"); err != nil {
		return answer, err
	}
	if len(out.Answer) > 0 {
		return answer, json.Unmarshal(out.Answer, &answer)
	}
	answer.Pillar, answer.PillarReason, answer.Facets = out.Pillar, out.Why, out.Facets
	for _, c := range out.Included {
		choice := host.RouteChoice{Operation: c.Operation, Version: c.Version, Score: c.Score}
		answer.Included = append(answer.Included, choice)
	}
	return answer, nil
}
