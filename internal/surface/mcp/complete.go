package mcp

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

const maxCompletions = 100

// complete answers completion/complete: with the values that the schema of an argument lists,
// and with the sessions and artifacts that the caller may use.
func (s *session) complete(ctx context.Context, r *sdk.CompleteRequest) (sdk.Result, error) {
	ref, argument := r.Params.Ref, r.Params.Argument
	if ref == nil {
		return nil, wrongParams("ref says what the argument is of")
	}
	var values []string
	var err error
	switch {
	case ref.Type == "ref/prompt":
		var all []host.Tool
		if all, err = s.prompts(ctx); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(t host.Tool) bool { return s.nameOf(t) == ref.Name })
		if i < 0 {
			return nil, wrongParams("there is no such prompt")
		}
		values = choicesOf(all[i].Operation, argument.Name)
	case ref.URI == artifactTemplate || ref.URI == reportTemplate:
		given := map[string]string{}
		if r.Params.Context != nil {
			given = r.Params.Context.Arguments
		}
		if values, err = s.ownValues(ctx, argument.Name, given["session"]); err != nil {
			return nil, s.refused(err)
		}
	default:
		all, err := s.resources(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(t host.Tool) bool { return t.Operation.MCP.Resource == ref.URI })
		if i < 0 {
			return nil, wrongParams("there is no such resource")
		}
		values = choicesOf(all[i].Operation, argument.Name)
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, argument.Value) })
	found := sdk.CompletionResultDetails{Total: len(values), Values: []string{}, HasMore: len(values) > maxCompletions}
	found.Values = append(found.Values, values[:min(len(values), maxCompletions)]...)
	return &sdk.CompleteResult{Completion: found}, nil
}

// choicesOf are the texts that the schema of an argument lists.
func choicesOf(op *plugin.Operation, argument string) (values []string) {
	for _, v := range argumentsOf(op).Properties[argument].Enum {
		if text, is := v.(string); is {
			values = append(values, text)
		}
	}
	return values
}

// ownValues are the ids of sessions, or those of the artifacts of one.
func (s *session) ownValues(ctx context.Context, argument, in string) (values []string, err error) {
	if !s.by.Has(host.ScopeRead) {
		return nil, nil
	}
	switch {
	case argument == "session":
		all, err := s.api.Sessions().List(ctx)
		for _, one := range all {
			values = append(values, one.ID)
		}
		return values, err
	case argument == "artifact" && host.WholeSession(in):
		all, err := s.api.Sessions().Artifacts(ctx, in)
		for _, one := range all {
			values = append(values, one.ID)
		}
		return values, err
	}
	return nil, nil
}
