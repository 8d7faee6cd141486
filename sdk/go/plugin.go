package mortise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Plugin is a named set of operations. Operations are added before Run.
type Plugin struct {
	name, version string
	operations    map[string]*operation
	order         []string

	// Description says what the plugin is for.
	Description string
	// Capabilities are the host services the plugin asks for, such as "cache".
	Capabilities []string
	// Concurrency is how many calls run at a time, each in a goroutine of its
	// own; 64 where it is 0.
	Concurrency int
}

// An operation is one function with its description.
type operation struct {
	described describedOperation
	run       func(c *Call, input jsontext.Value) (any, error)
}

// New returns a plugin without operations. The name and version are those of
// its manifest.
func New(name, version string) *Plugin {
	return &Plugin{name: name, version: version, operations: map[string]*operation{}}
}

// An Option says more about an operation than its types do.
type Option func(*describedOperation)

// Effects declares consequences, such as "gmail_send".
func Effects(names ...string) Option {
	return func(o *describedOperation) { o.Effects = append(o.Effects, names...) }
}

// PolicyTags declares labels that policies read.
func PolicyTags(names ...string) Option {
	return func(o *describedOperation) { o.PolicyTags = append(o.PolicyTags, names...) }
}

// Permissions declares scopes that a caller must hold.
func Permissions(names ...string) Option {
	return func(o *describedOperation) { o.Permissions = append(o.Permissions, names...) }
}

// Timeout sets the time limit: fast, medium, slow or a duration such as "45s".
func Timeout(limit string) Option { return func(o *describedOperation) { o.Timeout = limit } }

// Tool adds an operation that computes and has no effects. In is a struct, a
// map or a [jsontext.Value]; a property is optional if its field has omitempty,
// omitzero or a pointer type, and is described by the field's doc tag.
//
// An error that is or wraps an [*Error] fails the call with that error's own
// code; any other fails it with the name of its type.
func Tool[In, Out any](p *Plugin, name, description string, fn func(*Call, In) (Out, error), options ...Option) {
	add(p, "tool", name, description, fn, options)
}

// Operator adds an operation that has effects, which [Effects] declares.
func Operator[In, Out any](p *Plugin, name, description string, fn func(*Call, In) (Out, error), options ...Option) {
	add(p, "operator", name, description, fn, options)
}

func add[In, Out any](p *Plugin, kind, name, description string, fn func(*Call, In) (Out, error), options []Option) {
	op := &operation{described: describedOperation{
		Kind:        kind,
		Description: description,
		Input:       schemaOf(reflect.TypeFor[In]()),
		Output:      schemaOf(reflect.TypeFor[Out]()),
	}}
	for _, option := range options {
		option(&op.described)
	}
	op.run = func(c *Call, input jsontext.Value) (any, error) {
		var in In
		if raw, ok := any(&in).(*jsontext.Value); ok {
			*raw = input
		} else if err := json.Unmarshal(input, &in, json.RejectUnknownMembers(true)); err != nil {
			return nil, &Error{code: "invalid_input", Message: err.Error()}
		} else if missing := missingMember(reflect.TypeFor[In](), input); missing != "" {
			return nil, &Error{code: "invalid_input", Message: "missing property " + missing}
		}
		return fn(c, in)
	}
	if p.operations[name] == nil {
		p.order = append(p.order, name)
	}
	p.operations[name] = op
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
