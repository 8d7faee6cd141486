package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/runtime/script"
)

// hooks is table C: what hears an event inside the host.
func hooks(ctx context.Context, l *lab) (all []table, err error) {
	for _, role := range []string{"role-bus", "role-hooks"} {
		t, err := onePinned(ctx, l, role)
		if err != nil {
			return all, err
		}
		all = append(all, t)
	}
	return all, nil
}

// A listened is a receiver of events: it returns the nanoseconds that each of so many
// took.
type listened struct {
	name  string
	each  func(n int) (float64, error)
	unit  float64 // what the table's unit has of nanoseconds
	limit target
	close func()
}

// How many events are timed together: few, where each takes long, so that the median is
// of batches in which no other process had the core. Their payloads are made before
// that, so that none has been looked into.
const (
	busBatch  = 1000
	hookBatch = 40
)

// inTurns has the contestants take turns, and returns the figures of each round.
func inTurns(l *lab, all []listened, batch int) (rounds, error) {
	n, turn := l.length()
	var r rounds
	for range n {
		var round []float64
		for _, c := range all {
			runtime.GC()
			var figures []float64
			for begin := time.Now(); time.Since(begin) < turn; {
				figure, err := c.each(batch)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				figures = append(figures, figure)
			}
			round = append(round, median(figures)/c.unit)
		}
		r = append(r, round)
	}
	return r, nil
}

// overPayloads times f over payloads that have not been parsed yet.
func overPayloads(f func(context.Context, *event.Payload) error) func(int) (float64, error) {
	text := string(payload())
	return func(n int) (float64, error) {
		fresh := make([]*event.Payload, n)
		for i := range fresh {
			p, err := event.NewPayload(text)
			if err != nil {
				return 0, err
			}
			fresh[i] = p
		}
		ctx := context.Background()
		begin := time.Now()
		for _, p := range fresh {
			if err := f(ctx, p); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(begin)) / float64(n), nil
	}
}

// ---- C1, the bus ----

// busRounds measures what an event costs that so many functions in Go hear,
// beside a slice of these functions.
func busRounds(args []string) error {
	l, err := openLab(context.Background(), args[0], args[1] == "true")
	if err != nil {
		return err
	}
	t := table{Title: "C1. An event that functions in Go hear, pinned to one core (x a slice of as many functions)", Unit: "ns"}
	var heard int
	listen := func(context.Context, *event.Payload) error { heard++; return nil }
	for _, n := range []int{0, 1, 10, 100} {
		slice := make([]func(context.Context, *event.Payload) error, n)
		bus := event.NewBus("bench", event.Options{})
		defer bus.Close()
		for i := range slice {
			slice[i] = listen
			if _, err := bus.On(event.Subscription{Event: event.ToolAfter, Plugin: fmt.Sprintf("p%d", i%10), Listen: listen}); err != nil {
				return err
			}
		}
		emit := func(ctx context.Context, p *event.Payload) error { return bus.Emit(ctx, event.ToolAfter, p) }
		pair := []listened{
			{name: fmt.Sprintf("floor: a slice of %d functions", n), unit: 1, each: overPayloads(func(ctx context.Context, p *event.Payload) error {
				for _, f := range slice {
					if err := f(ctx, p); err != nil {
						return err
					}
				}
				return nil
			})},
			{name: fmt.Sprintf("the bus, %d listeners", n), unit: 1, limit: atMostRatio(5), each: overPayloads(emit)},
		}
		r, err := inTurns(l, pair, busBatch)
		if err != nil {
			return err
		}
		for i, c := range pair {
			figure, ratio := r.median(i)
			t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.limit))
		}
		p, err := event.NewPayload(string(payload()))
		if err != nil {
			return err
		}
		ctx := context.Background()
		allocations := testing.AllocsPerRun(1000, func() { err = errors.Join(err, emit(ctx, p)) })
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, judged(fmt.Sprintf("allocations of the bus, %d listeners", n), allocations, 0, atMost(0)))
	}
	if heard == 0 {
		return errors.New("no listener was called")
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// ---- C2, one hook ----

// hookOpeners are the contestants of C2, the floor first.
var hookOpeners = []func(*lab) (*listened, error){
	throughInterface,
	scripted("script, a veto that reads three fields", 1, event.ToolBefore, readsThree, atMost(2)),
	scripted("script, a transform that changes one field", 1, event.SessionMessageReceived, changesOne, atMost(3)),
	scripted("scripts, ten vetoes in ten engines", 10, event.ToolBefore, readsThree, atMost(10)),
	inNode("Node, uncontained, the veto on a parsed object", "veto"),
	inNode("Node, uncontained, the transform on a parsed object", "transform"),
	inNode("Node, uncontained, ten of the vetoes on a parsed object", "ten"),
	inNode("Node, uncontained, the veto on JSON text", "text"),
	roundTrip,
}

// The handlers, of a payload that has not been parsed before.
const (
	readsThree = `export function register(ctx) {
  ctx.bus.on("tool.before@v1", (e) => ({ allow: e.property_a !== "x" && e.property_k !== "y" && e.property_t !== "z" }));
}`
	changesOne = `export function register(ctx) {
  ctx.bus.on("session.message.received@v1", (e) => ({ ...e, property_b: e.property_b + "!" }));
}`
)

func hookRounds(args []string) error {
	l, err := openLab(context.Background(), args[0], args[1] == "true")
	if err != nil {
		return err
	}
	t := table{Title: "C2. One event that hooks have a say in, 1 KB, pinned to one core", Unit: "us"}
	var all []listened
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	for _, open := range hookOpeners {
		c, err := open(l)
		if err != nil {
			return err
		}
		if c.each == nil {
			t.Absent = append(t.Absent, c.name)
			continue
		}
		c.unit = float64(time.Microsecond)
		all = append(all, *c)
		if _, err := c.each(5000); err != nil { // caches and just-in-time compilers
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	r, err := inTurns(l, all, hookBatch)
	if err != nil {
		return err
	}
	for i, c := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.limit))
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// A judge is what a plugin in Go within the host would be.
type judge interface {
	before(ctx context.Context, p *event.Payload) (event.Verdict, error)
}

type allowing struct{ seen int }

func (a *allowing) before(_ context.Context, p *event.Payload) (event.Verdict, error) {
	a.seen += len(p.Text())
	return event.Verdict{Allow: true}, nil
}

func throughInterface(*lab) (*listened, error) {
	judges := []judge{&allowing{}, &allowing{}} // so that the compiler cannot know which
	n := 0
	return &listened{name: "floor: a Go function through an interface", close: func() {}, each: overPayloads(func(ctx context.Context, p *event.Payload) error {
		n++
		v, err := judges[n&1].before(ctx, p)
		return allowed(v, err)
	})}, nil
}

func allowed(v event.Verdict, err error) error {
	if err == nil && !v.Allow {
		err = errors.New("it was refused: " + v.Reason)
	}
	return err
}

// scripted has n plugins with one handler each on a bus, each in an engine of its own.
func scripted(name string, n int, on, code string, limit target) func(*lab) (*listened, error) {
	return func(l *lab) (*listened, error) {
		dir, err := os.MkdirTemp(l.dir, "script-")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, script.DefaultEntry), []byte(code), 0o600); err != nil {
			return nil, err
		}
		program, err := script.Compile(context.Background(), dir)
		if err != nil {
			return nil, err
		}
		bus := event.NewBus("bench", event.Options{})
		var instances []*script.Instance
		c := &listened{name: name, limit: limit, close: func() {
			bus.Close()
			for _, i := range instances {
				i.Close()
			}
		}}
		for i := range n {
			instance, err := script.Open(context.Background(), program, script.Environment{Agent: "bench", Plugin: fmt.Sprintf("p%d", i)})
			if err != nil {
				c.close()
				return nil, err
			}
			instances = append(instances, instance)
			for _, s := range instance.Subscriptions() {
				s.Mode = event.Fail // so that nothing that fails is fast
				if _, err := bus.On(s); err != nil {
					c.close()
					return nil, err
				}
			}
		}
		c.each = overPayloads(func(ctx context.Context, p *event.Payload) error {
			if on == event.ToolBefore {
				return allowed(bus.Veto(ctx, on, p))
			}
			next, err := bus.Transform(ctx, on, p)
			if err == nil && next == p {
				err = errors.New("nothing was changed")
			}
			return err
		})
		return c, nil
	}
}

// inNode has bus.mjs run; without node it takes no part.
func inNode(name, run string) func(*lab) (*listened, error) {
	return func(l *lab) (*listened, error) {
		if l.node == nil {
			return &listened{name: name}, nil
		}
		cmd := exec.Command(l.node[0], append(append([]string{}, l.node[1:]...), echoFile("bus.mjs"), string(payload()))...)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		answers := bufio.NewReader(out)
		return &listened{
			name:  name,
			close: func() { in.Close(); _ = cmd.Wait() },
			each: func(n int) (float64, error) {
				if _, err := io.WriteString(in, run+" "+strconv.Itoa(n)+"\n"); err != nil {
					return 0, err
				}
				line, err := answers.ReadString('\n')
				if err != nil {
					return 0, err
				}
				return strconv.ParseFloat(strings.TrimSpace(line), 64)
			},
		}, nil
	}
}

// roundTrip is what the same costs with the plugin in a process: A1's Go plugin.
func roundTrip(l *lab) (*listened, error) {
	ctx := context.Background()
	c, err := mortiseGo(ctx, l)
	if err != nil {
		return nil, err
	}
	return &listened{name: "a process instead: a round trip of protocol 2, Go plugin", close: c.close, each: func(n int) (float64, error) {
		begin := time.Now()
		for range n {
			if err := c.call(ctx); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(begin)) / float64(n), nil
	}}, nil
}
