// Command host is the host that hostile plugins attack: a real one, with its
// store, its kernel and its services. It reads calls from standard input, makes
// them side by side, and answers each with a line. Beside them it calls a
// well-behaved plugin, when it is told to, and says how long that took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// A line is what the host is asked: to make a call, or to measure.
type line struct {
	ID        int             `json:"id"`
	Do        string          `json:"do"` // call, measure, measured, free
	Operation string          `json:"operation"`
	Session   string          `json:"session"`
	Input     json.RawMessage `json:"input"`
	MS        int             `json:"ms"`    // of a call: its time
	Watch     string          `json:"watch"` // who takes its events: "", quick or slow
}

// An answer is what it says.
type answer struct {
	ID      int         `json:"id"`
	Code    plugin.Code `json:"code"`
	Message string      `json:"message"`
	Data    string      `json:"data"`   // the first of it
	Events  int         `json:"events"` // heard
	TookMS  int64       `json:"took_ms"`
	Level   string      `json:"level,omitempty"`
	Micros  []int64     `json:"micros,omitempty"` // what calls of the good plugin took
}

type host struct {
	app  *app.App
	out  sync.Mutex
	stop func() []int64 // ends the measuring
}

func run(home string) error {
	ctx := context.Background()
	a, err := app.Open(ctx, app.Options{Home: home, Standby: true, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(home, "plugins", "*"))
	if err != nil {
		return err
	}
	for _, dir := range packages {
		if _, err := a.Registry.Resolve(ctx, filepath.Base(dir)); err == nil {
			continue // from an earlier life
		}
		report, err := a.Registry.Register(ctx, dir, registry.RegisterOptions{Enable: true})
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if err := report.Registered[0].NotEnabled; err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if _, err := a.Knowledge.Create(ctx, a.Config.Tenant, kb.Base{ID: "large"}); err != nil && plugin.CodeOf(err) != plugin.CodeInvalidInput { // which is from an earlier life
		return err
	}
	h := &host{app: a, stop: func() []int64 { return nil }}
	h.say(answer{Level: a.Runner.Level()})
	var calls sync.WaitGroup
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		switch l.Do {
		case "call":
			calls.Go(func() { h.say(h.call(ctx, l)) })
		case "measure":
			h.stop = h.measure(ctx, time.Duration(l.MS)*time.Millisecond)
		case "measured":
			h.say(answer{ID: l.ID, Micros: h.stop()})
		case "free":
			debug.FreeOSMemory()
			h.say(answer{ID: l.ID})
		}
	}
	calls.Wait()
	return a.Close()
}

func (h *host) say(a answer) {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	h.out.Lock()
	defer h.out.Unlock()
	_, _ = os.Stdout.Write(append(raw, '\n'))
}

// call makes one call.
func (h *host) call(ctx context.Context, l line) answer {
	a := answer{ID: l.ID}
	call := plugin.Call{
		Tenant: h.app.Config.Tenant, Principal: h.app.Principal, Origin: plugin.OriginCLI,
		Operation: l.Operation, Session: l.Session, Input: l.Input, Timeout: time.Duration(l.MS) * time.Millisecond,
	}
	if l.Watch != "" {
		call.Observe = func(plugin.Event) {
			a.Events++
			if l.Watch == "slow" {
				time.Sleep(time.Millisecond)
			}
		}
	}
	begun := time.Now()
	res, err := h.app.Kernel.Call(ctx, call)
	a.TookMS = time.Since(begun).Milliseconds()
	a.Data = string(res.Data[:min(len(res.Data), 200)])
	if err != nil {
		e := plugin.AsError(err)
		a.Code, a.Message = e.Code, e.Error()
	}
	a.Message = a.Message[:min(len(a.Message), 500)]
	return a
}

// measure calls the good plugin at a steady pace until it is told to stop.
func (h *host) measure(ctx context.Context, pace time.Duration) (stop func() []int64) {
	end, done := make(chan struct{}), make(chan struct{})
	var micros []int64
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			begun := time.Now()
			a := h.call(ctx, line{Operation: "good/run", Input: fmt.Appendf(nil, `{"n":%d}`, n), MS: 10_000})
			if a.Code != "" {
				micros = append(micros, -1)
				fmt.Fprintf(os.Stderr, "host: the good plugin: %s: %s\n", a.Code, a.Message)
			} else {
				micros = append(micros, time.Since(begun).Microseconds())
			}
			select {
			case <-end:
				return
			case <-time.After(pace):
			}
		}
	}()
	return func() []int64 {
		close(end)
		<-done
		slices.Sort(micros)
		return micros
	}
}
