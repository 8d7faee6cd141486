package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of resources.
const (
	maxListedSessions = 50      // whose artifacts are listed
	maxResource       = 4 << 20 // bytes of an artifact that is read
	maxMatching       = 1 << 22 // steps of finding the operation of a URI
)

// The templates of the host's own resources.
const (
	artifactTemplate = "mortise://sessions/{session}/artifacts/{artifact}"
	reportTemplate   = "mortise://sessions/{session}/report"
)

// ownResource matches the URI of one of the host's own resources.
var ownResource = pattern.New(`^mortise://sessions/(sess_[0-9a-f]{12})/(?:artifacts/(art_[0-9a-f]{8})|report)$`)

// artifactURI is where an artifact is read.
func artifactURI(session, artifact string) string {
	return "mortise://sessions/" + session + "/artifacts/" + artifact
}

// isResource reports whether an operation reads a resource.
func isResource(m *plugin.MCP) bool { return m.Resource != "" }

// ownLife is how long what a caller was told may be kept, by them alone.
var ownLife = sdk.Cacheable{TTLMs: listLife, CacheScope: "private"}

// resources returns the operations that read resources, by their URIs or templates; one that
// two would have is no one's.
func (s *session) resources(ctx context.Context) ([]host.Tool, error) {
	all, err := s.faces(ctx, isResource)
	if err != nil {
		return nil, err
	}
	of := map[string]int{}
	for _, t := range all {
		of[t.Operation.MCP.Resource]++
	}
	all = slices.DeleteFunc(all, func(t host.Tool) bool { return of[t.Operation.MCP.Resource] > 1 })
	slices.SortFunc(all, func(a, b host.Tool) int { return strings.Compare(a.Operation.MCP.Resource, b.Operation.MCP.Resource) })
	return all, nil
}

func isTemplate(t host.Tool) bool { return strings.Contains(t.Operation.MCP.Resource, "{") }

// listResources answers resources/list: what operations read, and the artifacts of the newest
// sessions that the caller may use.
func (s *session) listResources(ctx context.Context, r *sdk.ListResourcesRequest) (sdk.Result, error) {
	all, err := s.resources(ctx)
	if err != nil {
		return nil, err
	}
	listed := []*sdk.Resource{}
	for _, t := range slices.DeleteFunc(all, isTemplate) {
		op := t.Operation
		listed = append(listed, &sdk.Resource{URI: op.MCP.Resource, Name: s.nameOf(t), Title: op.Title, Description: op.Description, MIMEType: op.MCP.MIMEType})
	}
	if s.by.Has(host.ScopeRead) && len(s.profile.Operations) == 0 {
		own, err := s.artifacts(ctx)
		if err != nil {
			return nil, s.failed(err)
		}
		listed = append(listed, own...)
	}
	slices.SortFunc(listed, func(a, b *sdk.Resource) int { return strings.Compare(a.URI, b.URI) })
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	page, next, err := paged(listed, cursor, func(r *sdk.Resource) string { return r.URI })
	if err != nil {
		return nil, err
	}
	return &sdk.ListResourcesResult{Cacheable: ownLife, NextCursor: next, Resources: page}, nil
}

// artifacts are the artifacts and reports of the newest sessions.
func (s *session) artifacts(ctx context.Context) (listed []*sdk.Resource, err error) {
	sessions, err := s.api.Sessions().List(ctx)
	if err != nil {
		return nil, err
	}
	sessions = slices.DeleteFunc(sessions, func(in host.Session) bool { return in.Artifacts == 0 })
	for _, in := range sessions[:min(len(sessions), maxListedSessions)] {
		all, err := s.api.Sessions().Artifacts(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		listed = append(listed, &sdk.Resource{URI: "mortise://sessions/" + in.ID + "/report", Name: "report of " + in.ID, Description: "What the session found, with what proves it.", MIMEType: "text/markdown"})
		for _, a := range all {
			listed = append(listed, &sdk.Resource{URI: artifactURI(in.ID, a.ID), Name: a.Name, Description: "An artifact of the type " + a.Type + ".", MIMEType: mimeOf(a.Type), Size: a.Size})
		}
	}
	return listed, nil
}

// mimeOf returns the media type of what a type of artifacts is.
func mimeOf(kind string) string {
	switch kind {
	case "json_events", "risk_model", "cloud_audit_log":
		return "application/json"
	case "log_stream", "text":
		return "text/plain"
	case "html_report":
		return "text/html"
	case "pdf_report":
		return "application/pdf"
	case "pcap":
		return "application/vnd.tcpdump.pcap"
	}
	return "application/octet-stream"
}

// listTemplates answers resources/templates/list.
func (s *session) listTemplates(ctx context.Context, r *sdk.ListResourceTemplatesRequest) (sdk.Result, error) {
	all, err := s.resources(ctx)
	if err != nil {
		return nil, err
	}
	listed := []*sdk.ResourceTemplate{}
	for _, t := range all {
		if op := t.Operation; isTemplate(t) {
			listed = append(listed, &sdk.ResourceTemplate{URITemplate: op.MCP.Resource, Name: s.nameOf(t), Title: op.Title, Description: op.Description, MIMEType: op.MCP.MIMEType})
		}
	}
	if s.by.Has(host.ScopeRead) {
		listed = append(listed, &sdk.ResourceTemplate{URITemplate: artifactTemplate, Name: "artifact", Description: "An artifact of a session."},
			&sdk.ResourceTemplate{URITemplate: reportTemplate, Name: "report", Description: "What a session found, with what proves it.", MIMEType: "text/markdown"})
	}
	slices.SortFunc(listed, func(a, b *sdk.ResourceTemplate) int { return strings.Compare(a.URITemplate, b.URITemplate) })
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	page, next, err := paged(listed, cursor, func(r *sdk.ResourceTemplate) string { return r.URITemplate })
	if err != nil {
		return nil, err
	}
	return &sdk.ListResourceTemplatesResult{Cacheable: ownLife, NextCursor: next, ResourceTemplates: page}, nil
}

// readResource answers resources/read.
func (s *session) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (sdk.Result, error) {
	ctx, cancel := s.gone(ctx)
	defer cancel()
	out := new(sdk.ReadResourceResult)
	if s.newest(r) {
		if err := json.Unmarshal([]byte(`{"resultType":"complete"}`), out); err != nil {
			return nil, err
		}
	}
	out.Cacheable = sdk.Cacheable{TTLMs: 0, CacheScope: "private"} // each read is a call of its own
	read := s.readOf
	if strings.HasPrefix(r.Params.URI, "mortise:") {
		read = s.readOwn
	}
	contents, call, err := read(ctx, r.Params.URI)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	if err != nil {
		return nil, s.refused(err)
	}
	if call != "" {
		out.Meta = sdk.Meta{callMeta: call}
	}
	contents.URI = r.Params.URI
	out.Contents = []*sdk.ResourceContents{contents}
	return out, nil
}

// readOf has the operation called that reads the resource of a URI: one with that very URI
// before those with a template.
func (s *session) readOf(ctx context.Context, uri string) (*sdk.ResourceContents, string, error) {
	missing := plugin.Errorf(plugin.CodeNotFound, "there is no resource %.256q", uri)
	if len(uri) > maxURI {
		return nil, "", missing
	}
	all, err := s.resources(ctx)
	if err != nil {
		return nil, "", err
	}
	var found *host.Tool
	var input map[string]string
	work := budget.NewSteps(ctx, maxMatching)
	for i := range all {
		vars, fits := matched(work, all[i].Operation.MCP.Resource, uri)
		if fits && (found == nil || len(vars) < len(input)) {
			found, input = &all[i], vars
		}
	}
	if err := work.Err(); err != nil {
		return nil, "", plugin.Errorf(plugin.CodeLimitExceeded, "finding the resource %.256q %w", uri, err)
	}
	if found == nil {
		return nil, "", missing
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return nil, "", err
	}
	_, res, err := s.compute(ctx, found.Name(), raw)
	if err != nil {
		return nil, "", err
	}
	return contentsOf(res.Data, found.Operation.MCP.MIMEType), res.CallID, nil
}

var templateVariable = pattern.New(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// matched returns what the variables of a template are in a URI, which fits or not.
func matched(work *budget.Steps, template, uri string) (vars map[string]string, fits bool) {
	vars = map[string]string{}
	form, last := "^", 0
	var names []string
	for _, at := range templateVariable.FindAllStringSubmatchIndex(template, -1) {
		form += regexp.QuoteMeta(template[last:at[0]]) + `([^/?#]+)`
		names, last = append(names, template[at[2]:at[3]]), at[1]
	}
	whole, err := pattern.Compile(form + regexp.QuoteMeta(template[last:]) + "$")
	if err != nil {
		return nil, false
	}
	parts := whole.Submatch(work, uri)
	if parts == nil {
		return nil, false
	}
	for i, name := range names {
		value, err := url.PathUnescape(parts[i+1])
		if err != nil {
			return nil, false
		}
		vars[name] = value
	}
	return vars, true
}

// contentsOf is the data of a result as a resource: a text, bytes as {"$bytes": base64}, or
// JSON.
func contentsOf(data json.RawMessage, kind string) *sdk.ResourceContents {
	pickType := func(otherwise string) string {
		if kind != "" {
			return kind
		}
		return otherwise
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return &sdk.ResourceContents{MIMEType: pickType("text/plain"), Text: text}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil && len(members) == 1 && json.Unmarshal(members["$bytes"], &text) == nil {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return &sdk.ResourceContents{MIMEType: pickType("application/octet-stream"), Blob: raw}
		}
	}
	return &sdk.ResourceContents{MIMEType: pickType("application/json"), Text: string(data)}
}

// readOwn reads an artifact or a report of a session, which the caller may use.
func (s *session) readOwn(ctx context.Context, uri string) (*sdk.ResourceContents, string, error) {
	parts := ownResource.FindStringSubmatch(uri)
	if parts == nil || !s.by.Has(host.ScopeRead) {
		return nil, "", plugin.Errorf(plugin.CodeNotFound, "there is no resource %.256q", uri)
	}
	in, artifact := parts[1], parts[2]
	if artifact == "" {
		text, err := s.report(ctx, in)
		return &sdk.ResourceContents{MIMEType: "text/markdown", Text: text}, "", err
	}
	a, err := s.api.Sessions().Artifact(ctx, in, artifact)
	if err != nil {
		return nil, "", err
	}
	if a.Size > maxResource {
		return nil, "", plugin.Errorf(plugin.CodeLimitExceeded, "the artifact has %d bytes, of which a resource has %d at most: get it over the API", a.Size, maxResource)
	}
	from, err := s.api.Sessions().OpenArtifact(ctx, in, a.ID)
	if err != nil {
		return nil, "", err
	}
	defer from.Close()
	raw, err := io.ReadAll(io.LimitReader(from, maxResource+1))
	if err != nil {
		return nil, "", err
	}
	kind := mimeOf(a.Type)
	if utf8.Valid(raw) && (strings.HasPrefix(kind, "text/") || kind == "application/json") {
		return &sdk.ResourceContents{MIMEType: kind, Text: string(raw)}, "", nil
	}
	return &sdk.ResourceContents{MIMEType: kind, Blob: raw}, "", nil
}

// report is the report of a session, in Markdown.
func (s *session) report(ctx context.Context, in string) (string, error) {
	sessions := s.api.Sessions()
	of, err := sessions.Get(ctx, in)
	if err != nil {
		return "", err
	}
	from := host.ReportSource{Session: of, Find: s.api.Ledger().Find}
	if from.Artifacts, err = sessions.Artifacts(ctx, of.ID); err != nil {
		return "", err
	}
	from.Open = func(ctx context.Context, artifact string) (io.ReadCloser, error) {
		return sessions.OpenArtifact(ctx, of.ID, artifact)
	}
	from.Newest = host.NewestCalls(s.api.Ledger().List)
	r, err := host.ReportOf(ctx, from)
	if err != nil {
		return "", err
	}
	raw, err := r.Write("md")
	return string(raw), err
}

// links are the artifacts that a call made in a session, as a client can read them.
func (s *session) links(in string, made []plugin.Artifact) (all []sdk.Content) {
	if in == "" || !s.by.Has(host.ScopeRead) {
		return nil
	}
	for _, a := range made[:min(len(made), maxBlocks)] {
		if a.ID != "" {
			size := a.Size
			all = append(all, &sdk.ResourceLink{URI: artifactURI(in, a.ID), Name: cmp.Or(a.Name, a.ID), MIMEType: mimeOf(a.Type), Size: &size})
		}
	}
	return all
}

// paged returns a page of what is sorted by its names, and the cursor of the next one.
func paged[T any](all []T, cursor string, name func(T) string) (page []T, next string, err error) {
	after := ""
	if cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || len(raw) == 0 {
			return nil, "", wrongParams("there is no page of this cursor")
		}
		after = string(raw)
	}
	page = []T{}
	for _, one := range all {
		if name(one) <= after {
			continue
		}
		if len(page) == perPage {
			return page, base64.RawURLEncoding.EncodeToString([]byte(name(page[perPage-1]))), nil
		}
		page = append(page, one)
	}
	return page, "", nil
}
