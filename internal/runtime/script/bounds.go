//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// The engine keeps variables and arguments of a call in memory that is not of
// the arena. With the depth of calls bounded, so is that memory, as long as no
// single call takes much.
const (
	maxFrame   = 4096 // variables and temporary values of one function
	maxBound   = 1024 // arguments that a bound function passes on
	maxNesting = 200  // functions written inside of one another
)

// boundFrames refuses code with a function that takes more.
func (m *machine) boundFrames(code value, depth int) error {
	if code.Ftag != lib.EJS_TAG_FUNCTION_BYTECODE {
		return nil
	}
	if depth > maxNesting {
		return &thrown{name: "SyntaxError", message: fmt.Sprintf("functions are nested more than %d deep", maxNesting)}
	}
	f := at[lib.TJSFunctionBytecode](address(code))
	if n := int(f.Farg_count) + int(f.Fvar_count) + int(f.Fstack_size); n > maxFrame {
		return &thrown{name: "SyntaxError", message: fmt.Sprintf("a function has %d variables and temporary values; at most %d are accepted", n, maxFrame)}
	}
	for i := range f.Fcpool_count {
		if err := m.boundFrames(*at[value](f.Fcpool + uintptr(i)*unsafe.Sizeof(value{})), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A classCall is how the engine calls objects of a class.
type classCall = func(tls *libc.TLS, ctx uintptr, f, this value, argc int32, argv uintptr, flags int32) value

// callBound is the engine's own way of calling bound functions.
var (
	callBound     uintptr
	callBoundOnce sync.Once
)

// boundBindings puts callBounded before it.
func (m *machine) boundBindings() {
	classes := at[lib.TJSRuntime](m.rt).Fclass_array
	class := at[lib.TJSClass](classes + lib.EJS_CLASS_BOUND_FUNCTION*unsafe.Sizeof(lib.TJSClass{}))
	callBoundOnce.Do(func() { callBound = class.Fcall })
	class.Fcall = function(callBounded)
}

func callBounded(tls *libc.TLS, ctx uintptr, f, this value, argc int32, argv uintptr, flags int32) value {
	bound := at[lib.TJSBoundFunction](objectOf(f).Fu.Fopaque)
	if bound.Fargc+argc > maxBound {
		return machineOf(ctx).throw(fmt.Sprintf("a bound function passes on at most %d arguments", maxBound))
	}
	call := *(*classCall)(unsafe.Pointer(&struct{ uintptr }{callBound}))
	return call(tls, ctx, f, this, argc, argv, flags)
}
