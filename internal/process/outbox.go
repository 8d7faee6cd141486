package process

import (
	"io"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// maxOutbox is how many bytes may wait for a plugin that does not read.
const maxOutbox = 64 << 20

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
	writing bool             // write has taken a buffer and is not done with it
	try     func([]byte) int // writes what can be written without waiting; nil if that cannot be told
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
			o.mu.Lock()
			buf := o.buf
			o.writing = len(buf) > 0
			if !o.writing {
				o.mu.Unlock()
				break
			}
			o.buf = spare[:0] // the two buffers take turns
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
	o.mu.Unlock()
}
