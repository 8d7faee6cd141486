//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// The functions that the engine allocates with. Their opaque value is where the
// arena begins.
var allocator = lib.TJSMallocFunctions{
	Fjs_malloc:             function(engineMalloc),
	Fjs_free:               function(engineFree),
	Fjs_realloc:            function(engineRealloc),
	Fjs_malloc_usable_size: function(engineUsable),
}

// function returns a function as the engine's code calls it. It must be a
// top-level one.
func function(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

func engineMalloc(_ *libc.TLS, state uintptr, size lib.Tsize_t) uintptr {
	s := at[lib.TJSMallocState](state)
	head := at[arenaHead](s.Fopaque)
	if s.Fmalloc_size+size > s.Fmalloc_limit {
		head.refused++
		return 0
	}
	block := head.allocate(uintptr(size))
	if block != 0 {
		s.Fmalloc_count++
		s.Fmalloc_size += lib.Tsize_t(usable(block) + blockHeader)
	}
	return block
}

func engineFree(_ *libc.TLS, state, block uintptr) {
	if block == 0 {
		return
	}
	s := at[lib.TJSMallocState](state)
	s.Fmalloc_count--
	s.Fmalloc_size -= lib.Tsize_t(usable(block) + blockHeader)
	at[arenaHead](s.Fopaque).free(block)
}

func engineRealloc(tls *libc.TLS, state, block uintptr, size lib.Tsize_t) uintptr {
	switch {
	case block == 0 && size == 0:
		return 0
	case block == 0:
		return engineMalloc(tls, state, size)
	case size == 0:
		engineFree(tls, state, block)
		return 0
	}
	had := usable(block)
	if uintptr(size) <= had && uintptr(size) >= had/2 {
		return block
	}
	moved := engineMalloc(tls, state, size)
	if moved == 0 {
		return 0
	}
	n := min(had, uintptr(size))
	copy(bytesAt(moved, n), bytesAt(block, n))
	engineFree(tls, state, block)
	return moved
}

func engineUsable(_ *libc.TLS, block uintptr) lib.Tsize_t {
	if block == 0 {
		return 0
	}
	return lib.Tsize_t(usable(block))
}
