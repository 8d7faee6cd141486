package event

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Options of a bus. The zero value is useful.
type Options struct {
	Log   *slog.Logger  // hears of failures; nil discards them
	Drain time.Duration // how long Close waits for handlers; 0 means two seconds
}

// A Bus carries the events of one agent to its handlers. All its methods are safe
// for concurrent use.
//
// Handlers run in the goroutine of the emitter. Goroutines of its own are one
// that emits plugin.error@v1, while there are any to emit, and one for each
// call of a handler that has a deadline. Close waits for them, but no longer
// than Options.Drain.
type Bus struct {
	agent  string
	log    *slog.Logger
	bound  time.Duration
	slots  slots // never changes
	top    atomic.Pointer[nested]
	closed atomic.Bool // nothing is emitted any more, except what is queued
	once   sync.Once

	ctx  context.Context // of queued events
	stop context.CancelFunc

	mu     sync.Mutex // guards the rest, and the lists of families against two who change them
	number uint64
	counts map[string]int // handlers by plugin
	total  int
	queue  []told
	teller chan struct{} // closed once the queue is empty; nil while no goroutine drains it
	timed  int           // handlers with a deadline that are at work
	calm   chan struct{} // closed by the last of these once the bus has ended
	ended  bool
}

// A slot is one event on one bus.
type slot struct {
	name   string
	way    way
	event  *Event
	family *family
	place  int // among the versions
}

// A family is all versions of an event: they share one list of handlers.
type family struct {
	versions []*Event // the oldest first, none left out
	handlers atomic.Pointer[[]*handler]
}

// Slots are found by the length of the event's name first: the names are few and
// constants, which makes this several times faster than a map.
type slots [32][]*slot

func (s *slots) find(event string) *slot {
	for _, slot := range s[len(event)%len(s)] {
		if slot.name == event {
			return slot
		}
	}
	return nil
}

// all yields every slot.
func (s *slots) all(yield func(*slot) bool) {
	for _, some := range s {
		for _, slot := range some {
			if !yield(slot) {
				return
			}
		}
	}
}

// NewBus returns the bus of an agent.
func NewBus(agent string, o Options) *Bus { return newBus(agent, o, Catalogue) }

func newBus(agent string, o Options, catalogue []Event) *Bus {
	b := &Bus{agent: agent, log: o.Log, bound: o.Drain, slots: slotsOf(catalogue), counts: map[string]int{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.bound <= 0 {
		b.bound = 2 * time.Second
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// slotsOf puts the versions of each event together. A catalogue that leaves one
// out, or its conversion, is a programming error.
func slotsOf(catalogue []Event) (found slots) {
	families := map[string]*family{}
	for i := range catalogue {
		e := &catalogue[i]
		base, version, ok := split(e.Name)
		f := families[base]
		if f == nil {
			f = &family{}
			f.handlers.Store(new([]*handler))
			families[base] = f
		}
		first := len(f.versions) == 0
		if !ok || version != len(f.versions)+1 || first != (e.Up == nil) || first != (e.Down == nil) || !first && e.Shape != f.versions[0].Shape {
			panic(fmt.Sprintf("event: %s does not follow the version before it", e.Name))
		}
		some := &found[len(e.Name)%len(found)]
		*some = append(*some, &slot{name: e.Name, way: e.Shape.way(), event: e, family: f, place: len(f.versions)})
		f.versions = append(f.versions, e)
	}
	return found
}

// On adds a handler. It hears dispatches that begin from now on, and a veto or transform
// that is under way where a handler of the same plugin goes meanwhile. off takes it
// away again, as Remove would; it may be called more than once.
func (b *Bus) On(s Subscription) (off func(), err error) {
	slot, err := b.slot(s.Event)
	if err != nil {
		return nil, err
	}
	h, err := newHandler(s, slot)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed.Load():
		return nil, closed(b.agent)
	case b.counts[s.Plugin] >= MaxPluginHandlers:
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "plugin %s has %d handlers, and may have no more; subscribe once and decide inside the handler", nameOf(s.Plugin), MaxPluginHandlers)
	case b.total >= MaxHandlers:
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "the bus of agent %s has %d handlers, and may have no more; assign fewer plugins to it", b.agent, MaxHandlers)
	}
	h.number = b.number
	b.number++
	list, err := ordered(*slot.family.handlers.Load(), h)
	if err != nil {
		return nil, err
	}
	slot.family.handlers.Store(&list)
	b.counts[s.Plugin]++
	b.total++
	return func() { b.remove(slot.family, func(other *handler) bool { return other == h }) }, nil
}

// Remove takes all handlers of a plugin away. Those that run finish; those that
// come later in the same dispatch are not called.
func (b *Bus) Remove(plugin string) {
	for slot := range b.slots.all {
		b.remove(slot.family, func(h *handler) bool { return h.Plugin == plugin })
	}
}

func (b *Bus) remove(f *family, is func(*handler) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := *f.handlers.Load()
	list := make([]*handler, 0, len(old))
	for _, h := range old {
		if !is(h) {
			list = append(list, h)
			continue
		}
		h.gone.Store(true)
		b.total--
		if b.counts[h.Plugin]--; b.counts[h.Plugin] == 0 {
			delete(b.counts, h.Plugin)
		}
	}
	if len(list) < len(old) {
		rearrange(list)
		f.handlers.Store(&list)
	}
}

// Heard reports whether the event has a handler, in any version, so that a
// caller builds no payload in vain.
func (b *Bus) Heard(event string) bool {
	slot := b.slots.find(event)
	return slot != nil && len(*slot.family.handlers.Load()) > 0
}

// slot finds an event, and says what was probably meant where there is none.
func (b *Bus) slot(event string) (*slot, error) {
	if slot := b.slots.find(event); slot != nil {
		return slot, nil
	}
	near := "docs/events.md has them all"
	asked, _, _ := strings.Cut(event, "@")
	for slot := range b.slots.all {
		if base, version, _ := split(slot.name); base == asked && version == len(slot.family.versions) {
			near = "the newest version is " + slot.name
		}
	}
	return nil, plugin.Errorf(plugin.CodeNotFound, "there is no event %.100q; %s", event, near)
}

// Close ends the bus. It emits what is queued of plugin.error@v1, removes all
// handlers, and waits for those that run in goroutines of the bus, no longer
// than Options.Drain in all. A dispatch that is under way belongs to its
// emitter; it calls no more handlers. Emitting on a closed bus is an error: an
// unheard event must not pass for an allowance.
func (b *Bus) Close() { b.once.Do(b.close) }

func (b *Bus) close() {
	timer := time.NewTimer(b.bound)
	defer timer.Stop()
	b.mu.Lock()
	b.closed.Store(true)
	teller := b.teller
	b.mu.Unlock()
	inTime := wait(teller, timer.C)
	b.stop()
	b.top.Store(nil)
	for slot := range b.slots.all {
		b.remove(slot.family, func(*handler) bool { return true })
	}
	b.mu.Lock()
	b.ended = true
	b.queue = slices.Delete(b.queue, 0, len(b.queue))
	if b.timed > 0 {
		b.calm = make(chan struct{})
	}
	calm := b.calm
	b.mu.Unlock()
	if !inTime || !wait(calm, timer.C) {
		b.log.Warn("a bus was closed while handlers were still at work", "agent", b.agent, "waited", b.bound)
	}
}

// wait reports whether done, if there is such a channel, was closed in time.
func wait(done <-chan struct{}, late <-chan time.Time) bool {
	if done == nil {
		return true
	}
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// begin notes that a goroutine is about to start; end, that it ends.
func (b *Bus) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.timed++
	return true
}

func (b *Bus) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed--; b.timed == 0 && b.calm != nil {
		close(b.calm)
		b.calm = nil
	}
}

func closed(agent string) error {
	return plugin.Errorf(plugin.CodeUnavailable, "the bus of agent %s is closed; start the agent again", agent)
}
