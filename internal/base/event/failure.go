package event

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/mortise-dev/mortise/plugin"
)

// A Failure is a handler that failed.
type Failure struct {
	Plugin string // its plugin; <unknown> for a handler without one
	Event  string // what it was called for, in its own version
	Err    error

	// Guards says that the handler did not ask to be skipped in so many words:
	// what it guards is not to be done without its word if that has effects.
	Guards bool
}

// Bounds of what is told of a failure.
const (
	maxMessage = 4 << 10
	maxStack   = 8 << 10
	maxReason  = 4 << 10
	maxQueue   = 256 // failures that wait to be told
)

// A panicked handler is an error with the place it happened at.
type panicked struct {
	value any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Stack returns the goroutine's.
func (p *panicked) Stack() string { return p.stack }

// Unwrap returns the error that the panic was raised with, if it was one.
func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// caught returns what a deferred recover returned as an error.
func caught(value any) error { return &panicked{value, string(debug.Stack())} }

// stackOf returns where an error happened, if it knows.
func stackOf(err error) string {
	var placed interface {
		error
		Stack() string
	}
	if errors.As(err, &placed) {
		return placed.Stack()
	}
	return ""
}

// ownWords returns what a handler failed with in its own words, without what the
// host says about it: of an exception the message alone.
func ownWords(err error) string {
	var said interface {
		error
		OwnWords() string
	}
	if errors.As(err, &said) {
		return said.OwnWords()
	}
	return err.Error()
}

// failed records the failure of a handler. It returns an error if the dispatch
// must end: the handler asked for that, or the emitter has given up.
func (b *Bus) failed(ctx *nested, h *handler, err error) (Failure, error) {
	f := Failure{Plugin: nameOf(h.Plugin), Event: h.Event, Err: err, Guards: h.guards()}
	if ended := ctx.Err(); ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(ctx))) {
		return f, context.Cause(ctx) // the caller gave up: not a fault of the handler
	}
	level, what := slog.LevelWarn, "a handler failed and was skipped"
	if h.Mode == Fail {
		level, what = slog.LevelError, "a handler failed and ended the dispatch"
	}
	message := cut(err.Error(), maxMessage)
	about := []any{"agent", b.agent, "plugin", f.Plugin, "event", f.Event, "handler", h.Name, "error", message}
	if stack := stackOf(err); stack != "" {
		about = append(about, "stack", cut(stack, maxStack))
	}
	b.log.Log(ctx, level, what, about...)
	if h.Mode == Fail {
		return f, &plugin.Error{Code: plugin.CodeHookFailed, Message: "plugin " + f.Plugin + " failed on " + f.Event + ": " + message, Err: err}
	}
	if h.Event != PluginError {
		b.tell(ctx.depth, f, cut(ownWords(err), maxMessage))
	}
	return f, nil
}

// A told failure waits to be emitted.
type told struct {
	depth   int // of the dispatch it happened in
	payload *Payload
}

// tell queues plugin.error@v1. Delivery is asynchronous and best effort: when
// the queue is full, the event is dropped.
func (b *Bus) tell(depth int, f Failure, message string) {
	if !b.Heard(PluginError) {
		return
	}
	payload, err := Encode(struct {
		Plugin  string `json:"pluginId"`
		Event   string `json:"event"`
		Message string `json:"message"`
		Stack   string `json:"stack"`
	}{f.Plugin, f.Event, message, cut(stackOf(f.Err), maxStack)})
	if err != nil {
		b.log.Error("plugin.error@v1 was not emitted", "agent", b.agent, "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed.Load():
	case len(b.queue) >= maxQueue:
		b.log.Warn("plugin.error@v1 was dropped, because its handlers are slower than failures come", "agent", b.agent, "plugin", f.Plugin)
	default:
		b.queue = append(b.queue, told{depth, payload})
		if b.teller == nil {
			b.teller = make(chan struct{})
			go b.drain()
		}
	}
}

// drain emits what is queued, in order, and ends when nothing is.
func (b *Bus) drain() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			close(b.teller)
			b.teller, b.queue = nil, nil
			b.mu.Unlock()
			return
		}
		next := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		if next.depth >= MaxDepth {
			b.log.Warn("plugin.error@v1 was dropped, because it comes of handlers of itself", "agent", b.agent)
			continue
		}
		// One deeper than where it happened, so that handlers that emit what fails end.
		ctx := &nested{Context: b.ctx, depth: next.depth + 1}
		slot := b.slots.find(PluginError)
		_ = b.listen(ctx, slot, *slot.family.handlers.Load(), next.payload) // its own failures end here
	}
}
