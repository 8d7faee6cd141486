package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Open opens a host that stays, as the only one that serves its data directory, for who owns
// it. release is called after it was closed.
func Open(ctx context.Context, o app.Options) (a *app.App, release func(), err error) {
	if release, err = setup.Exclusive(o.Home); err != nil {
		return nil, nil, err
	}
	a, err = app.Open(ctx, o)
	if err == nil && !a.Owner() {
		err = errors.Join(plugin.Errorf(plugin.CodePolicyDenied, "you are %s here, and a host is served by its owner, %s", a.Principal.Member(), a.Config.Principal), a.Close())
	}
	if err != nil {
		release()
	}
	return a, release, err
}

// Times of a background host.
const (
	firstUse  = time.Minute     // for the command line that started it to use it
	lookEvery = 2 * time.Second // how often it checks that command lines can still find it
)

// asked is what a background host does of what waits: calls, plans and messages that people
// gave it. Schedules, webhooks, agents that stay and what is idle are for 'mortise serve'.
var asked = []string{job.Call, job.Plan, job.Conversation}

// RunBackground is [Run] for a host that a command line started, so that what plugins keep in
// memory for a session outlives it. It answers its owner on the socket of the data directory
// alone, and ends when it is told to, when no session used it for the idle time of sessions
// or the last was ended, when another socket or data directory has taken the place of its
// own, and with ctx. identity is told to who asks, who replaces it where theirs is another;
// listens is called once it is reached.
func RunBackground(ctx context.Context, a *app.App, identity string, listens func()) error {
	f, err := newFront(a)
	if err != nil {
		return err
	}
	f.back = &background{app: a, identity: identity, listens: listens, idle: time.Duration(a.Config.Processes.SessionIdle), changed: make(chan struct{}, 1), begun: time.Now()}
	a.Sweepers = slices.DeleteFunc(a.Sweepers, func(s worker.Sweeper) bool { return !slices.Contains(asked, s.Kind()) })
	return f.run(ctx, nil, nil, nil)
}

// A background is what such a host has beside what every host that serves has. One goroutine
// of [front.run] stays, and ends the host.
type background struct {
	app      *app.App
	identity string
	listens  func()
	idle     time.Duration
	begun    time.Time
	changed  chan struct{} // buffered: a request has ended, or it was told to end

	mu     sync.Mutex // guards the rest
	busy   int        // requests that are being answered
	ending bool       // it was told to
}

// answers adds to what answers the owner who the host is, and how it is ended.
func (b *background) answers(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(rest.BackgroundHeader, b.identity)
		switch r.URL.EscapedPath() {
		case rest.EndPath:
			if only(w, r, http.MethodPost) {
				b.end()
				write(w, http.StatusOK, map[string]any{"status": "ending"})
			}
			return
		case reloadPath: // the next command finds out by itself
			write(w, http.StatusConflict, errorBody(plugin.CodeConflict, "nothing serves here but a host in the background, which is replaced by itself where its configuration has changed"))
			return
		}
		b.enter(1)
		defer b.enter(-1)
		if r.Method != http.MethodGet { // it does what a host would that is opened now
			if err := b.app.CatchUp(r.Context()); err != nil {
				rest.Refuse(w, plugin.CodeUnavailable, err.Error()) // its reader is the owner, who wrote the files
				return
			}
		}
		api.ServeHTTP(w, r)
	})
}

func (b *background) enter(n int) {
	b.mu.Lock()
	b.busy += n
	b.mu.Unlock()
	b.tell()
}

// end has the host end. What it is at work on may go on for the time to drain.
func (b *background) end() {
	b.mu.Lock()
	b.ending = true
	b.mu.Unlock()
	b.tell()
}

func (b *background) tell() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// stay returns when the host is to end. Its name is gone by then from what command lines look
// for, so that none waits for it.
func (b *background) stay(ctx context.Context, own net.Listener) {
	path, err := socket.Owner(b.app.Home)
	home, failed := os.Lstat(b.app.Home)
	at, missing := os.Lstat(path)
	if err != nil || failed != nil || missing != nil {
		return
	}
	b.listens()
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		if !same(b.app.Home, home) || !same(path, at) {
			keepName(own)
			return // no command line finds it, and what it does is on no record that one would
		}
		left := b.left()
		if left <= 0 {
			break
		}
		timer.Reset(min(left, lookEvery))
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
		case <-timer.C:
		}
	}
	if err := setup.LeaveServing(b.app.Home); err != nil {
		b.app.Log().Warn("that the host ends could not be noted", "cause", err.Error())
	}
}

// left returns how long the host has, 0 where its time is over.
func (b *background) left() time.Duration {
	b.mu.Lock()
	busy, ending := b.busy, b.ending
	b.mu.Unlock()
	held := b.app.Runner.Holding()
	switch {
	case ending: // what it is at work on has the time to drain
		return 0
	case busy > 0 || held.Busy:
		return lookEvery
	case held.Ended && held.Groups == 0:
		return 0
	case held.Used.IsZero():
		return time.Until(b.begun.Add(firstUse))
	}
	return time.Until(held.Used.Add(b.idle))
}

// same reports whether a path still names what it did.
func same(path string, as os.FileInfo) bool {
	info, err := os.Lstat(path)
	return err == nil && os.SameFile(info, as)
}

// keepName leaves the name of a socket, which may be another host's by now.
func keepName(l net.Listener) {
	if o, is := l.(owners); is {
		if u, is := o.Listener.(*net.UnixListener); is {
			u.SetUnlinkOnClose(false)
		}
	}
}
