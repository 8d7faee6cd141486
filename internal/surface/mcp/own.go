package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// The host's own tools. None of them does what the caller could not do without it.
const (
	callResult = "mortise.call_result" // how a call stands, or ended
	search     = "mortise.search"      // the tools that fit a request
	describe   = "mortise.describe"    // one tool, with its schemas
	call       = "mortise.call"        // a tool by its name
)

// An ownAnswer answers one of them.
type ownAnswer struct {
	title, about string
	input        string
	reads        bool
	answer       func(ctx context.Context, s *session, r *sdk.CallToolRequest, arguments json.RawMessage, key string) (sdk.Result, error)
}

var own map[string]ownAnswer

func init() {
	own = map[string]ownAnswer{
		callResult: {"Outcome of a call", "How a call stands that had not ended: pass the call_id of a result whose status is pending_approval or in_progress. " +
			"It waits up to wait_seconds for the end.", `{"type":"object","properties":{"call_id":{"type":"string","minLength":1,"maxLength":64},` +
			`"wait_seconds":{"type":"number","minimum":0,"maximum":45}},"required":["call_id"],"additionalProperties":false}`, true, answerCallResult},
		search: {"Find tools", "The tools of this host that fit a request, the best first, in a few words. Call one by its name, or with mortise.call.",
			`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":4096},"limit":{"type":"integer","minimum":1,"maximum":20}},` +
				`"required":["query"],"additionalProperties":false}`, true, answerSearch},
		describe: {"Describe a tool", "One tool with the schemas of its arguments and of its result.",
			`{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":128}},"required":["name"],"additionalProperties":false}`, true, answerDescribe},
		call: {"Call a tool", "Call a tool of this host by its name. The host judges, asks about and records the tool that is named, as if it were called directly.",
			`{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":128},"arguments":{"type":"object"}},"required":["name"],"additionalProperties":false}`,
			false, answerCall},
	}
}

// ownTool is one of the host's own tools as clients read it.
func ownTool(name string) *sdk.Tool {
	o, no := own[name], false
	return &sdk.Tool{Name: name, Title: o.title, Description: o.about, InputSchema: json.RawMessage(o.input),
		Annotations: &sdk.ToolAnnotations{Title: o.title, ReadOnlyHint: o.reads, IdempotentHint: o.reads, DestructiveHint: pointer(!o.reads), OpenWorldHint: pick(o.reads, &no, nil)}}
}

func pointer(b bool) *bool { return &b }

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// read reads the arguments of one of the host's own tools.
func read(arguments json.RawMessage, into any) error {
	if err := json2.Unmarshal(arguments, into, json2.RejectUnknownMembers(true)); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the arguments are not those of the tool: %v", err)
	}
	return nil
}

func answerCallResult(ctx context.Context, s *session, r *sdk.CallToolRequest, arguments json.RawMessage, _ string) (sdk.Result, error) {
	var in struct {
		ID   string  `json:"call_id"`
		Wait float64 `json:"wait_seconds"`
	}
	if err := read(arguments, &in); err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	row, err := s.api.Calls().Get(ctx, in.ID, "see")
	if err == nil && (row == nil || !s.mine(row)) {
		err = host.MissingCall(in.ID)
	}
	if err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	limit := min(max(time.Duration(in.Wait*float64(time.Second)), time.Millisecond), s.Wait)
	res, err := s.outcome(ctx, in.ID, limit)
	return s.result(r, nil, res, err), nil
}

// mine reports whether a token may be told of a call: of an operation that it is for, and that
// its own principal made, unless it may read.
func (s *session) mine(row *host.CallRow) bool {
	return s.by.Covers(row.Operation) && (s.by.Has(host.ScopeRead) || row.Principal == s.by.Principal.Member())
}

// A finding is a tool as a search has it.
type finding struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Effects     []string `json:"effects,omitempty"`
}

func answerSearch(ctx context.Context, s *session, _ *sdk.CallToolRequest, arguments json.RawMessage, _ string) (sdk.Result, error) {
	var in struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := read(arguments, &in); err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	all, err := s.tools(ctx)
	if err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	best, err := s.routed(ctx, in.Query)
	if err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	limit := min(max(cmp.Or(in.Limit, 10), 1), 20)
	found := []finding{}
	for _, t := range append(best, worded(all, in.Query)...) {
		f := finding{Name: s.nameOf(t), Title: t.Operation.Title, Description: t.Operation.Description, Effects: t.Operation.Effects}
		if len(found) < limit && !slices.ContainsFunc(found, func(o finding) bool { return o.Name == f.Name }) {
			found = append(found, f)
		}
	}
	return structured(nil, fmt.Sprintf("%d of %d tools fit. %s has the schemas of one.", len(found), len(all), describe), map[string]any{"tools": found, "of": len(all)}), nil
}

// maxWords is how many words of a request are looked for.
const maxWords = 32

// worded returns the tools that have words of a text, those with the most first.
func worded(all []host.Tool, text string) []host.Tool {
	words := strings.Fields(strings.ToLower(text))
	words = words[:min(len(words), maxWords)]
	type hit struct {
		host.Tool
		n int
	}
	var hits []hit
	for _, t := range all {
		op := t.Operation
		about := strings.ToLower(strings.Join(append([]string{t.Name(), op.Title, op.Description}, op.Tags...), " "))
		h := hit{Tool: t}
		for _, w := range words {
			if len(w) > 2 && strings.Contains(about, w) {
				h.n++
			}
		}
		if h.n > 0 {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.n - a.n })
	var found []host.Tool
	for _, h := range hits {
		found = append(found, h.Tool)
	}
	return found
}

func answerDescribe(ctx context.Context, s *session, r *sdk.CallToolRequest, arguments json.RawMessage, _ string) (sdk.Result, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := read(arguments, &in); err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	if _, is := own[in.Name]; is {
		return structured(nil, "", ownTool(in.Name)), nil
	}
	t, is := s.tool(ctx, in.Name)
	if _, takes := inputOf(operationOf(t)); !is || !takes {
		return s.failure(plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no tool %.128q", in.Name)), nil
	}
	return structured(nil, "", s.toolOf(t, s.newest(r))), nil
}

func operationOf(t host.Tool) *plugin.Operation {
	if t.Target == nil {
		return &plugin.Operation{}
	}
	return t.Operation
}

func answerCall(ctx context.Context, s *session, r *sdk.CallToolRequest, arguments json.RawMessage, key string) (sdk.Result, error) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := read(arguments, &in); err != nil {
		return s.failure(plugin.Result{}, err), nil
	}
	if _, is := own[in.Name]; is {
		return s.failure(plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is called by its own name", in.Name)), nil
	}
	if text := bytes.TrimSpace(in.Arguments); len(text) == 0 || string(text) == "null" {
		in.Arguments = json.RawMessage("{}")
	}
	return s.run(ctx, r, in.Name, in.Arguments, key)
}
