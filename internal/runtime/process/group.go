package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A worker is one process of protocol 2 in its group.
type worker struct {
	*conn
	child *child
	group *group

	// Guarded by group.mu.
	busy       int             // calls it is at work on, those given up included
	held       int             // of these, calls whose caller is gone
	holders    []*waitfor.Call // of the others, those that are known
	lastUsed   time.Time
	began      time.Time   // when it was ready for calls
	retired    bool        // gets no new calls
	restarted  bool        // it replaced another worker, and no call has been told yet
	impatience *time.Timer // ends it where a call that was given up goes on
}

// close ends the process, politely where there is time for it.
func (w *worker) close(polite bool) {
	w.stopping.Store(true)
	if polite && w.err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		w.shutdown(ctx)
		cancel()
	}
	w.end(errClosing)
	if polite {
		w.child.stop()
	} else {
		w.child.destroy()
	}
	w.wait()
	w.group.runner.unreserve()
}

// A group is the processes that may serve the same calls, and the calls that
// wait for one of them.
type group struct {
	runner    *Runner
	key       key
	manifest  *plugin.Manifest
	pkg       plugin.Package
	artifacts []sandbox.File // files that its processes may read
	view      string         // the directory of its session's artifacts; "" for none
	limit     int            // processes at a time
	idle      time.Duration  // after which an unused worker ends

	mu       sync.Mutex // guards the rest
	workers  []*worker
	starting int
	waiting  []*waiter // in order, nested calls first
	full     bool      // the last start failed, and room was not tried again since
	failures int       // in a row, of starting or staying alive
	retryAt  time.Time // no start before this
	served   bool      // a process of this session or agent had a call
	closed   bool
}

// A grant gives a waiting call its worker, or the reason why there is none.
type grant struct {
	worker *worker
	err    error
}

// A waiter is a call that waits for a worker.
type waiter struct {
	call  *waitfor.Call
	ready chan grant // buffered
}

// Bounds of waiting.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 30 * time.Second
	patience     = time.Second // a wait for a restart that a call puts up with
	steady       = 10 * time.Second
	leftFailures = 4 // failures that a younger process leaves at most: the wait after the next is within patience
)

// peers returns the plugins the process has to serve.
func (g *group) peers() []protocol.Peer {
	if g.manifest.Name == "" || sharesProcess(g.manifest) { // a bare source file, before its code was asked; or one that tells none
		return nil
	}
	return []protocol.Peer{{Name: g.manifest.Name, Version: g.manifest.Version}}
}

// readable returns what its processes may read beside the package.
func (g *group) readable() []sandbox.File {
	if g.view == "" {
		return g.artifacts
	}
	return append(slices.Clone(g.artifacts), sandbox.File{Path: g.view})
}

// acquire returns a worker with room for one more call, starting one where it
// may. release or hold must follow.
//
// It never waits for what cannot come: where every process is held by calls that
// wait, directly or not, for the one that asks, the call gets an extra process,
// or is refused at once where its scope has but one.
func (g *group) acquire(ctx context.Context) (*worker, error) {
	call := waitfor.From(ctx)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, errStale
	}
	if w := g.freest(); w != nil {
		w.take(call)
		g.mu.Unlock()
		return w, nil
	}
	if err := g.hopeless(); err != nil {
		g.mu.Unlock()
		return nil, err
	}
	own := &waiter{call, make(chan grant, 1)}
	g.enqueue(own)
	g.grow()
	g.mu.Unlock()

	wait := waitfor.Begin(call, g)
	if wait == nil && g.spare(own) {
		wait = waitfor.Begin(call, g)
	}
	if wait == nil {
		g.refuse(own, g.cyclic(call))
	} else {
		defer wait.End()
	}
	select {
	case got := <-own.ready:
		return got.worker, got.err
	case <-ctx.Done():
	}
	g.refuse(own, nil)
	if got := <-own.ready; got.worker != nil { // granted in the meantime: give it back
		g.release(got.worker, call, nil)
	}
	return nil, &unsent{plugin.AsError(context.Cause(ctx))}
}

// hopeless returns why no call should wait now. The lock is held.
func (g *group) hopeless() error {
	if err := g.crowded(); err != nil {
		return err
	}
	if wait := time.Until(g.retryAt); wait > patience && len(g.workers) == 0 {
		return &plugin.Error{
			Code:      plugin.CodeUnavailable,
			Message:   fmt.Sprintf("%s: the plugin failed %d times in a row; it is tried again in %s", g.name(), g.failures, wait.Round(time.Second)),
			Retryable: true, RetryAfter: wait,
		}
	}
	return nil
}

// crowded refuses a call where as many wait as may. The lock is held.
func (g *group) crowded() error {
	if len(g.waiting) < g.runner.opts.MaxWaiting {
		return nil
	}
	return &plugin.Error{Code: plugin.CodeOverloaded, Message: fmt.Sprintf("%s: %d calls are waiting already", g.name(), len(g.waiting)), Retryable: true, RetryAfter: time.Second}
}

// freest returns the live worker with the most room, nil where none has any.
func (g *group) freest() *worker {
	var best *worker
	for _, w := range g.workers {
		if w.retired || w.busy >= w.room() || w.err() != nil {
			continue
		}
		if best == nil || w.busy < best.busy {
			best = w
		}
	}
	return best
}

// room is how many calls a worker runs at a time; one of scope call runs one,
// and so does one that serves several plugins.
func (w *worker) room() int {
	if w.group.key.scope.Kind == plugin.IsolationCall || sharesProcess(w.group.manifest) {
		return 1
	}
	return w.concurrency
}

// grow starts as many workers as the waiting calls need and the limit allows.
func (g *group) grow() {
	for g.starting < len(g.waiting) && g.live()+g.starting < g.limit && !g.closed {
		g.starting++
		delay := time.Until(g.retryAt)
		g.runner.work.Go(func() { g.startOne(delay) })
	}
}

// live counts the workers that take new calls.
func (g *group) live() (n int) {
	for _, w := range g.workers {
		if !w.retired {
			n++
		}
	}
	return n
}

// startOne starts one worker, after the delay that its predecessors' failures ask for.
func (g *group) startOne(delay time.Duration) {
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-g.runner.life.Done():
		}
	}
	w, err := g.runner.start(g.runner.life, g)
	g.mu.Lock()
	g.starting--
	if err == nil && g.closed {
		g.mu.Unlock()
		w.close(false)
		return
	}
	if err != nil {
		if plugin.CodeOf(err) != plugin.CodeOverloaded { // else it is no fault of the plugin
			g.failed()
		}
		g.full = true
		err = &unsent{err}
		var waiting []*waiter
		if len(g.workers) == 0 && g.starting == 0 { // no other worker can serve them
			waiting, g.waiting = g.waiting, nil
		}
		g.mu.Unlock()
		for _, w := range waiting {
			w.ready <- grant{err: err}
		}
		g.unblock(err)
		return
	}
	g.full = false
	w.restarted, w.began = g.served && g.keeps(), time.Now()
	g.workers = append(g.workers, w)
	g.runner.work.Go(func() { g.watch(w) })
	g.serve()
	g.mu.Unlock()
}

// serve gives waiting calls to workers with room.
func (g *group) serve() {
	for len(g.waiting) > 0 {
		w := g.freest()
		if w == nil {
			g.grow()
			if g.starting == 0 && !g.closed && g.waiting[0].call.Nested() {
				g.runner.work.Go(func() { g.unblock(nil) })
			}
			return
		}
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		w.take(next.call)
		next.ready <- grant{worker: w}
	}
}

// failed counts a failure and puts off the next start: the first is made good
// at once, the following after 100 ms, 200 ms and so on up to 30 s.
func (g *group) failed() {
	g.failures++
	if g.failures > 1 {
		g.retryAt = time.Now().Add(min(firstBackoff<<min(g.failures-2, 16), maxBackoff))
	}
}

// succeeded forgets failures. A process that is younger than steady leaves some of them: one that answers a call and
// crashes at the next would otherwise be started as fast as it crashes, at the cost of all other plugins.
func (g *group) succeeded(w *worker) {
	g.retryAt = time.Time{}
	if time.Since(w.began) >= steady || g.key.scope.Kind == plugin.IsolationCall {
		g.failures = 0
	}
	g.failures = min(g.failures, leftFailures)
}

// watch waits for the end of a worker's output, and takes the worker out.
func (g *group) watch(w *worker) {
	<-w.readDone
	g.mu.Lock()
	if i := slices.Index(g.workers, w); i >= 0 { // it ended by itself
		g.workers = slices.Delete(g.workers, i, i+1)
		if !w.retired {
			w.retired = true
			g.failed()
		}
		if w.impatience != nil {
			w.impatience.Stop()
		}
		g.serve()
	}
	g.mu.Unlock()
	w.close(false)
}

// release gives back the place of a call that has ended.
func (g *group) release(w *worker, call *waitfor.Call, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.drop(call)
	w.busy--
	w.lastUsed = time.Now()
	g.touch()
	g.served = g.served || !wasNotSent(err)
	if !isDead(err) {
		g.succeeded(w)
	}
	if w.retired || g.key.scope.Kind == plugin.IsolationCall || g.surplus(w) {
		g.retire(w)
	}
	g.serve()
	if g.key.scope.Kind == plugin.IsolationCall && g.runner.opts.Standby && !g.closed && g.starting == 0 && g.freest() == nil {
		g.starting++
		g.runner.work.Go(func() { g.startOne(0) })
	}
}

// hold keeps the place of a call that was given up until the plugin answers
// it. A plugin that does not is retired after the grace, and ended as soon as
// no caller is left that waits for it. One that serves several plugins is ended
// at once when the time of a call was up, since nothing stops their code
// politely: the next call gets another. err is why the call was given up.
func (g *group) hold(w *worker, call *waitfor.Call, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.drop(call)
	w.held++
	g.served = true
	if sharesProcess(g.manifest) && plugin.CodeOf(err) == plugin.CodeTimeout {
		g.retire(w)
		g.serve()
		return
	}
	if w.impatience == nil && !w.retired {
		w.impatience = time.AfterFunc(g.runner.opts.CancelGrace, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if w.held > 0 {
				g.retire(w)
				g.serve()
			}
		})
	}
}

// late gives back the place of a call that was given up and is now answered.
func (g *group) late(w *worker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.held > 0 {
		w.held--
	}
	w.busy--
	w.lastUsed = time.Now()
	g.touch()
	if w.held == 0 && w.impatience != nil {
		w.impatience.Stop()
		w.impatience = nil
	}
	if w.retired || g.key.scope.Kind == plugin.IsolationCall || g.surplus(w) {
		g.retire(w)
	}
	g.serve()
}

// retire gives w no new calls, and ends it once no caller waits for it.
func (g *group) retire(w *worker) {
	w.retired = true
	if w.busy > w.held {
		return
	}
	if i := slices.Index(g.workers, w); i >= 0 {
		g.workers = slices.Delete(g.workers, i, i+1)
		polite := w.held == 0
		g.runner.work.Go(func() {
			if !polite {
				w.child.kill()
			} else {
				w.politely()
			}
		})
	}
}

// surplus reports whether w is beyond the limit and not needed any more.
func (g *group) surplus(w *worker) bool {
	return w.busy == 0 && len(g.waiting) == 0 && g.live() > g.limit
}

// politely asks an unused worker to end; watch does the rest.
func (w *worker) politely() {
	w.stopping.Store(true) // before it is asked: its end is no crash then
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if w.err() == nil {
		w.shutdown(ctx)
	}
	w.end(errClosing)
	w.child.stop()
}

// oldestIdle returns the worker that has been without a call the longest.
func (g *group) oldestIdle() *worker {
	g.mu.Lock()
	defer g.mu.Unlock()
	var oldest *worker
	for _, w := range g.workers {
		if w.busy == 0 && !w.retired && (oldest == nil || w.lastUsed.Before(oldest.lastUsed)) {
			oldest = w
		}
	}
	return oldest
}

// retireIdle ends w if it is still idle.
func (g *group) retireIdle(w *worker) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.busy > 0 || w.retired {
		return false
	}
	g.retire(w)
	return true
}

// sweep ends the workers that have been idle for too long, and reports whether the
// group is empty, and whether it has served any call.
func (g *group) sweep(now time.Time) (empty, served bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range slices.Clone(g.workers) {
		if w.busy == 0 && !w.retired && now.Sub(w.lastUsed) >= g.idle {
			g.retire(w)
		}
	}
	g.closed = len(g.workers) == 0 && g.starting == 0 && len(g.waiting) == 0 && now.After(g.retryAt)
	return g.closed, g.served
}

// errStale is what a call gets from a group that was given up just before; the
// runner has another.
var errStale = errors.New("stale group")

// close fails what waits and ends every worker.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	waiting := g.waiting
	g.waiting = nil
	workers := slices.Clone(g.workers)
	for _, w := range workers {
		w.retired = true
		if w.impatience != nil {
			w.impatience.Stop()
		}
	}
	g.workers = nil
	g.mu.Unlock()
	for _, w := range waiting {
		w.ready <- grant{err: &unsent{errClosing}}
	}
	for _, w := range workers {
		g.runner.work.Go(w.politely)
	}
}
