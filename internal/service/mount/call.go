package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of an answer.
const (
	maxSummary = 2_000
	maxBlocks  = 1_000
)

// call calls a tool. Its error is a [fate] if the server did not answer.
func (s *server) call(ctx context.Context, session *sdk.ClientSession, op *plugin.Operation, call *plugin.Call) (res plugin.Result, err error) {
	ctx, cancel := s.runner.within(ctx)
	defer cancel()
	ctx, rest := lasting(ctx)
	defer rest()
	params := &sdk.CallToolParams{Name: op.Name, Arguments: json.RawMessage("{}")}
	if len(call.Input) > 0 {
		params.Arguments = call.Input
	}
	if call.Observe != nil {
		token := fmt.Sprintf("%s/%d", call.ID, call.Attempt)
		params.SetProgressToken(token)
		defer s.observe(token, call.Observe)()
	}
	got, err := session.CallTool(ctx, params)
	switch {
	case err != nil && answered(ctx, err):
		return res, s.unreachable(ctx, err)
	case err != nil:
		return res, &fate{s.unreachable(ctx, err), sent(err)}
	case got.NeedsInput() || len(got.InputRequests) > 0:
		return res, plugin.Errorf(plugin.CodeServiceDenied, "its server asked for an answer of a person or a model, and a mounted server gets none")
	case len(got.Content) > maxBlocks:
		return res, plugin.Errorf(plugin.CodeOutputTooLarge, "its server answered with more than %d blocks of content", maxBlocks)
	case got.IsError:
		return res, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "tool_error", Message: clip(text(got.Content), maxMessage)}
	}
	res.Status = plugin.Succeeded
	if op.Output == nil {
		if got.Content == nil {
			got.Content = []sdk.Content{}
		}
		res.Data, err = json.Marshal(got.Content)
		return res, err
	}
	if got.StructuredContent == nil {
		return res, plugin.Errorf(plugin.CodeInvalidOutput, "its server says what the tool returns, and returned nothing of that form")
	}
	res.Summary = clip(text(got.Content), maxSummary)
	res.Data, err = json.Marshal(got.StructuredContent)
	return res, err
}

// lasting returns a context that ends with ctx until rest is called, and a moment after that: the
// end of a stream comes after its answer, and a connection is used again only where it was read.
func lasting(ctx context.Context) (longer context.Context, rest func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return longer, func() {
		stop()
		time.AfterFunc(restTime, func() { cancel(nil) })
	}
}

// answered reports whether an error is an answer of the server.
func answered(ctx context.Context, err error) bool {
	var theirs *jsonrpc.Error
	return ctx.Err() == nil && errors.As(err, &theirs) && theirs.Code != 0 && theirs.Code != codeRejected
}

// codeRejected is the code by which the SDK marks errors of a transport, which are no answers.
const codeRejected = -32005

// sent reports whether a server may have had a call that ended with an error.
func sent(err error) bool {
	var f *fate
	return !errors.As(err, &f) || f.sent
}

// text returns the texts among blocks of content.
func text(blocks []sdk.Content) string {
	var texts []string
	for _, b := range blocks {
		if t, is := b.(*sdk.TextContent); is {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}
