package process

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Bounds of what may wait for a plugin that does not read.
const (
	maxOutbox  = 64 << 20  // bytes in all
	maxAnswers = 512 << 10 // bytes of answers to what it asked, before it is asked to wait itself
	maxOwed    = 2 << 20   // bytes that answers in the making may come to, as large as those before
)

// An outbox collects the frames for one plugin. One goroutine, write, owns the
// plugin's stdin and writes whatever has collected at once, so that a plugin
// that stops reading blocks no caller, and many callers share one system call.
// A caller that is alone writes as much as the pipe takes without waiting, and
// leaves the rest to that goroutine: to hand it all over would double its time.
// It closes stdin when the outbox is closed and empty.
type outbox struct {
	wake chan struct{} // buffered; closed by close
	done chan struct{}

	mu      sync.Mutex // guards the rest
	buf     []byte
	closed  bool
	answers int              // bytes of buf that answer the plugin's own requests
	owed    int              // answers in the making
	usual   int              // bytes that one of them comes to
	taken   chan struct{}    // closed when there may be room again; nil if no sender waits for room
	writing bool             // write has taken a buffer and is not done with it
	large   []*largeLine     // large answers that wait, after what is in buf
	try     func([]byte) int // writes what can be written without waiting; nil if that cannot be told
}

// A largeLine is an answer that is too large to be copied once more.
type largeLine struct {
	head, value []byte
	sent        func() // called once it is written or will not be

	written int // bytes; guarded by the outbox, as is looked
	begun   bool
	looked  int // what was written when it was overdue before, -1 for never
}

// queue takes a large answer, and reports whether it did: not once the outbox is
// closed.
func (o *outbox) queue(line *largeLine) bool {
	line.looked = -1
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.large = append(o.large, line)
	o.answers += len(line.value)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// overdue drops an answer of which nothing is written yet; stuck reports that nothing
// more of it was written since it was overdue before.
func (o *outbox) overdue(line *largeLine) (dropped, stuck bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.large, line); i >= 0 {
		o.large = slices.Delete(o.large, i, i+1)
		o.answers -= len(line.value)
		o.tell()
		return true, false
	}
	stuck = line.begun && line.looked == line.written
	line.looked = line.written
	return false, stuck
}

// largePiece is how much of a large answer is written at a time.
const largePiece = 64 << 10

// writeLarge writes one large answer, in pieces, so that it can be told whether the
// plugin reads on.
func (o *outbox) writeLarge(w io.Writer, line *largeLine) error {
	defer line.sent()
	if _, err := w.Write(line.head); err != nil {
		return err
	}
	for rest := line.value; len(rest) > 0; {
		n, err := w.Write(rest[:min(len(rest), largePiece)])
		rest = rest[n:]
		o.mu.Lock()
		line.written += n
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, protocol.ResultTail)
	return err
}

func newOutbox(w io.WriteCloser) *outbox {
	o := &outbox{wake: make(chan struct{}, 1), done: make(chan struct{}), try: protocol.TryWriter(w)}
	go o.write(w)
	return o
}

// begin locks the outbox and returns its buffer, to which whole frames are
// appended; commit must follow. It fails where too much is waiting.
func (o *outbox) begin() ([]byte, error) {
	o.mu.Lock()
	if len(o.buf) > maxOutbox {
		o.mu.Unlock()
		return nil, plugin.Errorf(plugin.CodeOverloaded, "the plugin has not read the last %d MiB that were sent to it", maxOutbox>>20)
	}
	return o.buf, nil
}

// commit unlocks the outbox with the frames appended to its buffer. alone says
// that no others are to be expected.
func (o *outbox) commit(buf []byte, alone bool) {
	if alone && o.try != nil && !o.writing && !o.closed {
		buf = buf[:copy(buf, buf[o.try(buf):])]
	}
	o.buf = buf
	if !o.closed && len(buf) > 0 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	o.mu.Unlock()
}

// close lets write finish what has collected and end.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.wake)
	}
}

// write writes until the outbox is closed or the plugin's stdin is. A failed
// write is no news of its own: the end of the plugin's stdout says the same.
func (o *outbox) write(w io.WriteCloser) {
	defer close(o.done)
	defer w.Close()
	var spare []byte
	for open := true; open; {
		_, open = <-o.wake
		for {
			runtime.Gosched() // other callers that can go on add their frames to the same write
			o.mu.Lock()
			buf := o.buf
			o.writing = len(buf) > 0 || len(o.large) > 0
			if !o.writing {
				o.mu.Unlock()
				break
			}
			if len(buf) == 0 {
				line := o.large[0]
				o.large = slices.Delete(o.large, 0, 1)
				line.begun = true
				o.mu.Unlock()
				err := o.writeLarge(w, line)
				o.mu.Lock()
				o.answers = max(0, o.answers-len(line.value))
				o.tell()
				o.mu.Unlock()
				if err != nil {
					o.discard()
					return
				}
				continue
			}
			o.buf = spare[:0] // the two buffers take turns
			o.emptied()
			o.mu.Unlock()
			if _, err := w.Write(buf); err != nil {
				o.discard()
				return
			}
			if spare = buf; cap(spare) > 1<<20 {
				spare = nil
			}
		}
	}
}

// discard drops what has collected and what is still to come.
func (o *outbox) discard() {
	o.close()
	o.mu.Lock()
	o.buf = nil
	large := o.large
	o.large = nil
	o.emptied()
	o.mu.Unlock()
	for _, line := range large {
		line.sent()
	}
}

// emptied tells those who wait for room that there is some. The lock is held.
func (o *outbox) emptied() {
	o.answers = 0
	for _, line := range o.large {
		o.answers += len(line.value)
	}
	o.tell()
}

func (o *outbox) tell() {
	if o.taken != nil {
		close(o.taken)
		o.taken = nil
	}
}

// answered ends what room began, with an answer of that many bytes.
func (o *outbox) answered(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed--
	o.usual = max(size, o.usual/2)
	o.tell()
}

// room waits until the plugin has read enough of the answers it was given to
// be given another; answered must follow. Once ctx has ended the answer is not
// needed any more.
func (o *outbox) room(ctx context.Context) error {
	for {
		o.mu.Lock()
		if o.answers < maxAnswers && (o.owed == 0 || o.owed*o.usual < maxOwed) || o.closed {
			o.owed++
			o.mu.Unlock()
			return nil
		}
		if o.taken == nil {
			o.taken = make(chan struct{})
		}
		taken := o.taken
		o.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
