package mount

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/plugin"
)

// progressEvery is how much time there is at least between two reports of one call: what a
// server says in between is dropped.
const progressEvery = 20 * time.Millisecond

// An observer passes the progress of one call on until the call has ended.
type observer struct {
	mu     sync.Mutex // guards the rest, and is held while Observe is called
	tell   func(plugin.Event)
	last   time.Time
	closed bool
}

// observe lets a call hear of its progress, under a token. left must be called at its end.
func (s *server) observe(token string, tell func(plugin.Event)) (left func()) {
	o := &observer{tell: tell}
	s.observers.Store(token, o)
	return func() {
		s.observers.Delete(token)
		o.mu.Lock()
		o.closed = true
		o.mu.Unlock()
	}
}

// progress takes a notification of the server.
func (s *server) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	found, there := s.observers.Load(token)
	if !there {
		return
	}
	o := found.(*observer)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || time.Since(o.last) < progressEvery {
		return
	}
	o.last = time.Now()
	data, err := json.Marshal(map[string]any{"message": clip(req.Params.Message, maxMessage), "done": req.Params.Progress, "total": req.Params.Total})
	if err == nil {
		o.tell(plugin.Event{Kind: plugin.EventProgress, Data: data})
	}
}
