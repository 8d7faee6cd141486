package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// An engine runs one program. It belongs to one goroutine at a time. The rest of
// the package knows no more of JavaScript than this, so that another engine, or
// one behind a stronger wall, can stand here.
//
// A call ends with an error of the kinds below. After one that spoils the engine
// it is only good for being closed.
type engine interface {
	// load runs the program and its register function, which talks to the host.
	load(p *Program, limit time.Duration) error
	// handle calls the handler of a subscription, in the order of registration. With draft
	// it gets a payload that it may change, and what it made of that counts.
	handle(handler int, shape event.Shape, p *event.Payload, draft bool, limit time.Duration) (answer, error)
	// call calls the handler of a tool. Input and output are JSON.
	call(handler int, input string, limit time.Duration) (output string, err error)
	// close gives back all that the engine has. It may be called again.
	close()
}

// A host answers what the engine's code asks. Its methods are called while code
// of the engine waits, in the goroutine that called the engine.
type host interface {
	// ask answers a request with JSON, or "" for nothing. The error's text is
	// what the code sees thrown.
	ask(what request, text string) (string, error)
}

// A request is what code may ask of the host.
type request int

// The requests, in the order that prelude.js has them. The first two come with a
// function, which the engine keeps under the next number.
const (
	askOn      request = iota // a subscription
	askAdd                    // a tool
	askOff                    // the number of a subscription
	askLog                    // a line of the log
	askGet                    // a key of the agent's memory
	askSearch                 // a search in it
	askSession                // the session of the present event
)

// An answer is what a handler returned.
type answer struct {
	payload *event.Payload // nil: unchanged
	allow   bool           // of a veto
	reason  string
	dropped string // what a listener returned, such as "a number": it changes nothing; "" for nothing
}

// What ends a call and spoils the engine.
var (
	errStopped = errors.New("it did not end by its deadline")              // and stopped when it was asked to
	errRevoked = errors.New("it did not stop when it was asked to")        // so its memory was taken away
	errMemory  = errors.New("it needs more memory than a plugin may have") // or more stack
)

// errPending is a promise that nothing will ever settle.
var errPending = errors.New("it waits for a promise that nothing will settle: there are no timers, and no other events")

// A crash is a fault of the engine itself. It spoils the engine.
type crash struct{ cause any }

func (c *crash) Error() string { return fmt.Sprintf("the engine failed: %v", c.cause) }

// A thrown is what code threw.
type thrown struct {
	name, message string // "TypeError", "x is not a function"
	stack         string // as the engine writes it
}

func (t *thrown) Error() string {
	if t.name == "" {
		return t.message
	}
	return t.name + ": " + t.message
}

// A misfit is a result of another form than the handler's event or tool asks for.
type misfit struct {
	text     string
	tooLarge bool
}

func (m *misfit) Error() string { return m.text }

func misfitf(format string, args ...any) error { return &misfit{text: fmt.Sprintf(format, args...)} }

// The names that an engine's stacks call its two scripts by.
const (
	programFile = "mortise:plugin"
	preludeFile = "mortise:prelude"
)
