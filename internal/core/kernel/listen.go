package kernel

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// listening are those who hear what a call says that was put on record and runs later,
// in this process.
type listening struct {
	mu    sync.Mutex
	calls map[callID]func(plugin.Event)
}

// listen has the observer of a call hear it when it runs later, until ctx ends.
func (l *listening) listen(ctx context.Context, call *plugin.Call) {
	if call.Observe == nil || !call.NoWait || ctx.Done() == nil {
		return
	}
	id := callID{call.Tenant, call.ID}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[callID]func(plugin.Event){}
	}
	l.calls[id] = call.Observe
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, id)
	})
}

// to returns who hears a call, nil where no one does.
func (l *listening) to(tenant, id string) func(plugin.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[callID{tenant, id}]
}
