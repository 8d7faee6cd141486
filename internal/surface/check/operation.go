package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// A trial is one operation on trial with one of its examples.
type trial struct {
	*checker
	shown registry.Shown
	op    *plugin.Operation
	name  string // plugin/operation
	example
}

// operation makes all checks of one operation.
func (c *checker) operation(ctx context.Context, s registry.Shown, op *plugin.Operation) error {
	name := s.Name + "/" + op.Name
	switch script := s.Manifest.Runner.Kind == "script"; {
	case script && op.Input != nil: // the contract has no other
		c.add(name, schemas, Pass, "")
	case script:
		c.add(name, schemas, Fail, "a tool has a schema of its input")
	case op.Input == nil || op.Output == nil:
		c.add(name, schemas, Warn, "a schema for its input and one for its output let the host refuse what does not fit")
	default:
		c.add(name, schemas, Pass, "")
	}
	if op.Description == "" {
		c.add(name, speaks, Warn, "people and models choose by it")
	}
	found, err := examples(ctx, s, op)
	switch {
	case err != nil:
		c.add(name, runs, Fail, "%s", err)
		return nil
	case len(found) == 0 && op.Kind == plugin.Tool:
		c.add(name, runs, Skip, "there is no examples/%s.request.json, and it does not take an empty input", op.Name)
		return nil
	case len(found) == 0:
		c.add(name, runs, Skip, "there is no examples/%s.request.json", op.Name)
		return nil
	case len(op.Effects) > 0 && !c.options.Effects:
		c.add(name, runs, Skip, "it has effects (%s): they happen with --effects", strings.Join(op.Effects, ", "))
		return nil
	}
	for _, e := range found {
		t := trial{c, s, op, name, e}
		if err := t.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run makes the checks of one example, by the kind of the operation.
func (t *trial) run(ctx context.Context) error {
	switch t.op.Kind {
	case plugin.Agent:
		return t.agent(ctx)
	case plugin.Operator:
		return t.operator(ctx)
	case plugin.Adapter:
		return t.adapter(ctx)
	default:
		return t.tool(ctx)
	}
}

// tell adds a result about the operation; it names the example where there
// is a choice.
func (t *trial) tell(check string, outcome Outcome, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if named := t.example.name != "" && t.example.name != "request" && t.example.name != t.op.Name+".request"; named && detail != "" {
		detail = "examples/" + t.example.name + ".json: " + detail
	} else if named {
		detail = "examples/" + t.example.name + ".json"
	}
	t.add(t.name, check, outcome, "%s", detail)
}

// judge reports a check that passes where err is nil.
func (t *trial) judge(check string, err error) bool {
	if err != nil {
		t.tell(check, Fail, "%s", story(packageOf(t.shown).Dir, err))
		return false
	}
	t.tell(check, Pass, "")
	return true
}

// request returns the call of the example. An agent has no effects, and has to
// see all that it may propose.
func (t *trial) request() request {
	return request{ref: reference(t.shown, t.op), input: t.input, files: t.files, free: !t.options.Effects && t.op.Kind != plugin.Agent}
}

// barred says why the policy of the given configuration kept a call from
// running; "" where it did not.
func (c *checker) barred(a answer) string {
	switch {
	case c.options.Config == "":
		return ""
	case plugin.CodeOf(a.err) == plugin.CodePolicyDenied && a.count(plugin.EntryCallRefused) > 0:
		return "the configuration does not allow it: " + plugin.AsError(a.err).Message
	case a.err == nil && a.Approval != nil:
		return "the configuration has a person asked first, and here is none: " + a.Approval.Why
	}
	return ""
}

// held reports that the example needs an operator that is not here, or that has
// effects while none may happen, or secrets that are not here, or that policy keeps it
// from running.
func (t *trial) held(a answer) bool {
	if why := t.barred(a); why != "" {
		t.tell(runs, Skip, "%s", why)
		return true
	}
	if a.err == nil {
		return false
	}
	if names := t.missing(t.shown.Manifest, t.op); len(names) > 0 {
		t.tell(runs, Skip, "%s", unset(names, a.err))
		return true
	}
	for _, l := range a.below() {
		if l.record.Error == nil || l.kind != plugin.EntryCallRefused {
			continue
		}
		switch l.record.Error.Code {
		case plugin.CodeNotFound:
			t.tell(runs, Skip, "it asks for %s, which is not here: check the tree that has it", l.record.Operation)
			return true
		case plugin.CodePolicyDenied:
			why := "it asks for %s, which has effects: they happen with --effects"
			if t.options.Effects {
				why = "it asks for %s, which the configuration does not allow"
			}
			t.tell(runs, Skip, why, l.record.Operation)
			return true
		}
	}
	return false
}

// asks reports what a call asked of the host and may not have: a service it was
// not granted, an effect it did not declare, or any effect at all where it is
// no operator.
func (t *trial) asks(a answer) {
	for _, l := range a.entries {
		if l.kind == plugin.EntryServiceRefused && l.record.Error != nil {
			t.tell(asks, Fail, "%s: %s", l.record.Error.Code, l.record.Error.Message)
			return
		}
	}
	t.tell(asks, Pass, "")
}

// expects holds an answer against the one that the example expects.
func (t *trial) expects(a answer) {
	switch {
	case t.expected == nil:
	case undetermined(a):
		t.tell(expects, Skip, "it says that its answers differ")
	case !equal(a.Data, t.expected):
		t.tell(expects, Fail, "it answered %s", clip(a.Data))
	default:
		t.tell(expects, Pass, "")
	}
}

// undetermined reports whether the plugin said that the same input need not
// give the same answer.
func undetermined(a answer) bool { return a.Nondeterminism != nil && a.Nondeterminism.Is }

func equal(a, b []byte) bool {
	x, errX := canon.Hash(a)
	y, errY := canon.Hash(b)
	return errX == nil && errY == nil && x == y
}

// clip cuts a value to a line.
func clip(raw []byte) string {
	if text := []rune(string(raw)); len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(raw)
}

// readsFiles reports whether an input has artifacts.
func readsFiles(input []byte) bool {
	var in map[string]jsontext.Value
	return json.Unmarshal(input, &in) == nil && in["artifacts"] != nil
}
