package mortise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// A Plugin is a named set of operations and hooks, which are added before Run.
type Plugin struct {
	name, version string
	operations    map[string]*operation
	order         []string
	hooks         map[string]*hook // by event
	heard         []string         // the events of these, in the order in which they were added

	// Description says what the plugin is for.
	Description string
	// Capabilities are the host services the plugin asks for, such as "cache".
	Capabilities []string
	// Concurrency is how many calls run at a time, each in a goroutine of its
	// own; 64 where it is 0.
	Concurrency int
}

// An operation is one function with its description, and what an operator may
// have beside it.
type operation struct {
	described describedOperation
	input     reflect.Type
	run       func(c *Call, input jsontext.Value) (any, error)
	preview   func(c *Call, input jsontext.Value) (any, error)
	reconcile func(c *Call, input jsontext.Value, effects []Effect) (Reconciled, error)
}

// New returns a plugin without operations. The name and version are those of
// its manifest.
func New(name, version string) *Plugin {
	return &Plugin{name: name, version: version, operations: map[string]*operation{}}
}

// An Option says more about an operation than its types do.
type Option func(*operation)

// Effects declares consequences, such as "gmail_send".
func Effects(names ...string) Option {
	return func(o *operation) { o.described.Effects = append(o.described.Effects, names...) }
}

// PolicyTags declares labels that policies read.
func PolicyTags(names ...string) Option {
	return func(o *operation) { o.described.PolicyTags = append(o.described.PolicyTags, names...) }
}

// Permissions declares scopes that a caller must hold.
func Permissions(names ...string) Option {
	return func(o *operation) { o.described.Permissions = append(o.described.Permissions, names...) }
}

// Labels declares what the operation's answers are tainted with: "untrusted"
// for what comes from outside, "private" for what is not everybody's to see.
func Labels(names ...string) Option {
	return func(o *operation) { o.described.Labels = append(o.described.Labels, names...) }
}

// Timeout sets the time limit: fast, medium, slow or a duration such as "45s".
func Timeout(limit string) Option { return func(o *operation) { o.described.Timeout = limit } }

// Tool adds an operation that computes and has no effects. In is a struct, a
// map or a [jsontext.Value]; a property is optional if its field has omitempty,
// omitzero or a pointer type, and is described by the field's doc tag. A
// [time.Duration] is a string such as "1m30s"; a type with MarshalText is a
// string, and one with MarshalJSON may be anything.
//
// An error that is or wraps an [*Error] fails the call with that error's own
// code; any other fails it with the name of its type.
func Tool[In, Out any](p *Plugin, name, description string, fn func(*Call, In) (Out, error), options ...Option) {
	add(p, "tool", name, description, fn, options)
}

// Operator adds an operation that has effects, which [Effects] declares. See
// [WithPreview] and [WithReconcile] for what may stand beside it.
func Operator[In, Out any](p *Plugin, name, description string, fn func(*Call, In) (Out, error), options ...Option) {
	add(p, "operator", name, description, fn, options)
}

// Adapter adds an operation that translates: an event from elsewhere into a
// [SubmitRequest], or an outcome into a request to have it written.
func Adapter[In, Out any](p *Plugin, name, description string, fn func(*Call, In) (Out, error), options ...Option) {
	add(p, "adapter", name, description, fn, options)
}

func add[In, Out any](p *Plugin, kind, name, description string, fn func(*Call, In) (Out, error), options []Option) {
	p.add(name, &operation{
		described: describedOperation{
			Kind:        kind,
			Description: description,
			Input:       readShape(reflect.TypeFor[In]()).schema(),
			Output:      outputSchema(reflect.TypeFor[Out]()),
		},
		input: reflect.TypeFor[In](),
		run:   decoding(fn),
	}, options)
}

// add keeps an operation; a second one of the same name takes the place of the first.
func (p *Plugin) add(name string, op *operation, options []Option) {
	for _, option := range options {
		option(op)
	}
	op.check(name)
	if p.operations[name] == nil {
		p.order = append(p.order, name)
	}
	p.operations[name] = op
}

// check panics for options that cannot be right: a mistake of the programmer
// that shows at start-up.
func (op *operation) check(name string) {
	d := op.described
	switch {
	case d.Kind != "operator" && (d.Preview || d.Reconcile || d.Brokered):
		panic(fmt.Sprintf("mortise: %s is of kind %s; only an operator has a preview, reconciles or is brokered", name, d.Kind))
	case d.Kind != "agent" && (d.AllowedActions != nil || d.ContextFields != nil):
		panic(fmt.Sprintf("mortise: %s is of kind %s; only an agent has allowed actions and context fields", name, d.Kind))
	}
}

// decoding returns fn as a function of its input as it came.
func decoding[In, Out any](fn func(*Call, In) (Out, error)) func(*Call, jsontext.Value) (any, error) {
	takes := readShape(reflect.TypeFor[In]())
	return func(c *Call, input jsontext.Value) (any, error) {
		in, err := decodeInput[In](takes, input)
		if err != nil {
			return nil, err
		}
		return fn(c, in)
	}
}

// Run serves the host until it closes the connection, and ends the program.
func (p *Plugin) Run() {
	in, out, err := claimStdio()
	if err == nil {
		err = p.Serve(in, out)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve serves one host over in and out until in ends, and returns nil then.
func (p *Plugin) Serve(in io.Reader, out io.Writer) error {
	s := newServer(p, in, out)
	line, err := s.lines.ReadLine()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if isVersion1(line) {
		return s.serveOnce(line)
	}
	return s.serve(line)
}
