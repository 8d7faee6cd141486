package process

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// emit passes on what a call says. Progress is dropped if the listener is too slow; a
// call whose content the listener does not take in time fails.
func (c *conn) emit(params jsontext.Value) error {
	var e protocol.Emit
	if err := protocol.ReadPart(params, &e); err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	x := c.byToken(e.Call)
	if x == nil || x.events == nil {
		return nil
	}
	switch kind := plugin.EventKind(e.Kind); kind {
	case plugin.EventProgress:
		x.offer(plugin.Event{Kind: kind, Data: []byte(e.Data)})
	case plugin.EventContent:
		if !x.offerContent(plugin.Event{Kind: kind, Data: []byte(e.Data)}) {
			c.overflow(x)
		}
	default:
		return fmt.Errorf("emit: kind is %.40q", e.Kind)
	}
	return nil
}

// offer reports whether the event found room. A single one always does where
// nothing else waits.
func (x *exchange) offer(event plugin.Event) bool {
	size := sizeOf(event)
	x.offering.Lock()
	defer x.offering.Unlock()
	if x.left {
		return true // its caller is gone
	}
	if waiting := x.untaken.Add(int64(size)); waiting > maxEventBytes && waiting > int64(size) {
		x.untaken.Add(-int64(size))
		return false
	}
	if !budget.Piece(size) {
		x.untaken.Add(-int64(size))
		return false
	}
	select {
	case x.events <- event:
		return true
	default:
		x.taken(size)
		return false
	}
}

// offerContent is offer for what is not to be lost: while other calls have the
// room of the host, it is waited for, though not long.
func (x *exchange) offerContent(event plugin.Event) bool {
	for begun := time.Now(); !x.offer(event); time.Sleep(pacePause) {
		if x.untaken.Load() > maxEventBytes/2 || len(x.events) == cap(x.events) || time.Since(begun) > eventWait {
			return false
		}
	}
	return true
}

// eventWait is how long content waits while others have the room.
const eventWait = time.Second

func sizeOf(event plugin.Event) int { return len(event.Data) + len(event.Message) }

func (x *exchange) taken(size int) {
	x.untaken.Add(-int64(size))
	budget.PieceTaken(size)
}

// leave drops the events that have no receiver any more.
func (x *exchange) leave() {
	x.offering.Lock()
	defer x.offering.Unlock()
	x.left = true
	for {
		select {
		case event := <-x.events:
			x.taken(sizeOf(event))
		default:
			return
		}
	}
}

// pass hands an event to the listener of the call.
func (x *exchange) pass(event plugin.Event) {
	x.taken(sizeOf(event))
	x.call.Observe(event)
}

// overflow fails a call that says more than is taken, and lets the plugin know.
func (c *conn) overflow(x *exchange) {
	if c.giveUp(x, nil) {
		x.answer <- answer{held: true, err: plugin.Errorf(plugin.CodeLimitExceeded, "%s: more than %d pieces of content, or %d MiB, were waiting to be taken", c.name, maxEvents, maxEventBytes>>20)}
	}
}

func (c *conn) log(params jsontext.Value) error {
	var l protocol.Log
	if err := protocol.ReadPart(params, &l); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	message := printable(cut(l.Message, lineBytes))
	var call *plugin.Call
	if x := c.byToken(l.Call); x != nil {
		call = x.call
		if x.events != nil && x.offer(plugin.Event{Kind: plugin.EventLog, Level: l.Level, Message: message, Data: []byte(l.Fields)}) {
			return nil // one who listens has it; the host's log would show it twice
		}
	}
	c.onLog(call, l.Level, message, l.Fields)
	return nil
}

// stderr takes one line of the plugin's standard error. If exactly one call is running,
// the line is attributed to it; with several, to none.
func (c *conn) stderr(line string) {
	c.mu.Lock()
	only := c.settling
	if len(c.tokens) == 1 {
		for _, only = range c.tokens {
		}
	}
	c.mu.Unlock()
	var call *plugin.Call
	if only != nil {
		call = only.call
		if only.events != nil && only.offer(plugin.Event{Kind: plugin.EventLog, Level: "info", Message: line}) {
			return
		}
	}
	c.onLog(call, "info", line, nil)
}
