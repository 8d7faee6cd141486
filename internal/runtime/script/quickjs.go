//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"github.com/mortise-dev/mortise/plugin"
)

//go:embed prelude.js
var prelude string

const (
	slack       = 2 << 20 // of the arena, beyond what the engine may hold: its blocks are a little larger than asked for
	maxDepth    = 400     // calls inside one another
	maxMachines = 1 << 14
	scratchSize = 4 << 10
)

// A machine is QuickJS, translated to Go, in an arena.
type machine struct {
	host   host
	limits Limits
	run    run
	arena  *arena
	tls    *libc.TLS
	slot   uintptr // in machines

	rt, ctx uintptr // of the engine
	proto   value   // Object.prototype
	scratch uintptr // in the arena: scratchSize bytes for the current user of the engine
	given   uintptr // there: the arguments of the present call
	length  uintptr // there: where the engine writes how long a text is

	functions []value // handlers of subscriptions
	tools     []value // handlers of tools
	asks      int     // requests of the present call
	refused   uint64  // what the arena had refused before it
	views     views
	copies    []copied           // of the present payload's views
	spreads   map[uintptr]spread // where code makes such copies
	names     names
	known     struct{ allow, reason, payload lib.TJSAtom } // the members of a verdict
	allowing  uintptr                                      // how the engine lays out {allow}
	broken    bool
	closed    bool
}

// machines finds the machine that the engine calls back for: the engine's memory
// must hold no pointers of Go's.
var machines struct {
	sync.Mutex
	free []uintptr
	next uintptr
	of   [maxMachines]atomic.Pointer[machine]
}

// newEngine returns an engine that holds at most limits.Memory.
func newEngine(h host, limits Limits) (engine, error) {
	if err := probe(); err != nil {
		return nil, err
	}
	m := &machine{host: h, limits: limits, spreads: map[uintptr]spread{}}
	if err := m.takeSlot(); err != nil {
		return nil, err
	}
	arena, err := newArena(limits.Memory + slack)
	if err != nil {
		m.giveSlot()
		return nil, plugin.Errorf(plugin.CodeOverloaded, "there is no room for the memory of another plugin: %w", err)
	}
	m.arena, m.tls = arena, libc.NewTLS()
	m.run.revoke, m.run.grace = arena.revoke, limits.grace
	watch.add(&m.run)
	if err := m.guard(limits.Start, m.start); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *machine) takeSlot() error {
	machines.Lock()
	defer machines.Unlock()
	if n := len(machines.free); n > 0 {
		m.slot, machines.free = machines.free[n-1], machines.free[:n-1]
	} else if machines.next < maxMachines {
		m.slot = machines.next
		machines.next++
	} else {
		return plugin.Errorf(plugin.CodeOverloaded, "%d plugins run inside the host already: stop agents, or run some on another host", maxMachines)
	}
	machines.of[m.slot].Store(m)
	return nil
}

func (m *machine) giveSlot() {
	machines.Lock()
	defer machines.Unlock()
	machines.of[m.slot].Store(nil)
	machines.free = append(machines.free, m.slot)
}

// machineOf returns the machine that a callback of the engine is about.
func machineOf(ctx uintptr) *machine {
	return machines.of[at[lib.TJSContext](ctx).Fuser_opaque].Load()
}

// start makes the engine inside of the arena.
func (m *machine) start() error {
	m.rt = lib.XJS_NewRuntime2(m.tls, uintptr(unsafe.Pointer(&allocator)), uintptr(unsafe.Pointer(m.arena.head)))
	if m.rt == 0 {
		return errMemory
	}
	lib.XJS_SetMemoryLimit(m.tls, m.rt, lib.Tsize_t(m.limits.Memory))
	lib.XJS_SetMaxStackSize(m.tls, m.rt, maxDepth)
	lib.XJS_SetInterruptHandler(m.tls, m.rt, function(interrupted), m.slot)
	m.boundBindings()
	m.ctx = lib.XJS_NewContext(m.tls, m.rt)
	head := m.arena.head
	m.scratch, m.given, m.length = head.allocate(scratchSize), head.allocate(4*unsafe.Sizeof(value{})), head.allocate(16)
	if m.ctx == 0 || m.scratch == 0 || m.given == 0 || m.length == 0 {
		return errMemory
	}
	lib.XJS_SetContextOpaque(m.tls, m.ctx, m.slot)
	m.known.allow, m.known.reason, m.known.payload = m.atom("allow"), m.atom("reason"), m.atom("payload")
	if err := m.startViews(); err != nil {
		return err
	}
	return m.keepShapes()
}

// keepShapes keeps an object of each form that verdicts have: the engine forgets
// how an object is laid out once there is none.
func (m *machine) keepShapes() error {
	for _, form := range [][]lib.TJSAtom{{m.known.allow}, {m.known.allow, m.known.reason}, {m.known.allow, m.known.payload}} {
		object := lib.XJS_NewObject(m.tls, m.ctx) // and is never released
		if isException(object) {
			return errMemory
		}
		for _, atom := range form {
			if lib.XJS_DefinePropertyValue(m.tls, m.ctx, object, atom, undefined, lib.MJS_PROP_C_W_E) < 0 {
				return errMemory
			}
		}
		if len(form) == 1 {
			m.allowing = objectOf(object).Fshape
		}
	}
	return nil
}

// interrupted is what the engine asks every few thousand steps.
func interrupted(_ *libc.TLS, _, slot uintptr) int32 {
	m := machines.of[slot].Load()
	if m == nil || m.run.stopping() {
		return 1
	}
	return 0
}

// guard runs f, which uses the engine, for limit at most. If the memory is
// revoked under its feet, or the engine faults by itself, the panic ends here.
func (m *machine) guard(limit time.Duration, f func() error) (err error) {
	if m.broken || m.closed {
		return &crash{"it was used after its end"}
	}
	m.asks, m.refused = 0, m.arena.head.refused
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			m.broken = true
			if err = error(&crash{p}); m.run.gone() {
				err = errRevoked
			}
		}
	}()
	m.run.begin(limit)
	err = f()
	if !m.run.end() {
		err = errRevoked
	}
	if errors.Is(err, errStopped) || errors.Is(err, errRevoked) || errors.Is(err, errMemory) {
		m.broken = true
	}
	return err
}

// close gives back the arena as a whole. Nothing in it is visited.
func (m *machine) close() {
	if m.closed {
		return
	}
	m.closed = true
	watch.remove(&m.run)
	m.giveSlot()
	m.tls.Close()
	m.arena.unmap()
}

// load evaluates the prelude and the program, and has register called.
func (m *machine) load(p *Program, limit time.Duration) error {
	return m.guard(limit, func() error {
		boot, err := m.evaluate(prelude, preludeFile)
		if err != nil {
			return err
		}
		ask := lib.XJS_NewCFunction2(m.tls, m.ctx, function(engineAsk), m.named("ask"), 3, lib.EJS_CFUNC_generic, 0)
		register, err := m.settle(m.apply(boot, ask))
		if err != nil {
			return err
		}
		program, err := m.compile(p.code, programFile)
		if err != nil {
			return err
		}
		m.markSpreads(program)
		// From here on text is not made code any more: eval and Function throw.
		at[lib.TJSContext](m.ctx).Feval_internal = 0
		exports, err := m.settle(lib.XJS_EvalFunction(m.tls, m.ctx, program))
		if err != nil {
			return err
		}
		_, err = m.settle(m.apply(register, exports))
		return err
	})
}

func (m *machine) evaluate(source, file string) (value, error) {
	code, err := m.compile(source, file)
	if err != nil {
		return undefined, err
	}
	return m.settle(lib.XJS_EvalFunction(m.tls, m.ctx, code))
}

// compile reads a script. One whose functions have very many variables is
// refused: those lie on a stack outside of the arena.
func (m *machine) compile(source, file string) (value, error) {
	text, name := m.newText(source), m.newText(file)
	if text == 0 || name == 0 {
		return undefined, errMemory
	}
	code := lib.XJS_Eval(m.tls, m.ctx, text, lib.Tsize_t(len(source)), name, lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_STRICT|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	m.arena.head.free(text)
	m.arena.head.free(name)
	if isException(code) {
		return undefined, m.thrown()
	}
	return code, m.boundFrames(code, 0)
}

// apply calls a function. The arguments are given up.
func (m *machine) apply(f value, arguments ...value) value {
	copy(unsafe.Slice(at[value](m.given), len(arguments)), arguments)
	result := lib.XJS_Call(m.tls, m.ctx, f, undefined, int32(len(arguments)), m.given)
	for _, argument := range arguments {
		m.release(argument)
	}
	return result
}

// settle runs what is left to do after a call and returns what it came to in the
// end, if that is a promise.
func (m *machine) settle(result value) (value, error) {
	if isException(result) {
		return undefined, m.thrown()
	}
	for lib.XJS_IsJobPending(m.tls, m.rt) != 0 {
		if lib.XJS_ExecutePendingJob(m.tls, m.rt, m.length) < 0 {
			return undefined, m.thrown()
		}
		if m.run.stopping() { // jobs that make jobs may be too short to be asked
			return undefined, errStopped
		}
	}
	if !isObject(result) || objectOf(result).Fclass_id != lib.EJS_CLASS_PROMISE {
		return result, nil
	}
	switch lib.XJS_PromiseState(m.tls, m.ctx, result) {
	case lib.EJS_PROMISE_PENDING:
		return undefined, errPending
	case lib.EJS_PROMISE_FULFILLED:
		settled := lib.XJS_PromiseResult(m.tls, m.ctx, result)
		m.release(result)
		return settled, nil
	case lib.EJS_PROMISE_REJECTED:
		reason := lib.XJS_PromiseResult(m.tls, m.ctx, result)
		m.release(result)
		return undefined, m.describe(reason)
	}
	return result, nil
}

// thrown takes what was thrown.
func (m *machine) thrown() error {
	return m.describe(lib.XJS_GetException(m.tls, m.ctx))
}

// describe tells what was thrown. Reading it may run code, which may throw too.
func (m *machine) describe(e value) error {
	defer m.release(e)
	if m.run.stopping() {
		return errStopped
	}
	t := &thrown{}
	if e == null && m.arena.head.refused > m.refused {
		return errMemory // there was none for the error either
	}
	if !isObject(e) {
		t.name, t.message = "thrown", m.shown(e)
		return t
	}
	t.name, t.message, t.stack = m.text(e, "name"), m.text(e, "message"), m.text(e, "stack")
	if lib.XJS_IsError(m.tls, m.ctx, e) == 0 && t.name == "" && t.message == "" {
		t.name = "thrown"
		if t.message = m.stringified(e); t.message == "" {
			t.message = "an object"
		}
	}
	if m.run.stopping() {
		return errStopped
	}
	if t.name == "InternalError" && (t.message == "out of memory" || t.message == "stack overflow") {
		if t.message == "out of memory" {
			return errMemory
		}
		return fmt.Errorf("%w on its stack: functions call one another too deep", errMemory)
	}
	return t
}
