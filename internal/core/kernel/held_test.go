package kernel_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A lapsing store says from a question on that its process was paused for too long.
type lapsing struct {
	store.Store
	asked atomic.Int64
	from  int64 // 0 for never
}

func (p *lapsing) Held() error {
	if n := p.asked.Add(1); p.from > 0 && n >= p.from {
		return store.ErrLapsed
	}
	return nil
}

// A process that was paused until others may take it for dead has no effect more:
// neither does a plugin get the call then, nor does a request go out.
func TestAProcessThatLapsedHasNoEffects(t *testing.T) {
	t.Parallel()
	p := &lapsing{from: 1}
	on := func(st store.Store) store.Store { p.Store = st; return p }
	b := newBundleOn(t, on, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
	call := asking("mail/send", `{}`)
	call.Key = "once"
	if res, err := b.Call(t.Context(), call); plugin.CodeOf(err) != plugin.CodeUnavailable || b.runs.Load() != 0 {
		t.Errorf("paused after its claim: %+v, %v, and %d calls reached the plugin", res, err, b.runs.Load())
	}
	p.from = 0
	if res, err := b.Call(t.Context(), call); err != nil || res.Replayed {
		t.Errorf("made again: %+v, %v", res, err)
	}

	m := newMailbox(t)
	p = &lapsing{from: 3}
	s, sends := senderOn(t, m, on)
	posts := sends(2)
	s.do = func(ctx context.Context, t *plugin.Target, c *plugin.Call, services plugin.Services) (plugin.Result, error) {
		return posts(ctx, t, c, services)
	}
	res, err := s.Call(t.Context(), asking("mail/send", `{}`))
	if sent := m.all(); len(sent) != 1 || err == nil || res.Status == plugin.Succeeded {
		t.Errorf("paused after its first mail: %q went out; %+v, %v", sent, res, err)
	}
}
