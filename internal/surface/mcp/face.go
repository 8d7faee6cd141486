package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// faces returns the operations that the caller may run without a person and that clients see
// as prompts or resources, by their names.
func (s *session) faces(ctx context.Context, keep func(*plugin.MCP) bool) ([]host.Tool, error) {
	all, err := s.api.Plugins().Tools(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	all = slices.DeleteFunc(all, func(t host.Tool) bool {
		return t.Operation.MCP == nil || !keep(t.Operation.MCP) || s.nameOf(t) == "" || t.Verdict == plugin.AllowWithApproval
	})
	slices.SortFunc(all, func(a, b host.Tool) int { return strings.Compare(s.nameOf(a), s.nameOf(b)) })
	return all, nil
}

// plain reports whether clients see an operation as a tool.
func plain(op *plugin.Operation) bool {
	return op.MCP == nil || !op.MCP.Prompt && op.MCP.Resource == ""
}

// compute calls an operation that a client sees as a prompt or a resource. It has no effects.
func (s *session) compute(ctx context.Context, name string, input json.RawMessage) (*plugin.Target, plugin.Result, error) {
	_, target := s.api.Plugins().Operation(ctx, name, input)
	if target == nil || !s.by.Covers(name) {
		return nil, plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no operation %.200q", name)
	}
	began, err := s.api.Sessions().For(ctx, target, "")
	if err != nil {
		return target, plugin.Result{}, err
	}
	res, err := s.invoke(ctx, host.Invocation{
		Operation: target.Name(), Target: target, Input: input, Session: began.ID, Origin: plugin.OriginMCP,
		Begins: func(bool) func(plugin.Event) { return nil },
	})
	if err == nil && res.Status != plugin.Succeeded {
		err = plugin.Errorf(plugin.CodePolicyDenied, "%s waits for a person, as call %s; a prompt or a resource cannot: call it as an operation", name, res.CallID)
	}
	return target, res, err
}

// protocolError is an error as a client gets it, nil where there is none.
func (s *session) protocolError(err error) error {
	if err == nil {
		return nil
	}
	if _, is := err.(*jsonrpc.Error); is {
		return err
	}
	return s.refused(err)
}

// refused is why a prompt or a resource is not there.
func (s *session) refused(err error) error {
	f := s.failureOf(err)
	if f.Code != plugin.CodeInvalidInput {
		return s.failed(err)
	}
	raw, _ := json.Marshal(f)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: string(f.Code) + ": " + f.Message, Data: raw}
}
