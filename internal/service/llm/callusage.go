package llm

import (
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// A CallUsage counts what one call has used of models: tokens, cost and providers. Its
// zero value is ready for use. It is safe for concurrent use.
type CallUsage struct {
	mu        sync.Mutex
	reserved  MicroCents // spent, and what is under way
	spent     MicroCents
	in, out   int
	providers []string
	refusals  int
}

// reserve adds amount to what is reserved, unless the total would pass limit.
func (t *CallUsage) reserve(amount, limit MicroCents) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if amount > limit-t.reserved {
		return false
	}
	t.reserved += amount
	return true
}

// giveBack releases amount of what was reserved.
func (t *CallUsage) giveBack(amount MicroCents) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved -= amount
}

// add notes one attempt.
func (t *CallUsage) add(provider string, u Usage, cost MicroCents) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent += cost
	t.in += u.In
	t.out += u.Out
	if !slices.Contains(t.providers, provider) {
		t.providers = append(t.providers, provider)
	}
}

// maxRefusals is how many refusals of one call are put on record.
const maxRefusals = 16

// refused counts a query that was not sent, and reports whether it is one too
// many to be put on record.
func (t *CallUsage) refused() (many bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals++
	return t.refusals > maxRefusals
}

// Metrics returns what a call's result says of it: tokens_in, tokens_out,
// cost_total in dollars and provider. It is nil where no model was asked.
func (t *CallUsage) Metrics() plugin.Metrics {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.providers) == 0 {
		return nil
	}
	return plugin.Metrics{
		"tokens_in": t.in, "tokens_out": t.out, "provider": strings.Join(t.providers, ","),
		"cost_total": float64(t.spent) / float64(Dollar),
	}
}
