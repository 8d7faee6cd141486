package process

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// serve answers a request of the plugin, beside whatever else goes on.
func (c *conn) serve(f *protocol.Frame) {
	reply := func(value jsontext.Value, err error) (size int) {
		b, full := c.out.begin()
		if full != nil {
			return 0
		}
		line := c.answer(b, f, value, err)
		size = len(line) - len(b)
		c.out.answers += size
		c.out.commit(line, false)
		return size
	}
	if !strings.Contains(f.Method, ".") {
		if b, full := c.out.begin(); full == nil {
			c.out.commit(protocol.AppendError(b, f.ID, &protocol.Error{Number: protocol.RPCMethodNotFound, Message: "no such method: " + cut(f.Method, 120)}), false)
		}
		return
	}
	token, args, err := serviceCall(f.Params)
	if err != nil {
		reply(nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", cut(f.Method, 120), err))
		return
	}
	x := c.byToken(token)
	if x == nil || x.services == nil {
		reply(nil, plugin.Errorf(plugin.CodeServiceDenied, "%s: no such call is running", cut(f.Method, 120)))
		return
	}
	select {
	case c.serving <- struct{}{}:
	default:
		reply(nil, plugin.Errorf(plugin.CodeOverloaded, "more than %d requests of this plugin are being answered", maxServing))
		return
	}
	weight := len(f.Params)
	if !c.admit(weight) {
		<-c.serving
		reply(nil, &plugin.Error{Code: plugin.CodeOverloaded, Retryable: true, RetryAfter: 100 * time.Millisecond,
			Message: fmt.Sprintf("%s: requests of %d MiB are being answered for plugins; send large ones one after the other", cut(f.Method, 120), inWork.Load()>>20)})
		return
	}
	if len(args) == 0 {
		args = f.Params // operations.call has its members beside the token
	}
	c.answering.Go(func() {
		defer func() { c.dismiss(weight); <-c.serving }()
		if err := c.out.room(x.ctx); err != nil { // it asks for more than it reads
			reply(nil, err)
			return
		}
		c.out.answered(c.answerOne(x, f, args, reply))
	})
}

// answerOne has the services answer a request, and returns how many bytes the answer
// has. A large one has its room of the host's memory until the plugin has read it.
func (c *conn) answerOne(x *exchange, f *protocol.Frame, args jsontext.Value, reply func(jsontext.Value, error) int) int {
	ctx, room := budget.Answering(x.ctx, x.call.Tenant+"/"+c.name)
	value, err := rawOf(x.services.Serve(ctx, f.Method, []byte(args)))
	if err == nil && len(value) > budget.AnswerFree && len(value) <= c.longest {
		err = room.TakeInHand(ctx, len(value)) // unless its service has done that
		if err == nil {
			return c.sendLarge(f, value, room)
		}
		err = notDelivered(f.Method, err)
	}
	room.Leave()
	return reply(value, err)
}

// notDelivered says why an answer that was made was not delivered.
func notDelivered(method string, why error) error {
	if !errors.Is(why, budget.ErrNoRoom) {
		return why
	}
	return &plugin.Error{Code: plugin.CodeOverloaded, // and not retryable: it may have had an effect
		Message: fmt.Sprintf("%s: the answer was not delivered, and what was asked for may have been done: %v", cut(method, 120), why)}
}

// sendLarge hands a large answer to the outbox as it is. Where the plugin reads none
// of it while others wait for the memory, it gets an error in its place; where it
// stops in the middle, it is ended, as one that does not finish a line.
func (c *conn) sendLarge(f *protocol.Frame, value jsontext.Value, room *budget.Answer) int {
	line := &largeLine{head: protocol.AppendResultHead(nil, f.ID), value: protocol.Line(value), sent: room.Leave}
	size := len(line.head) + len(line.value)
	if size+1 > c.longest { // as an error, which says so
		defer room.Leave()
		b, full := c.out.begin()
		if full != nil {
			return 0
		}
		c.out.commit(c.answer(b, f, value, nil), false)
		return size
	}
	room.Settle(size)
	if !c.out.queue(line) {
		room.Leave()
		return 0
	}
	room.Overdue(func() {
		dropped, stuck := c.out.overdue(line)
		switch {
		case dropped:
			room.Leave()
			if b, full := c.out.begin(); full == nil {
				c.out.commit(c.answer(b, f, nil, notDelivered(f.Method, budget.ErrNoRoom)), false)
			}
		case stuck:
			c.fail(plugin.Errorf(plugin.CodeOverloaded, "%s: the plugin stopped reading in the middle of an answer of %d bytes while others waited for the memory that it takes", c.name, size))
		}
	})
	return size
}

// answer appends the answer to a request of the plugin. One that is longer than a
// line may be would end the plugin and every call in it: a value becomes an error
// of this one request, and an error loses its details.
func (c *conn) answer(b []byte, f *protocol.Frame, value jsontext.Value, err error) []byte {
	if err == nil {
		line := protocol.AppendResult(b, f.ID, protocol.Line(value))
		n := len(line) - len(b) - 1
		if n <= c.longest {
			return line
		}
		err = plugin.Errorf(plugin.CodeLimitExceeded, "%s: the answer has %d bytes, and a line of the protocol holds at most %d; what it asked for may have been done: ask for less, or let an administrator raise limits.frame_bytes",
			cut(f.Method, 120), n, c.longest)
	}
	failed := protocol.FromPlugin(err)
	line := protocol.AppendError(b, f.ID, failed)
	if len(line)-len(b)-1 > c.longest {
		failed.Data.Details, failed.Message = nil, cut(failed.Message, min(protocol.MaxMessage, c.longest/4))
		line = protocol.AppendError(b, f.ID, failed)
	}
	return line
}

// serviceCall takes the parameters of a request for a service apart, which are
// known to be valid: its call's token, and its arguments in place.
func serviceCall(params jsontext.Value) (token string, args jsontext.Value, err error) {
	if params.Kind() != '{' {
		return "", nil, errors.New("params is not an object")
	}
	for m := protocol.ScanMembers(params); m.Next(); {
		switch string(m.Name) {
		case "call":
			text, err := jsontext.AppendUnquote(nil, m.Value)
			if err != nil {
				return "", nil, errors.New("call is not a string")
			}
			token = string(text)
		case "args":
			args = m.Value
		}
	}
	return token, args, nil
}

// Bounds of the bytes of requests that are being answered. A request is refused
// beyond them, and never waits: what is at work may wait for the plugin itself.
const (
	maxAsked    = 6 << 20 // of all plugins, unless it is a single request
	maxAskedOne = 4 << 20 // of one process, likewise
)

// inWork is what all of them have now, and part of the memory of the process.
var inWork atomic.Int64

// admit reports whether a request of that many bytes may be answered now; dismiss
// must follow. Small ones are bounded by their number.
func (c *conn) admit(bytes int) bool {
	if bytes <= smallLine {
		return true
	}
	n := int64(bytes)
	if own := c.asked.Add(n); own > maxAskedOne && own > n {
		c.asked.Add(-n)
		return false
	}
	if all := inWork.Add(n); all > maxAsked && all > n {
		inWork.Add(-n)
		c.asked.Add(-n)
		return false
	}
	return true
}

func (c *conn) dismiss(bytes int) {
	if bytes > smallLine {
		c.asked.Add(-int64(bytes))
		inWork.Add(-int64(bytes))
	}
}

func rawOf(value []byte, err error) (jsontext.Value, error) {
	if err == nil && len(value) == 0 {
		value = []byte("{}")
	}
	return jsontext.Value(value), err
}
