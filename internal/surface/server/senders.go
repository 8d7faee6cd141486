package server

import (
	"cmp"
	"io"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of deliveries.
const (
	maxBodies = 16 << 20 // bytes of bodies that are read or worked on at a time
	smallBody = 64 << 10 // bytes of each body that are not counted
	maxProofs = 16       // deliveries whose signatures are verified at a time
)

// Senders are the senders of deliveries that have not proved who they are, and the bytes that
// all deliveries hold.
//
// Anyone may send, so a place in this set is worth nothing to who holds it: when the set is full,
// the address that holds the most of it loses the delivery whose body has been arriving for the
// longest. Slow senders therefore keep no one out, and a flood from one address displaces itself
// first. A delivery whose body has arrived waits for its signature to be verified; it is not
// displaced.
type senders struct {
	most int // deliveries at a time

	mu    sync.Mutex // guards the rest, and the fields of each sender that say so
	all   map[*sender]bool
	last  int64 // the place of the one that came last
	bytes int64
}

// A sender is one delivery, from its first byte to its answer. It reads the body.
type sender struct {
	io.Reader
	of   *senders
	from string // the address, see [clientaddr.Group]

	// Guarded by of.mu:
	place   int64
	stop    func() // ends the reading of the body; nil once the body has arrived
	shed    bool
	read    int64
	counted int64
}

func newSenders(most int) *senders { return &senders{most: most, all: map[*sender]bool{}} }

// enter adds a sender, or returns errBusy. stop ends the reading of its body; it is called with
// a lock held.
func (s *senders) enter(in io.Reader, from string, stop func()) (*sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= s.most && !s.displace(nil, func(*sender) int64 { return 1 }) {
		return nil, errBusy
	}
	s.last++
	one := &sender{Reader: in, of: s, from: from, place: s.last, stop: stop}
	s.all[one] = true
	return one, nil
}

// displace takes the place, and the bytes, of the delivery that is displaced next, and reports
// whether there was one. weight is how much of what is scarce a delivery holds. The delivery that
// asks is not displaced for itself. The caller holds the lock.
func (s *senders) displace(asks *sender, weight func(*sender) int64) bool {
	held := map[string]int64{}
	for one := range s.all {
		held[one.from] += weight(one)
	}
	var next *sender
	for one := range s.all {
		if one.stop == nil || weight(one) == 0 {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(held[next.from], held[one.from]), cmp.Compare(one.place, next.place)) < 0 {
			next = one
		}
	}
	if next == nil || next == asks {
		return false
	}
	s.remove(next)
	next.shed = true
	next.stop()
	return true
}

// remove takes a sender out of the set, with its bytes. The caller holds the lock.
func (s *senders) remove(one *sender) {
	delete(s.all, one)
	s.bytes -= one.counted
	one.counted = 0
}

// Read implements [io.Reader]. It returns errNoRoom if the delivery was displaced, or if there is
// no room for its bytes. What a delivery holds that is refused is free at once.
func (s *sender) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.shed {
		return n, errNoRoom
	}
	s.read += int64(n)
	if more := s.read - smallBody - s.counted; more > 0 {
		s.counted += more
		s.of.bytes += more
		for s.of.bytes > maxBodies {
			if !s.of.displace(s, func(one *sender) int64 { return one.counted }) {
				s.of.remove(s)
				return n, errNoRoom
			}
		}
	}
	return n, err
}

// arrive notes that the whole body has arrived, or returns errNoRoom if the delivery was
// displaced before.
func (s *sender) arrive() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.stop = nil; s.shed {
		return errNoRoom
	}
	return nil
}

// prove takes the delivery out of the set: its sender is known. Its bytes still count.
func (s *sender) prove() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.all, s)
}

// leave gives back all that the delivery holds. It must be called before its handler returns.
func (s *sender) leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.stop = nil
	s.of.remove(s)
}

// errNoRoom refuses a delivery for whose body there is no room.
var errNoRoom = &plugin.Error{Code: plugin.CodeOverloaded, Message: "the host has more deliveries at hand than it takes", RetryAfter: time.Second}

// errBusy refuses a delivery for which there is no place.
var errBusy = &plugin.Error{Code: plugin.CodeOverloaded, Message: "the host has more requests at hand than it takes", RetryAfter: time.Second}
