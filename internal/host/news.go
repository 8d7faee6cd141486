package host

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/core/tail"
)

// lookAgain is how long news of a call is waited for before its row is read again: a node that
// dies writes nothing, and neither does a time that is over.
const lookAgain = 2 * time.Second

// A news tells of the entries about one call, whichever process writes them.
type news struct {
	host    *Host
	id      string       // of the call; all entries are news where it is empty
	reader  *tail.Reader // nil where the ledger is not followed
	changed <-chan struct{}
	leave   func()
}

// news returns what tells of a call from now on. close must be called.
func (h *Host) news(ctx context.Context, id string) (*news, error) {
	n := &news{host: h, id: id, leave: func() {}}
	if t := h.parts.Tail; t != nil {
		r, _, err := t.Open(ctx, nil)
		if err != nil {
			return nil, err
		}
		n.reader = r
	}
	n.subscribe()
	return n, nil
}

// subscribe hears of the next change in this process, which is before its entry is read.
func (n *news) subscribe() {
	n.leave()
	n.changed, n.leave = nil, func() {}
	if n.host.parts.Kernel != nil {
		n.changed, n.leave = n.host.parts.Kernel.Changed(n.id)
	}
}

func (n *news) close() {
	n.leave()
	if n.reader != nil {
		n.reader.Close()
	}
}

// wait returns when there is news, at most, or ctx has ended.
func (n *news) wait(ctx context.Context, most time.Duration) {
	wait, cancel := context.WithTimeout(ctx, min(most, lookAgain))
	defer cancel()
	if n.reader == nil {
		n.change(wait)
		return
	}
	told := make(chan struct{})
	defer func() { <-told }()
	defer cancel()
	go func() { // ends with wait
		defer close(told)
		n.change(wait)
		cancel()
	}()
	for {
		e, err := n.reader.Next(wait, wait)
		if err != nil {
			if wait.Err() == nil { // the ledger cannot be read
				<-wait.Done()
			}
			return
		}
		found := n.id == "" || e.Subject == n.id
		if n.reader.Done(); found {
			return
		}
	}
}

// change returns when the call has changed in this process, or wait has ended.
func (n *news) change(wait context.Context) {
	select {
	case <-n.changed:
		n.subscribe()
	case <-wait.Done():
	}
}

// during does something until there is news, or it is done.
func (n *news) during(ctx context.Context, most time.Duration, do func(ctx context.Context) (again bool, err error)) (again bool, err error) {
	inside, cancel := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() { // ends with what is done
		defer close(told)
		n.wait(inside, most)
		cancel()
	}()
	again, err = do(inside)
	cancel()
	<-told
	return again, err
}
