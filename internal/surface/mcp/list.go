package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	maxName  = 128    // of a tool
	perPage  = 100    // tools
	listLife = 30_000 // ms that a list may be kept by its client
)

// letters are what the name of a tool may be made of.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// nameOf returns the name of the tool of an operation, "" where it can have none.
func nameOf(operation string) string {
	name := strings.Replace(operation, "/", ".", 1)
	if len(name) > maxName || strings.Trim(name, letters) != "" {
		return ""
	}
	return name
}

// operationsOf returns the operations whose tool could have a name: a plugin may have dots in
// its own.
func operationsOf(name string) (all []string) {
	if len(name) > maxName || strings.Trim(name, letters) != "" {
		return nil
	}
	for i, c := range name {
		if c == '.' && i > 0 && i < len(name)-1 {
			all = append(all, name[:i]+"/"+name[i+1:])
		}
	}
	return all
}

// tools returns what the caller may run and a client can call, by the name of the tool. A name
// that two operations would have is no one's, and so is one of the host's own tools.
func (s *session) tools(ctx context.Context) ([]host.Tool, error) {
	all, err := s.api.Plugins().Tools(ctx)
	if err != nil {
		return nil, err
	}
	named := map[string]int{}
	for i := range all {
		named[s.nameOf(all[i])]++
	}
	all = slices.DeleteFunc(all, func(t host.Tool) bool {
		name := s.nameOf(t)
		_, own := own[name]
		_, takes := inputOf(t.Operation)
		return name == "" || named[name] > 1 || own || !takes || !plain(t.Operation)
	})
	slices.SortFunc(all, func(a, b host.Tool) int { return strings.Compare(s.nameOf(a), s.nameOf(b)) })
	return all, nil
}

// tool returns the operation that the name of a tool means to the caller.
func (s *session) tool(ctx context.Context, name string) (found host.Tool, is bool) {
	for _, operation := range s.profile.operationsOf(name) {
		if t, runs := s.api.Plugins().Tool(ctx, operation); runs {
			if is {
				return host.Tool{}, false // two have the name
			}
			found, is = t, true
		}
	}
	return found, is
}

// listTools answers tools/list.
func (s *session) listTools(ctx context.Context, r *sdk.ListToolsRequest) (sdk.Result, error) {
	var all []host.Tool
	var err error
	mode := s.List.Mode
	if mode != ListSearch && mode != ListRouted {
		if all, err = s.tools(ctx); err != nil {
			return nil, s.failed(err)
		}
	}
	shown := []*sdk.Tool{ownTool(callResult)}
	if mode == ListAuto && len(all) > Few {
		mode = ListSearch
	}
	switch mode {
	case ListRouted:
		all, err = s.routed(ctx, s.List.For)
		if err != nil {
			return nil, s.failed(err)
		}
		shown = append(shown, ownTool(search), ownTool(describe), ownTool(call))
	case ListSearch:
		all = nil
		shown = append(shown, ownTool(search), ownTool(describe), ownTool(call))
	}
	newest := s.newest(r)
	for _, t := range all {
		shown = append(shown, s.toolOf(t, newest))
	}
	slices.SortFunc(shown, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	page, next, err := paged(shown, cursor, func(t *sdk.Tool) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return &sdk.ListToolsResult{Cacheable: ownLife, NextCursor: next, Tools: page}, nil
}

// routed returns the tools that the router chooses for a text, the best first: of what the caller
// may know of, what they may run.
func (s *session) routed(ctx context.Context, text string) ([]host.Tool, error) {
	if len(text) > host.MaxRouteText {
		text = strings.ToValidUTF8(text[:host.MaxRouteText], "")
	}
	route, err := s.api.Plugins().Route(ctx, host.RouteQuery{Text: text})
	if err != nil {
		return nil, err
	}
	var chosen []host.Tool
	for _, c := range route.Included {
		if t, is := s.chosen(ctx, c.Operation); is {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// chosen returns the tool of an operation, which has to be one and to have its name alone.
func (s *session) chosen(ctx context.Context, operation string) (host.Tool, bool) {
	named, runs := s.api.Plugins().Tool(ctx, operation)
	if !runs || named.Operation.Hidden || !plain(named.Operation) {
		return named, false
	}
	name := s.nameOf(named)
	_, own := own[name]
	_, takes := inputOf(named.Operation)
	t, is := s.tool(ctx, name)
	return t, is && takes && !own && t.Name() == operation
}

// toolOf is a tool as clients read it. newest says that they speak the newest revision, whose
// results may be any value.
func (s *session) toolOf(t host.Tool, newest bool) *sdk.Tool {
	op := t.Operation
	input, _ := inputOf(op)
	if asks(t.Target) {
		input = withoutAnswers(input)
	}
	tool := &sdk.Tool{Name: s.nameOf(t), Title: op.Title, Description: op.Description, InputSchema: input, Annotations: annotationsOf(t)}
	if output := outputOf(t, newest); output != nil {
		tool.OutputSchema = output
	}
	return tool
}

// annotationsOf says of an operation what its manifest promises. A client believes it because
// it believes the host; policy asks the manifest itself.
func annotationsOf(t host.Tool) *sdk.ToolAnnotations {
	reads := len(t.Operation.Effects) == 0
	destroys := !reads
	open := slices.ContainsFunc(t.Operation.Effects, func(e string) bool { return e != "db_write" && e != "file_write" }) || t.Operation.Auth != nil
	return &sdk.ToolAnnotations{Title: t.Operation.Title, ReadOnlyHint: reads, IdempotentHint: reads, DestructiveHint: &destroys, OpenWorldHint: &open}
}

// inputOf returns the schema of the arguments of an operation, which are an object. takes is
// false where its input is none: such an operation is no tool.
func inputOf(op *plugin.Operation) (schema json.RawMessage, takes bool) {
	if len(op.Input) == 0 {
		return json.RawMessage(`{"type":"object"}`), true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(op.Input, &members) != nil {
		return json.RawMessage(`{"type":"object"}`), string(op.Input) == "true"
	}
	if kind, says := members["type"]; says {
		return op.Input, string(kind) == `"object"`
	}
	members["type"] = json.RawMessage(`"object"`) // arguments are nothing else
	raw, err := json.Marshal(members)
	return raw, err == nil
}

// waiting is the schema of what a call answers that has not ended.
const waiting = `{"type":"object","properties":{"status":{"enum":["pending_approval","in_progress","unknown"]},"call_id":{"type":"string"}},"required":["status","call_id"]}`

// outputOf returns the schema of what a tool answers, nil where it promises nothing. A call
// that may wait for a person, or be left at work, may answer with that instead.
func outputOf(t host.Tool, newest bool) json.RawMessage {
	op := t.Operation
	var members struct {
		Type json.RawMessage `json:"type"`
	}
	if returnsContent(t.Target) || asks(t.Target) {
		return nil // what it answers is not what it returns
	}
	if len(op.Output) == 0 || op.Advisory || t.Manifest.Contract.Verbatim || json.Unmarshal(op.Output, &members) != nil {
		return nil // what it returns is not held against a schema
	}
	object := string(members.Type) == `"object"`
	if !object && !newest { // before 2026-07-28 a structured result is an object
		return nil
	}
	if len(op.Effects) == 0 && t.Verdict == plugin.Allow {
		return op.Output
	}
	if strings.Contains(string(op.Output), `"$`) { // its references would mean something else inside another schema
		return nil
	}
	kind := ""
	if object {
		kind = `"type":"object",`
	}
	return json.RawMessage(`{` + kind + `"anyOf":[` + string(op.Output) + `,` + waiting + `]}`)
}
