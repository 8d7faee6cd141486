//go:build linux

package script

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// The places that an attack is put into. %s is the function that attacks.
var places = []struct{ name, register string }{
	{"handler", `ctx.bus.on("tool.before@v1", (e) => attack(ctx, e))`},
	{"async handler", `ctx.bus.on("tool.before@v1", async (e) => { await null; return attack(ctx, e) })`},
	{"after a promise", `ctx.bus.on("tool.before@v1", (e) => Promise.resolve().then(() => attack(ctx, e)))`},
	{"in a getter", `ctx.bus.on("tool.before@v1", (e) => ({ get allow() { return attack(ctx, e)?.allow } }))`},
	{"in a proxy", `ctx.bus.on("tool.before@v1", (e) => new Proxy({}, { get: () => attack(ctx, e) }))`},
	{"transform", `ctx.bus.on("prompt.assemble@v1", (e) => attack(ctx, e))`},
	{"in toJSON", `ctx.bus.on("prompt.assemble@v1", (e) => ({ ...e, x: { toJSON: () => attack(ctx, e) } }))`},
	{"tool", `ctx.tools.add({ name: "t", schema: {}, handler: (e) => attack(ctx, e) })`},
	{"while caught", `ctx.bus.on("tool.before@v1", (e) => { for (let i = 0; i < 3; i++) try { attack(ctx, e) } catch {} finally { attack(ctx, e) } })`},
	{"register", `return attack(ctx, { toolName: "", args: {} })`},
}

// TestHostileScriptsAreContained runs every kind of attack, and with
// MORTISE_SCRIPT_CASES=1000 in every place. While each runs, the plugin beside it
// answers right.
func TestHostileScriptsAreContained(t *testing.T) {
	cases := len(attacks)
	if n, err := strconv.Atoi(os.Getenv("MORTISE_SCRIPT_CASES")); err == nil && n > 0 {
		cases = n
	}
	const deadline = 50 * time.Millisecond
	neighbour := opened(t, vetoSource, Environment{Plugin: "neighbour"}).Subscriptions()[0].Veto
	p := payload(t, toolBefore)

	var slowest time.Duration
	var most int64
	var exceeded []string // what took too long or too much memory
	again := 2            // a measurement that others disturbed is not slow each time
	if testing.Short() {
		again = 0
	}
	for n := range cases {
		attack, place := attacks[n%len(attacks)], places[n/len(attacks)%len(places)]
		t.Run(fmt.Sprintf("%s in %s", attack.name, place.name), func(t *testing.T) {
			program := compiled(t, fmt.Sprintf("function attack(ctx: any, e: any): any { %s }\nexport function register(ctx: any) { %s }", attack.body, place.register))
			debug.FreeOSMemory()
			base := resident(t)
			stop, peak, late := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
			var beside sync.WaitGroup
			beside.Go(func() { // the plugin beside it, the scales, and how late a busy machine is
				for {
					if v, err := neighbour(context.Background(), p); err != nil || v.Allow || v.Reason != "no rm in support" {
						t.Errorf("the plugin beside it answers %+v, %v", v, err)
					}
					peak.Store(max(peak.Load(), resident(t)))
					slept := time.Now()
					select {
					case <-stop:
						return
					case <-time.After(2 * time.Millisecond):
					}
					if over := time.Since(slept) - 2*time.Millisecond; over > 5*time.Millisecond {
						late.Add(int64(over))
					}
				}
			})
			bound := deadline + 100*time.Millisecond
			if slow > 1 { // what the host does for a script is watched too
				bound = deadline + time.Second
			}
			took := assault(t, program, deadline, p)
			for range again {
				if took > bound {
					took = assault(t, program, deadline, p)
				}
			}
			close(stop)
			beside.Wait()
			if took > bound+time.Duration(late.Load()) {
				exceeded = append(exceeded, fmt.Sprintf("%s: it took %s, on a machine that was late by %s", t.Name(), took, time.Duration(late.Load())))
			}
			if grown := peak.Load() - base; grown > 64<<20 {
				exceeded = append(exceeded, fmt.Sprintf("%s: the host grew by %d MiB", t.Name(), grown>>20))
			}
			slowest, most = max(slowest, took), max(most, peak.Load()-base)
		})
	}
	t.Logf("%d cases: the slowest took %s, the host grew by %d MiB at most", cases, slowest, most>>20)
	t.Run("within time and memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: measures the time of each case and the memory that the host takes for it")
		}
		for _, what := range exceeded {
			t.Error(what)
		}
	})
	if n := mapped.Load(); n != 1 {
		t.Errorf("%d arenas are mapped; the neighbour's is one", n)
	}
}

// assault opens a hostile program and calls what it registered. It returns how
// long the longest of it took.
func assault(t *testing.T, program *Program, deadline time.Duration, p *event.Payload) (longest time.Duration) {
	begun := time.Now()
	check := func(what string, err error) {
		took := time.Since(begun)
		longest = max(longest, took)
		if err != nil {
			switch plugin.CodeOf(err) {
			case plugin.CodeTimeout, plugin.CodeLimitExceeded, plugin.CodePluginError, plugin.CodeInvalidOutput, plugin.CodeOutputTooLarge, plugin.CodeDisabled:
			default:
				t.Errorf("%s: %v", what, err)
			}
			if len(err.Error()) > 3*maxMessage {
				t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
			}
		}
		if testing.Verbose() {
			t.Logf("%s, %s: %.200v", what, took.Round(time.Millisecond), err)
		}
	}
	instance, err := Open(context.Background(), program, Environment{
		Plugin: "hostile", Log: func(string, string, jsonRaw) {}, Memory: shelf{"k": "v"},
		Limits: Limits{Deadline: deadline, Start: deadline, Tool: deadline},
	})
	check("register", err)
	if err != nil {
		return longest
	}
	defer instance.Close()
	for range 2 { // the second meets a fresh engine, or a plugin that is disabled
		for _, s := range instance.Subscriptions() {
			begun = time.Now()
			switch {
			case s.Veto != nil:
				_, err = s.Veto(context.Background(), p)
			case s.Transform != nil:
				_, err = s.Transform(context.Background(), p)
			}
			if check(s.Event, err); len(instance.Subscriptions()) > 10 {
				break
			}
		}
		for _, tool := range instance.Tools() {
			begun = time.Now()
			_, err := instance.Call(context.Background(), tool.Name, jsonRaw(p.Text()))
			check("tool", err)
		}
	}
	return longest
}

// resident returns how much memory of the machine the process has.
func resident(t *testing.T) int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
