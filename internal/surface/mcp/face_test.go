package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const facesManifest = `name: faces
version: 1.0.0
owner: test
description: A test.
runner: {kind: process, command: [%q, faces, x]}
operations:
  greet:
    description: A greeting.
    mcp: {prompt: true}
    input: {type: object, properties: {name: {type: string}, tone: {type: string, enum: [warm, wry, cold]}}, required: [name]}
  closed: {description: A prompt that no policy allows., mcp: {prompt: true}}
  note: {description: A note., mcp: {resource: "notes://{id}/text"}}
  today: {description: The note of today., mcp: {resource: "notes://today/text"}}
  locked: {description: A note that no policy allows., mcp: {resource: "notes://locked"}}
  blocks: {description: Content., mcp: {content: true}}
  ask: {description: Ask twice., no_cache: true, mcp: {asks: true}}
  secretive: {description: Ask twice too., no_cache: true, mcp: {asks: true}}
`

type asking struct {
	Topic   string `json:"topic,omitempty"`
	State   string `json:"state,omitempty"`
	Answers map[string]struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content,omitempty"`
	} `json:"answers,omitempty"`
}

// facesPlugin has operations that clients see as prompts, resources, content and questions.
func facesPlugin() {
	p := mortise.New("faces", "1.0.0")
	id := func(_ *mortise.Call, in struct {
		ID string `json:"id,omitempty"`
	}) (string, error) {
		return "note " + in.ID, nil
	}
	mortise.Tool(p, "greet", "", func(_ *mortise.Call, in map[string]string) (string, error) {
		return "Greet " + in["name"] + " " + in["tone"], nil
	})
	mortise.Tool(p, "closed", "", func(*mortise.Call, struct{}) (string, error) { return "closed", nil })
	mortise.Tool(p, "note", "", id)
	mortise.Tool(p, "today", "", id)
	mortise.Tool(p, "locked", "", id)
	mortise.Tool(p, "blocks", "", func(_ *mortise.Call, in struct {
		URI  string `json:"uri"`
		Type string `json:"type"`
	}) ([]map[string]any, error) {
		return []map[string]any{{"type": in.Type, "uri": in.URI, "name": "n"}}, nil
	})
	ask := func(_ *mortise.Call, in asking) (map[string]any, error) {
		form := func(name, state string) map[string]any {
			return map[string]any{"state": state, "ask": map[string]any{name: map[string]any{
				"message": "Which " + name + "?", "schema": map[string]any{"type": "object", "properties": map[string]any{"it": map[string]any{"type": "string"}}}}}}
		}
		said := func(name string) string {
			if a := in.Answers[name]; a.Action != "accept" {
				return a.Action
			}
			return fmt.Sprint(in.Answers[name].Content["it"])
		}
		switch {
		case in.State == "":
			return form("color", "first"), nil
		case in.State == "first":
			return form("size", "color="+said("color")), nil
		}
		return map[string]any{"topic": in.Topic, "said": in.State + " size=" + said("size")}, nil
	}
	mortise.Tool(p, "ask", "", ask)
	mortise.Tool(p, "secretive", "", ask)
	p.Run()
}

// faces registers that plugin.
func (b *bench) faces() {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf(facesManifest, self))
	report, err := b.app.Registry.Register(b.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := report.Registered[0].NotEnabled; err != nil {
		b.Fatal(err)
	}
}

// code is that of an error of the protocol, 0 where it is none.
func code(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// A prompt and a resource are calls of their operations: those that the caller may run are
// listed and read, on the record, and others are as if they were not there.
func TestPromptsAndResourcesAreCallsOfOperations(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	b.faces()
	token := b.token("ann", "run")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			s := b.connect(token, revision, "", nil)
			if got := names(t, s); slices.Contains(got, "faces.greet") || slices.Contains(got, "faces.note") || !slices.Contains(got, "faces.ask") {
				t.Errorf("the tools are %q", got)
			}
			prompts, err := s.ListPrompts(t.Context(), nil)
			if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "faces.greet" {
				t.Fatalf("the prompts are %+v, %v", prompts, err)
			}
			if a := prompts.Prompts[0].Arguments; len(a) != 2 || a[0].Name != "name" || !a[0].Required || a[1].Name != "tone" || a[1].Required {
				t.Errorf("its arguments are %+v", a)
			}
			got, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "faces.greet", Arguments: map[string]string{"name": "Bo", "tone": "wry"}})
			if err != nil || got.Messages[0].Content.(*sdk.TextContent).Text != "Greet Bo wry" {
				t.Fatalf("it renders %+v, %v", got, err)
			}
			if row := b.record(&sdk.CallToolResult{Meta: got.Meta}); row.Operation != "faces/greet" || row.Origin != "mcp" || row.Principal != "ann" {
				t.Errorf("on the record it is %+v", row)
			}
			for what, p := range map[string]*sdk.GetPromptParams{
				"one that no policy allows": {Name: "faces.closed"}, "one that is none": {Name: "faces.absent"}, "a tool": {Name: "desk.upper"},
				"an argument too few": {Name: "faces.greet"}, "a value that the schema does not have": {Name: "faces.greet", Arguments: map[string]string{"name": "Bo", "tone": "loud"}},
			} {
				if _, err := s.GetPrompt(t.Context(), p); code(err) != jsonrpc.CodeInvalidParams {
					t.Errorf("%s: %v", what, err)
				}
			}
			resources, err := s.ListResources(t.Context(), nil)
			if err != nil || len(resources.Resources) != 1 || resources.Resources[0].URI != "notes://today/text" {
				t.Errorf("the resources are %+v, %v", resources, err)
			}
			templates, err := s.ListResourceTemplates(t.Context(), nil)
			if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "notes://{id}/text" {
				t.Errorf("the templates are %+v, %v", templates, err)
			}
			for uri, want := range map[string]string{"notes://a%20b/text": "note a b", "notes://today/text": "note "} {
				read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if err != nil || read.Contents[0].Text != want || read.Contents[0].URI != uri {
					t.Errorf("%s is %+v, %v", uri, read, err)
				}
			}
			for _, uri := range []string{"notes://locked", "notes://a/b/text", "notes://absent", "mortise://sessions/sess_000000000000/report", "file:///etc/passwd"} {
				if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); code(err) != jsonrpc.CodeInvalidParams {
					t.Errorf("%s: %v", uri, err)
				}
			}
			done, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "faces.greet"}, Argument: sdk.CompleteParamsArgument{Name: "tone", Value: "w"}})
			if err != nil || !slices.Equal(done.Completion.Values, []string{"warm", "wry"}) {
				t.Errorf("w is completed to %+v, %v", done, err)
			}
		})
	}
}

// What a plugin returns as content is checked: it speaks for no resource of the host.
func TestContentOfAPluginIsChecked(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	b.faces()
	s := b.connect(b.token("ann", "run"), "", "", nil)
	res, _, _ := call(t, s, "faces.blocks", `{"type":"resource_link","uri":"notes://today/text"}`)
	if link, is := res.Content[0].(*sdk.ResourceLink); !is || link.URI != "notes://today/text" || res.IsError {
		t.Errorf("a link is %+v", res.Content)
	}
	for _, arguments := range []string{
		`{"type":"resource_link","uri":"mortise://sessions/sess_000000000000/report"}`, `{"type":"resource_link","uri":"file:///etc/passwd"}`,
		`{"type":"resource_link","uri":"MORTISE://x"}`, `{"type":"resource_link","uri":"no scheme"}`, `{"type":"image","uri":""}`, `{"type":"frame","uri":"notes://x"}`,
	} {
		if res, said, _ := call(t, s, "faces.blocks", arguments); !res.IsError || !strings.HasPrefix(said, "invalid_output: ") {
			t.Errorf("%s: %q", arguments, said)
		}
	}
}

// An operation asks, the client's user answers, and the operation is called again with that.
// What it said before cannot be changed, used for another call, or answered by the arguments.
func TestAnOperationAsksItsUser(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	b.faces()
	ann := b.token("ann", "run")
	answers := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		if !strings.HasPrefix(r.Params.Message, "faces/ask asks: Which ") {
			t.Errorf("it asks %q", r.Params.Message)
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"it": "x"}}, nil
	}}
	_, said, data := call(t, b.connect(ann, "", "", answers), "faces.ask", `{"topic":"hats"}`)
	if data["said"] != "color=x size=x" || data["topic"] != "hats" {
		t.Errorf("it answers %q", said)
	}
	manual := func(token string) *sdk.ClientSession {
		return b.connect(token, "", "", &sdk.ClientOptions{MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, ElicitationHandler: answers.ElicitationHandler})
	}
	s := manual(ann)
	first, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "faces.ask", Arguments: map[string]any{"topic": "hats"}})
	if err != nil || !first.NeedsInput() || first.RequestState == "" || first.InputRequests["color"] == nil {
		t.Fatalf("it asks %+v, %v", first, err)
	}
	given := sdk.InputResponseMap{"color": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"it": "red"}}}
	for what, c := range map[string]struct {
		session *sdk.ClientSession
		name    string
		topic   string
		state   string
	}{
		"a state that was changed":     {s, "faces.ask", "hats", first.RequestState + "x"},
		"a state that is none":         {s, "faces.ask", "hats", "first"},
		"the state of another caller":  {manual(b.token("ben", "run")), "faces.ask", "hats", first.RequestState},
		"the state of other arguments": {s, "faces.ask", "boots", first.RequestState},
		"the state of another tool":    {s, "faces.secretive", "hats", first.RequestState},
	} {
		_, err := c.session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.name, Arguments: map[string]any{"topic": c.topic}, InputResponses: given, RequestState: c.state})
		if code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", what, err)
		}
	}
	second, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "faces.ask", Arguments: map[string]any{"topic": "hats"}, InputResponses: given, RequestState: first.RequestState})
	if err != nil || second.InputRequests["size"] == nil {
		t.Fatalf("the second question is %+v, %v", second, err)
	}
	declined := sdk.InputResponseMap{"size": &sdk.ElicitResult{Action: "decline", Content: map[string]any{"it": "ignored"}}}
	third, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "faces.ask", Arguments: map[string]any{"topic": "hats"}, InputResponses: declined, RequestState: second.RequestState})
	if err != nil || third.StructuredContent.(map[string]any)["said"] != "color=red size=decline" {
		t.Errorf("in the end it says %+v, %v", third, err)
	}
	for _, arguments := range []string{`{"answers":{"color":{"action":"accept","content":{"it":"red"}}}}`, `{"state":"first"}`} {
		if res, said, _ := call(t, s, "faces.ask", arguments); !res.IsError || !strings.HasPrefix(said, "invalid_input: ") {
			t.Errorf("%s as arguments: %q", arguments, said)
		}
	}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(tool.InputSchema)
		if tool.Name == "faces.ask" && (strings.Contains(string(raw), "answers") || !strings.Contains(string(raw), "topic") || tool.OutputSchema != nil) {
			t.Errorf("it is listed as %s, %v", raw, tool.OutputSchema)
		}
	}
	if _, err := b.connect(ann, "", "", nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "faces.ask"}); code(err) != sdk.CodeMissingRequiredClientCapabilities {
		t.Errorf("a client that cannot be asked: %v", err)
	}
	if res, said, _ := call(t, b.connect(ann, "2025-11-25", "", answers), "faces.ask", `{}`); !res.IsError || !strings.HasPrefix(said, "needs_context: ") {
		t.Errorf("a client of an earlier revision: %q", said)
	}
}

// A call may name a session, which has to be one that its caller may use; the artifacts of
// sessions are resources for those who may read them.
func TestSessionsOverTheProtocol(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	as := func(who string) host.API { p := bob; p.ID = who; return b.app.Host.As(p) }
	in, err := as("ann").Sessions().Create(t.Context(), host.NewSession{Name: "case"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := as("ann").Sessions().AddArtifact(t.Context(), in.ID, strings.NewReader("one line\n"), host.NewArtifact{Name: "a.log", Type: "text"})
	if err != nil {
		t.Fatal(err)
	}
	uri := "mortise://sessions/" + in.ID + "/artifacts/" + a.ID
	ann, ben, blind := b.connect(b.token("ann", "run read"), "", "", nil), b.connect(b.token("ben", "run read"), "", "", nil), b.connect(b.token("ann", "run"), "", "", nil)
	named := func(s *sdk.ClientSession, session any) (*sdk.CallToolResult, error) {
		return s.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{mcp.SessionMeta: session}, Name: "desk.upper", Arguments: map[string]any{"text": "a"}})
	}
	res, err := named(ann, in.ID)
	if err != nil || res.IsError {
		t.Fatalf("ann's call in her session: %+v, %v", res, err)
	}
	if row := b.record(res); row.Session != in.ID {
		t.Errorf("on the record it is of the session %q", row.Session)
	}
	if res, err := named(ben, in.ID); err != nil || !res.IsError || !strings.HasPrefix(saidOf(res), "not_found: ") {
		t.Errorf("ben's call in her session: %+v, %v", res, err)
	}
	for _, wrong := range []any{"sess_", in.ID[:9], 7, ""} {
		if _, err := named(ann, wrong); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("the session %v: %v", wrong, err)
		}
	}
	read, err := ann.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil || read.Contents[0].Text != "one line\n" {
		t.Errorf("ann reads %+v, %v", read, err)
	}
	list := func(s *sdk.ClientSession) bool {
		all, err := s.ListResources(t.Context(), nil)
		return err == nil && slices.ContainsFunc(all.Resources, func(r *sdk.Resource) bool { return r.URI == uri })
	}
	if !list(ann) || list(ben) || list(blind) {
		t.Errorf("it is listed for ann %t, ben %t, a token that may not read %t", list(ann), list(ben), list(blind))
	}
	for who, s := range map[string]*sdk.ClientSession{"ben": ben, "a token that may not read": blind} {
		if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%s reads it: %v", who, err)
		}
	}
	done, err := ann.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "mortise://sessions/{session}/artifacts/{artifact}"}, Argument: sdk.CompleteParamsArgument{Name: "session", Value: in.ID[:8]}})
	if err != nil || !slices.Equal(done.Completion.Values, []string{in.ID}) {
		t.Errorf("the session is completed to %+v, %v", done, err)
	}
}

// A profile shows less than its caller may run, under names that it may shorten, and gives
// nothing that the caller has not.
func TestAProfileShowsLess(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	b.faces()
	token := b.token("ann", "run")
	s := b.connect(token, "", "?profile=faces", nil)
	if got := names(t, s); !slices.Equal(got, []string{"ask", "blocks", "mortise.call_result", "secretive"}) {
		t.Errorf("with short names the tools are %q", got)
	}
	if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Bo"}}); err != nil {
		t.Errorf("a prompt by its short name: %v", err)
	}
	for _, name := range []string{"upper", "desk.upper", "faces.ask"} {
		if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name}); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%s through the profile: %v", name, err)
		}
	}
	one := b.connect(token, "", "?profile=one", nil)
	if got := names(t, one); !slices.Equal(got, []string{"desk.upper", "mortise.call_result"}) {
		t.Errorf("of one that may be run and one that may not the tools are %q", got)
	}
	if res, said, _ := call(t, one, "desk.denied", `{"text":"x"}`); !res.IsError || !strings.HasPrefix(said, "policy_denied: ") {
		t.Errorf("what no policy allows, through a profile that names it: %q", said)
	}
	narrow := b.connect(b.token("ann", "run", "desk/line"), "", "?profile=one", nil)
	if got := names(t, narrow); !slices.Equal(got, []string{"mortise.call_result"}) {
		t.Errorf("with a token that is for another operation the tools are %q", got)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/mcp?profile=absent", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := bearer(token).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("a profile that there is not: %d", res.StatusCode)
	}
}
