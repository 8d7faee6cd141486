package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// WaitTime is how long a person has to sign in.
const WaitTime = 5 * time.Minute

const (
	callback    = "/callback"
	maxCallback = 16 << 10 // bytes of headers
)

// A listener waits at a loopback address for a browser to come back (RFC 8252, 7.3). One
// goroutine belongs to it, which has ended when close returns.
type listener struct {
	url    string
	server *http.Server
	served chan struct{}
	came   chan *http.Request // holds one

	mu    sync.Mutex // guards state
	state string     // of the one answer that is waited for; "" for none
}

func listen(ctx context.Context) (*listener, error) {
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "listening on 127.0.0.1 for the browser: %w", err)
	}
	l := &listener{url: "http://" + at.Addr().String() + callback, served: make(chan struct{}), came: make(chan *http.Request, 1)}
	l.server = &http.Server{Handler: l, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxCallback}
	go func() {
		defer close(l.served)
		_ = l.server.Serve(at)
	}()
	return l, nil
}

// expect says which answer is waited for.
func (l *listener) expect(state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
}

// wait returns what the browser brought back.
func (l *listener) wait(ctx context.Context, name string) (url.Values, error) {
	timer := time.NewTimer(WaitTime)
	defer timer.Stop()
	select {
	case r := <-l.came:
		q := r.URL.Query()
		switch code := q.Get("error"); {
		case code == "access_denied":
			return nil, plugin.Errorf(plugin.CodeCancelled, "%s: it was not signed in: that was refused on the page", name)
		case code != "" || q.Get("code") == "":
			return nil, plugin.Errorf(plugin.CodeUnavailable, "%s: it was not signed in: the authorization server sent the browser back with %.100q", name, code)
		}
		return q, nil
	case <-timer.C:
		return nil, plugin.Errorf(plugin.CodeTimeout, "%s: no one signed in within %s; 'mortise mcp sign-in %s' begins again", name, WaitTime, name)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ServeHTTP handles the redirect of the browser. A request without the right state changes
// nothing, and one with it counts once.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.URL.Path != callback || r.Method != http.MethodGet {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	l.mu.Lock()
	state := l.state
	right := state != "" && subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("state")), []byte(state)) == 1
	if right {
		l.state = ""
	}
	l.mu.Unlock()
	if !right {
		http.Error(w, "This is not the answer that is waited for. Use the link that was shown last.", http.StatusBadRequest)
		return
	}
	select {
	case l.came <- r:
	default:
	}
	_, _ = io.WriteString(w, "The terminal says how it ended. This page can be closed.\n")
}

// close stops waiting.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for the browser to read its page
	defer cancel()
	if err := l.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		_ = l.server.Close()
	}
	<-l.served
}
