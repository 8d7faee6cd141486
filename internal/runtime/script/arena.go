//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An arena is the one block of memory that an engine has, and its allocator.
// Everything is in the block, the allocator's own notes too, so that taking the
// block away takes everything, and nothing is left to be freed.
//
// Small blocks come from lists by size, carved out of runs of 16 pages; larger
// ones are runs of whole pages. Each begins with a header of two words: its size,
// and its list or large.
type arena struct {
	memory []byte
	head   *arenaHead // at the beginning of memory
}

type arenaHead struct {
	lists       [32]uintptr // free small blocks, by class
	carve, edge uintptr     // what is left of the run that small blocks are carved from
	spare       uintptr     // free runs of pages, by address
	top, end    uintptr     // what was never used
	refused     uint64      // requests that could not be met
}

// A spareRun is written into the first bytes of a run of pages that is free.
type spareRun struct{ next, size uintptr }

const (
	page        = 4 << 10
	carveSize   = 16 * page
	blockHeader = 16
	maxSmall    = 2048
	large       = 1 << 20 // where the class of a small block would be
	giveBack    = 16 * page
)

// mapped counts the arenas there are, for tests.
var mapped atomic.Int64

// newArena maps a block of at least size bytes. The machine gives it memory
// only as far as it is used.
func newArena(size int) (*arena, error) {
	size = (size + page - 1) &^ (page - 1)
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	mapped.Add(1)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	a := &arena{memory, at[arenaHead](base)}
	a.head.top, a.head.end = base+page, base+uintptr(size)
	return a, nil
}

// revoke takes the memory away from its current user: touching it is a fault from now
// on. It may be called from any goroutine.
func (a *arena) revoke() { _ = unix.Mprotect(a.memory, unix.PROT_NONE) }

func (a *arena) unmap() {
	if a.memory != nil && unix.Munmap(a.memory) == nil {
		mapped.Add(-1)
	}
	a.memory = nil
}

// at returns what is at an address outside of Go's own memory.
func at[T any](address uintptr) *T { return (*T)(unsafe.Add(nil, address)) }

// bytesAt returns n bytes there.
func bytesAt(address, n uintptr) []byte { return unsafe.Slice(at[byte](address), n) }

// classOf returns the list for blocks of n bytes, and how large they are: 32,
// 48, 64, 96, 128, 192, ... 2048.
func classOf(n uintptr) (class, size uintptr) {
	if n <= 32 {
		return 0, 32
	}
	b := uintptr(bits.Len64(uint64(n - 1))) // 2^(b-1) < n <= 2^b
	if half := uintptr(3) << (b - 2); n <= half {
		return (b-6)*2 + 1, half
	}
	return (b-6)*2 + 2, 1 << b
}

// allocate returns a block of at least n bytes, 0 if there is none.
func (h *arenaHead) allocate(n uintptr) uintptr {
	if n > h.end { // no such amount; also keeps the sums below from wrapping around
		h.refused++
		return 0
	}
	n += blockHeader
	if n > maxSmall {
		size := (n + page - 1) &^ (page - 1)
		return h.mark(h.pages(size), size, large)
	}
	class, size := classOf(n)
	if block := h.lists[class]; block != 0 {
		h.lists[class] = *at[uintptr](block)
		return block
	}
	if h.carve+size > h.edge {
		run := h.pages(carveSize)
		if run == 0 {
			return h.mark(0, 0, 0)
		}
		h.carve, h.edge = run, run+carveSize
	}
	h.carve += size
	return h.mark(h.carve-size, size, class)
}

func (h *arenaHead) mark(start, size, class uintptr) uintptr {
	if start == 0 {
		h.refused++
		return 0
	}
	*at[[2]uintptr](start) = [2]uintptr{size, class}
	return start + blockHeader
}

// usable returns how many bytes a block has.
func usable(block uintptr) uintptr { return *at[uintptr](block - blockHeader) - blockHeader }

// free takes a block back.
func (h *arenaHead) free(block uintptr) {
	header := *at[[2]uintptr](block - blockHeader)
	if class := header[1]; class != large {
		*at[uintptr](block) = h.lists[class]
		h.lists[class] = block
		return
	}
	h.freePages(block-blockHeader, header[0])
}

// pages returns the first free run that is long enough.
func (h *arenaHead) pages(size uintptr) uintptr {
	for link := &h.spare; *link != 0; {
		start := *link
		run := at[spareRun](start)
		if run.size >= size {
			run.size -= size
			if run.size == 0 {
				*link = run.next
			}
			return start + run.size // its end, so that the list stays as it is
		}
		link = &run.next
	}
	if size > h.end-h.top {
		return 0
	}
	h.top += size
	return h.top - size
}

// freePages puts a run into the list, joined with the ones beside it.
func (h *arenaHead) freePages(start, size uintptr) {
	link, before := &h.spare, uintptr(0)
	for *link != 0 && *link < start {
		before = *link
		link = &at[spareRun](before).next
	}
	next := *link
	if size >= giveBack { // what a peak took goes back to the machine
		_ = unix.Madvise(bytesAt(start+page, size-page), unix.MADV_DONTNEED)
	}
	if next != 0 && start+size == next {
		size += at[spareRun](next).size
		next = at[spareRun](next).next
	}
	if before != 0 && before+at[spareRun](before).size == start {
		*at[spareRun](before) = spareRun{next, at[spareRun](before).size + size}
		return
	}
	*at[spareRun](start) = spareRun{next, size}
	*link = start
}
