// Package budget bounds the memory that JSON from plugins takes while the host
// works on it, over all plugins together.
//
// A JSON text takes many times its bytes once names are compared, members sorted
// or a tree is built for a schema. What that comes to is estimated from a scan of
// the text, which allocates nothing ([Weigh]), and taken from one weighted
// semaphore before the work begins. What would not fit at all is refused, without
// being decoded.
//
// A share is held only while the processor works on one value, and nothing is
// waited for meanwhile: no call, no plugin, no other share. So waiting for a share
// cannot deadlock, however calls are nested.
//
// [Steps] bounds the work itself, where a caller or a plugin chooses what it costs.
package budget

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Bounds of the work at a time, in estimated bytes.
const (
	Capacity = 24 << 20 // of all
	shared   = 6 << 20  // of several together; more is for one alone
	free     = 64 << 10 // what a value may weigh and not be counted
	rest     = 8 << 20  // what is handed out between two collections
)

// A Weight is what a JSON text consists of.
type Weight struct {
	Bytes   int
	Values  int // strings, numbers, literals, arrays and objects
	Objects int
	Crowded int // members of objects that have more than [crowd]
}

// crowd is how many members an object may have before its names cost more than
// a comparison with those before them.
const crowd = 64

// maxDepth is how deep a text is looked at; deeper ones are refused elsewhere.
const maxDepth = 128

// Weigh counts what is in a JSON text, which need not be valid.
func Weigh(text []byte) (w Weight) {
	w.Bytes = len(text)
	var members [maxDepth]int
	depth := 0
	value := true // the next scalar is not part of one that was counted
	leave := func() {
		if depth > 0 && depth < maxDepth && members[depth] > crowd {
			w.Crowded += members[depth]
		}
		if depth > 0 {
			depth--
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			w.Values++
		case '{', '[':
			w.Values++
			if c == '{' {
				w.Objects++
			}
			if depth++; depth < maxDepth {
				members[depth] = 0
			}
			value = true
		case '}', ']':
			leave()
			value = true
		case ',':
			value = true
		case ':':
			if depth < maxDepth {
				members[depth]++
			}
			value = true
		default:
			if value {
				w.Values++
				value = false
			}
		}
	}
	for depth > 0 {
		leave()
	}
	return w
}

// Read is what it takes to check that a text is strict JSON: the names of large
// objects.
func (w Weight) Read() int { return w.Bytes + 130*w.Crowded }

// Canonical is what it takes to give a text its one spelling.
func (w Weight) Canonical() int { return 4*w.Bytes + 330*w.Crowded }

// Tree is what it takes to decode a text into values.
func (w Weight) Tree() int { return w.Bytes + 48*w.Values + 280*w.Objects }

// A semaphore hands out shares in the order in which they are asked for.
type semaphore struct {
	mu      sync.Mutex // guards the rest
	used    int
	handed  int // since the last collection
	waiting []*request
}

type request struct {
	n     int
	ready chan struct{}
}

// host is that of this process: memory is the process's.
var host semaphore

// An exceededError says of a value that it is not looked at.
type exceededError struct{ weight int }

func (e *exceededError) Error() string {
	return fmt.Sprintf("has too many values: to look at it the host would take about %d MiB of memory, and %d MiB is the bound; send fewer at a time, or put them into an artifact", e.weight>>20, Capacity>>20)
}

// Exceeded reports whether err says that a value takes more memory than there is
// for one.
func Exceeded(err error) bool {
	if err == nil { // what errors.As needs is made for each call
		return false
	}
	var e *exceededError
	return errors.As(err, &e)
}

// Do does work that takes that much memory, once there is room for it. Where
// there never is it fails, and does nothing; see [Exceeded].
func Do(weight int, work func() error) error {
	if weight <= free {
		return work()
	}
	if weight > Capacity {
		return &exceededError{weight}
	}
	host.take(weight)
	defer host.give(weight)
	return work()
}

func (s *semaphore) take(n int) {
	s.mu.Lock()
	if len(s.waiting) == 0 && s.fits(n) {
		s.admit(n)
		s.mu.Unlock()
		return
	}
	own := &request{n, make(chan struct{})}
	s.waiting = append(s.waiting, own)
	s.mu.Unlock()
	<-own.ready
}

// Made notes that much memory is about to be taken outside the budget, for a while.
func Made(bytes int) {
	host.mu.Lock()
	defer host.mu.Unlock()
	host.count(bytes)
}

// fits reports whether there is room for a share. The lock is held.
func (s *semaphore) fits(n int) bool { return s.used == 0 || s.used+n <= shared }

// admit hands out a share. The lock is held.
func (s *semaphore) admit(n int) {
	s.used += n
	s.count(n)
}

// count has what earlier shares left behind collected once it is much: the
// collector's own pace follows what is alive, and would let as much again be taken
// meanwhile. The lock is held.
func (s *semaphore) count(n int) {
	if s.handed += n; s.handed > rest {
		s.handed = n
		runtime.GC()
	}
}

func (s *semaphore) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	for len(s.waiting) > 0 && s.fits(s.waiting[0].n) {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.admit(next.n)
		close(next.ready)
	}
}
