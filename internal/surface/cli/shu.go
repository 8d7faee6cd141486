package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// byOp finds the operation of a plugin that is named without one, where its
// contract lets the input name it. Where it does not, the reference is what it was, and no target.
func (c *command) byOp(ctx context.Context, a *app.App, ref string, input json.RawMessage, f runFlags) (string, *plugin.Target) {
	name, constraint, constrained := strings.Cut(ref, "@")
	if strings.Contains(name, "/") {
		return ref, nil
	}
	shown, err := a.As(a.Principal).Plugins().Show(ctx, ref)
	if err != nil {
		return ref, nil
	}
	preparer, prepares := contract.Of[contract.Preparer](shown.Manifest)
	if !prepares {
		return ref, nil
	}
	f.artifacts = nil
	params, _, err := c.compose(ctx, a, nil, session.Session{}, input, f)
	if err != nil {
		return ref, nil // it is said where it counts
	}
	op := preparer.Operation(shown.Manifest, params)
	if op == "" {
		return ref, nil
	}
	full := name + "/" + op
	if constrained {
		full += "@" + constraint
	}
	target, err := a.Registry.Resolve(ctx, full)
	if err != nil {
		return ref, nil
	}
	return full, target
}

// paramsOf takes what the host alone decides out of the input of a call.
func (c *command) paramsOf(t *plugin.Target, input json.RawMessage) (params, overlay json.RawMessage, err error) {
	params, overlay, debug, err := contract.Prepare(t, input)
	c.debug = c.debug || debug
	return params, overlay, err
}

// answerIn prints the answer in the envelope of a contract. The exit status is
// that of any other run.
func (c *command) answerIn(envelope string, t *plugin.Target, res plugin.Result, err error) error {
	var op *plugin.Operation
	if t != nil {
		op = t.Operation
	}
	enveloper := contract.Named(envelope).(contract.Enveloper) // the flags were checked
	var waits unfinished
	if errors.As(err, &waits) || err == nil && res.Status != "" && !res.Status.Ended() {
		if waits.error == nil {
			waits.error = errNotFinished
		}
		if err := c.print(enveloper.Envelope(op, res, nil, c.debug)); err != nil {
			return err
		}
		return reported{waits}
	}
	spelled := err
	if isUsage(err) {
		spelled = &plugin.Error{Code: plugin.CodeInvalidInput, Message: err.Error()}
	}
	if printErr := c.print(enveloper.Envelope(op, res, spelled, c.debug)); printErr != nil {
		return printErr
	}
	return asReported(err)
}

// runOperation runs an operation. With an envelope, whatever keeps it from
// running is in the words of that contract too.
func (c *command) runOperation(ctx context.Context, ref string, f runFlags) error {
	err := c.runOnce(ctx, ref, f)
	var told reported
	if err == nil || !slices.Contains(contract.Names[contract.Enveloper](), f.envelope) || !c.json || errors.As(err, &told) {
		return err
	}
	return c.answerIn(f.envelope, nil, plugin.Result{}, err)
}
